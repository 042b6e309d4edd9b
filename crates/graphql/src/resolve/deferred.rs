//! Sorts what resolvers gave into what is complete and which objects must be made, so that those are made together.

use std::sync::Arc;

use crate::plan::shape::{Object, Output, Slot};
use crate::resolve::tree::Tree;
use trefoil_engine::{OwnedRow, Resolved};
use trefoil_model::Value;

/// A place that may still wait for objects.
pub enum Draft {
    Done(Tree),
    List(Vec<Draft>),
    /// The object with this number in this group.
    Object {
        group: usize,
        number: usize,
    },
}

/// What an object is to be made of.
pub enum Wanted {
    Record(i64),
    Row(OwnedRow),
    Value(Value),
}

/// Objects to make, by shape.
#[derive(Default)]
pub struct Batch {
    pub groups: Vec<(Arc<Object>, Vec<Wanted>)>,
}

impl Wanted {
    pub fn id(&self) -> Option<i64> {
        match self {
            Wanted::Record(id) => Some(*id),
            Wanted::Row(_) | Wanted::Value(_) => None,
        }
    }
}

impl Batch {
    pub fn resolved(&mut self, slot: &Slot, resolved: Resolved) -> Draft {
        match (resolved, &slot.output) {
            (Resolved::Value(value), _) => self.value(slot, value),
            (Resolved::Record { type_name, id }, Output::Object(object)) if object.type_name == type_name => {
                self.want(object, Wanted::Record(id))
            }
            (Resolved::Record { type_name, .. }, Output::Object(object)) => {
                wrong(format!("`{}` was expected, not a record of `{type_name}`", object.type_name))
            }
            (Resolved::Record { type_name, id }, Output::Abstract(abstracted)) => {
                match abstracted.named(&type_name) {
                    Ok(object) => self.want(object, Wanted::Record(id)),
                    Err(why) => wrong(why),
                }
            }
            (Resolved::Record { type_name, .. }, Output::Leaf(_) | Output::List(_)) => {
                wrong(format!("a record of `{type_name}` does not fit here"))
            }
            (Resolved::List(items), Output::List(item)) => {
                Draft::List(items.into_iter().map(|resolved| self.resolved(item, resolved)).collect())
            }
            (Resolved::List(_), Output::Leaf(_) | Output::Object(_) | Output::Abstract(_)) => {
                wrong("a list does not fit here".to_owned())
            }
        }
    }

    /// A value is complete unless some resolver answers a part of it.
    pub fn value(&mut self, slot: &Slot, value: Value) -> Draft {
        if value.is_null() || !slot.is_live() {
            return Draft::Done(Tree::Value(value));
        }
        match (&slot.output, value) {
            (Output::Object(object), value) => self.want(object, Wanted::Value(value)),
            (Output::Abstract(abstracted), value) => match abstracted.of_value(&value) {
                Ok(object) => self.want(object, Wanted::Value(value)),
                Err(why) => wrong(why),
            },
            (Output::List(item), Value::List(items)) => {
                Draft::List(items.into_iter().map(|value| self.value(item, value)).collect())
            }
            (Output::List(_) | Output::Leaf(_), value) => Draft::Done(Tree::Value(value)),
        }
    }

    /// Records that were read with their parent.
    pub fn rows(&mut self, slot: &Slot, rows: &[OwnedRow]) -> Draft {
        match &slot.output {
            Output::Object(object) => match rows.first() {
                Some(row) => self.want(object, Wanted::Row(row.clone())),
                None => Draft::Done(Tree::Value(Value::Null)),
            },
            Output::List(item) => {
                Draft::List(rows.iter().map(|row| self.rows(item, std::slice::from_ref(row))).collect())
            }
            Output::Leaf(_) | Output::Abstract(_) => wrong("a relation leads to records only".to_owned()),
        }
    }

    fn want(&mut self, object: &Arc<Object>, wanted: Wanted) -> Draft {
        let known = self.groups.iter().position(|(shape, _)| Arc::ptr_eq(shape, object));
        let group = known.unwrap_or_else(|| {
            self.groups.push((object.clone(), Vec::new()));
            self.groups.len() - 1
        });
        let wants = &mut self.groups[group].1;
        wants.push(wanted);
        Draft::Object { group, number: wants.len() - 1 }
    }
}

impl Draft {
    /// The draft with its objects, each taken from where it was made.
    pub fn tree(self, made: &mut [Vec<Option<Tree>>]) -> Tree {
        match self {
            Draft::Done(tree) => tree,
            Draft::List(items) => Tree::List(items.into_iter().map(|item| item.tree(made)).collect()),
            Draft::Object { group, number } => made[group][number].take().unwrap_or(Tree::Value(Value::Null)),
        }
    }
}

fn wrong(why: String) -> Draft {
    Draft::Done(Tree::Wrong(why))
}
