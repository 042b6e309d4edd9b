//! Conditions on records, as a tree. Names are resolved, values are as received.

use std::fmt;

use trefoil_model::error::PathSegment;
use trefoil_model::{Field, FieldId, FilterOperator, Model, RecordId, RecordType, RecordTypeId, Value};

/// Conditions are nested at most this deep. SQLite allows expressions of depth 1,000; a relation takes about 20
/// levels, and each condition beside it one more.
pub const MAX_CONDITION_DEPTH: usize = 20;

/// So many values of a list count as one condition.
const VALUES_PER_CONDITION: usize = 100;

/// A test of a record.
#[derive(Debug, Clone)]
pub enum Condition {
    Compare(FieldComparison),
    /// True if the record has one of these ids. They are from the store, and valid whatever they are.
    HasId(Vec<RecordId>),
    /// True if all of the conditions are true.
    All(Vec<Condition>),
    /// True if at least one of the conditions is true.
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// True if at least one record that the relation leads to meets all conditions.
    Related {
        relation: FieldId,
        conditions: Vec<Condition>,
    },
    /// True if the link `field` of the record `id` of type `owner` leads to this record.
    LinkedFrom {
        owner: RecordTypeId,
        field: FieldId,
        id: RecordId,
    },
}

/// A test of one value.
#[derive(Clone)]
pub struct FieldComparison {
    pub path: ValuePath,
    pub operator: FilterOperator,
    /// What the value is compared with.
    pub operand: Value,
    /// Where the operand is in the request, for violations; empty if it is not from there.
    pub place: Vec<PathSegment>,
}

/// Without the place: two conditions that say the same are written the same, wherever they come from.
impl fmt::Debug for FieldComparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldComparison { path, operator, operand, place: _ } = self;
        write!(formatter, "{path:?} {operator:?} {operand:?}")
    }
}

/// Where a value of a record is: in the column of a field or, with members, inside an embedded value in that column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePath {
    pub field: FieldId,
    /// Positions in the fields of embedded types, from the outer one to the inner one.
    pub members: Vec<FieldId>,
}

impl Condition {
    pub fn compare(field: FieldId, operator: FilterOperator, operand: Value) -> Condition {
        Condition::Compare(FieldComparison { path: field.into(), operator, operand, place: Vec::new() })
    }

    /// The same condition with the place of its operands: an argument or a parameter.
    pub fn from_place(mut self, name: &str) -> Condition {
        self.set_place(name);
        self
    }

    fn set_place(&mut self, name: &str) {
        match self {
            Condition::Compare(comparison) => comparison.place = vec![PathSegment::Field(name.to_owned())],
            Condition::HasId(_) | Condition::LinkedFrom { .. } => {}
            Condition::All(inner) | Condition::Any(inner) | Condition::Related { conditions: inner, .. } => {
                inner.iter_mut().for_each(|inner| inner.set_place(name));
            }
            Condition::Not(inner) => inner.set_place(name),
        }
    }

    /// The place of the first operand.
    pub fn place(&self) -> Option<&[PathSegment]> {
        match self {
            Condition::Compare(comparison) => {
                Some(&comparison.place).filter(|place| !place.is_empty()).map(Vec::as_slice)
            }
            Condition::HasId(_) | Condition::LinkedFrom { .. } => None,
            Condition::All(inner) | Condition::Any(inner) | Condition::Related { conditions: inner, .. } => {
                inner.iter().find_map(Condition::place)
            }
            Condition::Not(inner) => inner.place(),
        }
    }

    pub fn equals(field: FieldId, value: Value) -> Condition {
        Condition::compare(field, FilterOperator::EQUAL, value)
    }

    /// `values` is a list.
    pub fn one_of(field: FieldId, values: Value) -> Condition {
        Condition::compare(field, FilterOperator::In, values)
    }

    /// True if at least one record that the relation leads to meets all conditions.
    pub fn some_related(relation: FieldId, conditions: Vec<Condition>) -> Condition {
        Condition::Related { relation, conditions }
    }

    pub fn none_related(relation: FieldId, conditions: Vec<Condition>) -> Condition {
        Condition::some_related(relation, conditions).negated()
    }

    /// True if no record that the relation leads to fails a condition.
    pub fn every_related(relation: FieldId, conditions: Vec<Condition>) -> Condition {
        Condition::none_related(relation, vec![Condition::All(conditions).negated()])
    }

    pub fn negated(self) -> Condition {
        match self {
            Condition::Not(inner) => *inner,
            other @ (Condition::Compare(_)
            | Condition::HasId(_)
            | Condition::All(_)
            | Condition::Any(_)
            | Condition::Related { .. }
            | Condition::LinkedFrom { .. }) => Condition::Not(Box::new(other)),
        }
    }

    /// The comparison of a field of the record itself; `None` for any other condition.
    pub fn field_comparison(&self) -> Option<(FieldId, &FieldComparison)> {
        if let Condition::Compare(comparison) = self
            && comparison.path.members.is_empty()
        {
            return Some((comparison.path.field, comparison));
        }
        None
    }

    /// True if the condition excludes no record, and says only that there are related ones: what is left of one whose
    /// values were forgotten.
    pub fn says_nothing(&self) -> bool {
        self.known_result() == Some(true)
    }

    /// The result of a condition that compares nothing.
    fn known_result(&self) -> Option<bool> {
        let negated = |condition: &Condition| condition.known_result().map(|result| !result);
        match self {
            Condition::Compare(_) | Condition::HasId(_) | Condition::LinkedFrom { .. } => None,
            Condition::All(conditions) | Condition::Related { conditions, .. } => {
                all_true(conditions.iter().map(Condition::known_result))
            }
            Condition::Any(conditions) => all_true(conditions.iter().map(negated)).map(|result| !result),
            Condition::Not(inner) => negated(inner),
        }
    }

    /// The number of conditions in the tree, however they are joined: what only joins them counts where it is empty.
    pub fn count(&self) -> usize {
        let total = |conditions: &[Condition]| conditions.iter().map(Condition::count).sum::<usize>();
        match self {
            Condition::Compare(FieldComparison { operand: Value::List(values), .. }) => {
                values.len().div_ceil(VALUES_PER_CONDITION).max(1)
            }
            Condition::Compare(_) | Condition::HasId(_) | Condition::LinkedFrom { .. } => 1,
            Condition::All(conditions) | Condition::Any(conditions) => total(conditions).max(1),
            Condition::Related { conditions, .. } => 1 + total(conditions),
            Condition::Not(inner) => inner.count(),
        }
    }
}

/// Whether all results are true, as far as they are known.
fn all_true(results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let results: Vec<_> = results.collect();
    match results.contains(&Some(false)) {
        true => Some(false),
        false => results.iter().all(Option::is_some).then_some(true),
    }
}

impl From<FieldId> for ValuePath {
    fn from(field: FieldId) -> ValuePath {
        ValuePath { field, members: Vec::new() }
    }
}

impl ValuePath {
    /// The field of the record, then those inside embedded values.
    pub fn fields<'m>(
        &'m self,
        model: &'m Model,
        record: &'m RecordType,
    ) -> impl Iterator<Item = &'m Field> + 'm {
        let mut field = Some(record.field(self.field));
        let mut members = self.members.iter();
        std::iter::from_fn(move || {
            let current = field?;
            field = members.next().and_then(|member| {
                let name = current.kind.value_type()?.embedded_name()?;
                model.embedded.get(name)?.fields.get(member.0)
            });
            Some(current)
        })
    }

    /// The field that holds the value.
    pub fn target<'m>(&'m self, model: &'m Model, record: &'m RecordType) -> &'m Field {
        self.fields(model, record).last().unwrap_or_else(|| record.field(self.field))
    }
}
