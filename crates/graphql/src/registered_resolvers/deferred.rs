//! Splits resolver results into complete values and objects still to be made, so that objects are made in batches.

use std::sync::Arc;

use trefoil_engine::{OwnedRow, ResolverResult};
use trefoil_model::{RecordId, Value};

use crate::plan::shape::{ObjectShape, OutputShape, ValueSlot};
use crate::registered_resolvers::resolved_tree::ResolvedTree;

/// A resolver result that may refer to objects of a batch.
pub enum DeferredValue {
    Complete(ResolvedTree),
    List(Vec<DeferredValue>),
    /// The object `number` of group `group` in the batch.
    Object {
        group: usize,
        number: usize,
    },
}

/// The source of an object that is still to be made.
pub enum PendingObject {
    Record(RecordId),
    Row(OwnedRow),
    Value(Value),
}

/// Objects to make, grouped by shape.
#[derive(Default)]
pub struct ObjectBatch {
    pub groups: Vec<(Arc<ObjectShape>, Vec<PendingObject>)>,
}

impl PendingObject {
    pub fn record_id(&self) -> Option<&RecordId> {
        match self {
            PendingObject::Record(id) => Some(id),
            PendingObject::Row(_) | PendingObject::Value(_) => None,
        }
    }
}

impl ObjectBatch {
    pub fn add_resolved(&mut self, slot: &ValueSlot, resolved: ResolverResult) -> DeferredValue {
        match (resolved, &slot.output) {
            (ResolverResult::Value(value), _) => self.add_value(slot, value),
            (ResolverResult::Record { type_name, id }, OutputShape::Object(object))
                if object.type_name == type_name =>
            {
                self.add_object(object, PendingObject::Record(id))
            }
            (ResolverResult::Record { type_name, .. }, OutputShape::Object(object)) => invalid_value(
                format!("the resolver must return a record of `{}`, not of `{type_name}`", object.type_name),
            ),
            (ResolverResult::Record { type_name, id }, OutputShape::Abstract(abstracted)) => {
                match abstracted.shape_named(&type_name) {
                    Ok(object) => self.add_object(object, PendingObject::Record(id)),
                    Err(why) => invalid_value(why),
                }
            }
            (ResolverResult::Record { type_name, .. }, OutputShape::Leaf(_) | OutputShape::List(_)) => {
                invalid_value(format!(
                    "the resolver must not return a record (of `{type_name}`) for this field"
                ))
            }
            (ResolverResult::List(items), OutputShape::List(item)) => DeferredValue::List(
                items.into_iter().map(|resolved| self.add_resolved(item, resolved)).collect(),
            ),
            (
                ResolverResult::List(_),
                OutputShape::Leaf(_) | OutputShape::Object(_) | OutputShape::Abstract(_),
            ) => invalid_value("the resolver must not return a list for this field".to_owned()),
        }
    }

    /// Adds a value, which is complete unless a field in it has a resolver.
    pub fn add_value(&mut self, slot: &ValueSlot, value: Value) -> DeferredValue {
        if value.is_null() || !slot.uses_resolvers() {
            return DeferredValue::Complete(ResolvedTree::Value(value));
        }
        match (&slot.output, value) {
            (OutputShape::Object(object), value) => self.add_object(object, PendingObject::Value(value)),
            (OutputShape::Abstract(abstracted), value) => match abstracted.shape_for_value(&value) {
                Ok(object) => self.add_object(object, PendingObject::Value(value)),
                Err(why) => invalid_value(why),
            },
            (OutputShape::List(item), Value::List(items)) => {
                DeferredValue::List(items.into_iter().map(|value| self.add_value(item, value)).collect())
            }
            (OutputShape::List(_) | OutputShape::Leaf(_), value) => {
                DeferredValue::Complete(ResolvedTree::Value(value))
            }
        }
    }

    /// Adds records that were read together with their parent.
    pub fn add_rows(&mut self, slot: &ValueSlot, rows: &[OwnedRow]) -> DeferredValue {
        match &slot.output {
            OutputShape::Object(object) => match rows.first() {
                Some(row) => self.add_object(object, PendingObject::Row(row.clone())),
                None => DeferredValue::Complete(ResolvedTree::Value(Value::Null)),
            },
            OutputShape::List(item) => DeferredValue::List(
                rows.iter().map(|row| self.add_rows(item, std::slice::from_ref(row))).collect(),
            ),
            OutputShape::Leaf(_) | OutputShape::Abstract(_) => {
                invalid_value("a relation resolved to something other than records".to_owned())
            }
        }
    }

    fn add_object(&mut self, shape: &Arc<ObjectShape>, object: PendingObject) -> DeferredValue {
        let existing = self.groups.iter().position(|(other, _)| Arc::ptr_eq(other, shape));
        let group = existing.unwrap_or_else(|| {
            self.groups.push((shape.clone(), Vec::new()));
            self.groups.len() - 1
        });
        let objects = &mut self.groups[group].1;
        objects.push(object);
        DeferredValue::Object { group, number: objects.len() - 1 }
    }
}

impl DeferredValue {
    /// The result with its objects taken out of `objects`.
    pub fn into_tree(self, objects: &mut [Vec<Option<ResolvedTree>>]) -> ResolvedTree {
        match self {
            DeferredValue::Complete(tree) => tree,
            DeferredValue::List(items) => {
                ResolvedTree::List(items.into_iter().map(|item| item.into_tree(objects)).collect())
            }
            DeferredValue::Object { group, number } => {
                objects[group][number].take().unwrap_or(ResolvedTree::Value(Value::Null))
            }
        }
    }
}

fn invalid_value(why: String) -> DeferredValue {
    DeferredValue::Complete(ResolvedTree::Invalid(why))
}
