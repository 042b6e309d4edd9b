//! What conditions and orders mean, straight from docs/operations.md: no index, no SQL, nothing of the engine.

use std::cmp::Ordering;

use super::letters::folded;
use super::rows::{PlainCell, PlainData, PlainRow};
use super::schema::{Content, PlainSchema};
use super::tree::{ConditionTree, Quantifier, TestOperator, TextPlace};
use super::values::PlainValue;

/// A schema with its rows.
#[derive(Clone, Copy)]
pub struct PlainWorld<'w> {
    pub schema: &'w PlainSchema,
    pub data: &'w PlainData,
}

/// A value that is reached through references and embedded values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    pub references: Vec<usize>,
    pub field: usize,
    pub members: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct OrderKey {
    pub path: FieldPath,
    pub descending: bool,
}

/// What conditions are asked of.
#[derive(Clone, Copy)]
enum Subject<'w> {
    Row(usize, &'w PlainRow),
    /// Without an embedded value all of its fields are null.
    Part(Option<&'w [PlainValue]>),
}

impl<'w> PlainWorld<'w> {
    /// The positions of the rows of a type that meet all conditions, in this order.
    pub fn select(self, record: usize, conditions: &[ConditionTree], order: &[OrderKey]) -> Vec<usize> {
        let rows = &self.data.rows[record];
        let is_met = |at: &usize| self.all(Subject::Row(record, &rows[*at]), conditions);
        let mut found: Vec<usize> = (0..rows.len()).filter(is_met).collect();
        found.sort_by(|left, right| {
            let by_keys = order.iter().map(|key| {
                let [left, right] = [left, right].map(|at| self.value(record, &rows[*at], &key.path));
                left.compare_sorted(&right, key.descending)
            });
            let by_id = rows[*left].key().compare(rows[*right].key());
            by_keys.fold(Ordering::Equal, Ordering::then).then(by_id)
        });
        found
    }

    pub fn value(self, record: usize, row: &'w PlainRow, path: &FieldPath) -> PlainValue {
        let Some((first, rest)) = path.references.split_first() else {
            return self.own_value(record, row, path);
        };
        let (PlainCell::One(one), Content::Reference { target, .. }) =
            (&row.cells[*first], self.schema.records[record].fields[*first].content)
        else {
            panic!("a path goes through references");
        };
        let Some(at) = one else { return PlainValue::Null };
        let path = FieldPath { references: rest.to_vec(), ..path.clone() };
        self.value(target, &self.data.rows[target][*at], &path)
    }

    fn own_value(self, record: usize, row: &'w PlainRow, path: &FieldPath) -> PlainValue {
        let mut value = self.field_value(Subject::Row(record, row), path.field);
        for member in &path.members {
            value = match value {
                PlainValue::Parts(mut values) => values.swap_remove(*member),
                _ => PlainValue::Null,
            };
        }
        value
    }

    /// The value of a field; of a reference the key that it holds.
    fn field_value(self, subject: Subject<'w>, field: usize) -> PlainValue {
        let (record, row) = match subject {
            Subject::Row(record, row) => (record, row),
            Subject::Part(values) => {
                return values.map_or(PlainValue::Null, |values| values[field].clone());
            }
        };
        match (&row.cells[field], self.schema.records[record].fields[field].content) {
            (PlainCell::Value(value), _) => value.clone(),
            (PlainCell::One(one), Content::Reference { target, .. }) => {
                one.map_or(PlainValue::Null, |at| self.data.rows[target][at].key().clone())
            }
            _ => panic!("a list of records is no value"),
        }
    }

    fn all(self, subject: Subject<'w>, conditions: &[ConditionTree]) -> bool {
        conditions.iter().all(|condition| self.is_met(subject, condition))
    }

    fn is_met(self, subject: Subject<'w>, condition: &ConditionTree) -> bool {
        match condition {
            ConditionTree::All(inner) => self.all(subject, inner),
            ConditionTree::Any(inner) => inner.iter().any(|condition| self.is_met(subject, condition)),
            ConditionTree::Not(inner) => !self.all(subject, inner),
            ConditionTree::Test { field, operator, operand } => {
                test(&self.field_value(subject, *field), *operator, operand)
            }
            ConditionTree::Part { field, conditions } => {
                let inner = match subject {
                    Subject::Part(values) => values.map(|values| &values[*field]),
                    Subject::Row(_, row) => match &row.cells[*field] {
                        PlainCell::Value(value) => Some(value),
                        PlainCell::One(_) | PlainCell::Many(_) => panic!("a relation is no embedded value"),
                    },
                };
                let values = inner.and_then(|value| match value {
                    PlainValue::Parts(values) => Some(values.as_slice()),
                    _ => None,
                });
                self.all(Subject::Part(values), conditions)
            }
            ConditionTree::Related { field, quantifier, conditions } => {
                let Subject::Row(record, row) = subject else { panic!("embedded values have no relations") };
                let (target, related) = self.related(record, row, *field);
                let mut related = related.into_iter();
                let is_met = |row: &'w PlainRow| self.all(Subject::Row(target, row), conditions);
                match quantifier {
                    Quantifier::One | Quantifier::Some => related.any(is_met),
                    Quantifier::Every => related.all(is_met),
                    Quantifier::None => !related.any(is_met),
                }
            }
        }
    }

    /// The type and the rows that a relation leads to.
    pub fn related(self, record: usize, row: &PlainRow, field: usize) -> (usize, Vec<&'w PlainRow>) {
        let target = match self.schema.records[record].fields[field].content {
            Content::Reference { target, .. }
            | Content::Inverse { target, .. }
            | Content::Link { target, .. } => target,
            Content::Key(_) | Content::Single(_) | Content::List(_) | Content::Part(_) => {
                panic!("a value is no relation")
            }
        };
        let rows = &self.data.rows[target];
        let related = match &row.cells[field] {
            PlainCell::One(one) => one.iter().map(|at| &rows[*at]).collect(),
            PlainCell::Many(many) => many.iter().map(|at| &rows[*at]).collect(),
            PlainCell::Value(_) => panic!("a value is no relation"),
        };
        (target, related)
    }
}

/// Null differs from every value and is neither less nor greater than any.
pub fn test(value: &PlainValue, operator: TestOperator, operand: &PlainValue) -> bool {
    let is_flag = |flag: bool| *operand == PlainValue::Flag(flag);
    let is_listed = || match operand {
        PlainValue::List(items) => items.iter().any(|item| !value.is_null() && equal(value, item)),
        _ => panic!("{operand:?} is no list"),
    };
    let order = || (!value.is_null()).then(|| value.compare(operand));
    match operator {
        TestOperator::Eq => equal(value, operand),
        TestOperator::Ne => !equal(value, operand),
        TestOperator::Lt => order().is_some_and(Ordering::is_lt),
        TestOperator::Lte => order().is_some_and(Ordering::is_le),
        TestOperator::Gt => order().is_some_and(Ordering::is_gt),
        TestOperator::Gte => order().is_some_and(Ordering::is_ge),
        TestOperator::In => is_listed(),
        TestOperator::NotIn => !is_listed(),
        TestOperator::Null => is_flag(value.is_null()),
        TestOperator::Empty => is_flag(match value {
            PlainValue::List(items) => items.is_empty(),
            _ => true,
        }),
        TestOperator::Has => match value {
            PlainValue::List(items) => items.iter().any(|item| equal(item, operand)),
            _ => false,
        },
        TestOperator::Text(place, any_case) => match (value, operand) {
            (PlainValue::Text(text), PlainValue::Text(part)) => {
                let letters = |text: &str| -> Vec<char> {
                    text.chars().map(|letter| if any_case { folded(letter) } else { letter }).collect()
                };
                has_part(&letters(text), &letters(part), place)
            }
            _ => false,
        },
    }
}

fn has_part(text: &[char], part: &[char], place: TextPlace) -> bool {
    match place {
        TextPlace::Whole => text == part,
        TextPlace::Start => text.starts_with(part),
        TextPlace::End => text.ends_with(part),
        TextPlace::Anywhere => (0..=text.len()).any(|at| text[at..].starts_with(part)),
    }
}

fn equal(left: &PlainValue, right: &PlainValue) -> bool {
    match (left, right) {
        (PlainValue::Null, PlainValue::Null) => true,
        (PlainValue::Null, _) | (_, PlainValue::Null) => false,
        (left, right) => left.compare(right) == Ordering::Equal,
    }
}
