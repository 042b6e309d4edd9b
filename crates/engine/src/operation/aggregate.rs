//! Groups of records and what is computed of each.

use trefoil_model::{
    ComparisonOp, Field, MeasureFields, Model, RecordType, RecordTypeId, Scalar, ScalarGroup, TimePeriod,
    Value, ValueType,
};

use crate::operation::condition::Condition;
use crate::operation::listing::ListSearch;
use crate::operation::reference_path::ReferencePath;

/// What is computed of groups of records. The cells of a row are the group keys, then the measures.
#[derive(Debug, Clone, Default)]
pub struct AggregateQuery {
    /// Records meet all of them.
    pub conditions: Vec<Condition>,
    /// As in a [`Listing`](crate::Listing).
    pub search: Option<ListSearch>,
    /// Without one, all records are one group.
    pub group_keys: Vec<GroupKey>,
    /// Those that are wanted, and those that conditions and order need.
    pub measures: Vec<GroupMeasure>,
    /// Groups meet all of them.
    pub having: Vec<GroupCondition>,
    /// Ties are broken by the group keys, ascending.
    pub order: Vec<GroupOrder>,
    /// Without it, all groups, up to [`PlanLimits::groups`](crate::PlanLimits::groups).
    pub first: Option<i64>,
}

/// A value by which records are grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupKey {
    /// As it was written: `month(issuedOn)`.
    pub text: String,
    pub path: ReferencePath,
    pub period: Option<TimePeriod>,
}

/// A number or value that is computed of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupMeasure {
    Count,
    OfField(MeasureFunction, ReferencePath),
}

/// What is computed of the values of a field. Nulls are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeasureFunction {
    Sum,
    Average,
    Least,
    Greatest,
    CountDistinct,
}

/// A test of a group.
#[derive(Debug, Clone)]
pub struct GroupCondition {
    /// A position in [`AggregateQuery::measures`].
    pub measure: usize,
    pub op: ComparisonOp,
    pub operand: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupOrder {
    pub target: OrderTarget,
    pub descending: bool,
}

/// What groups are sorted by, as a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderTarget {
    Key(usize),
    Measure(usize),
}

impl AggregateQuery {
    /// The number of cells of a row.
    pub fn cell_count(&self) -> usize {
        self.group_keys.len() + self.measures.len()
    }

    /// The position of a measure, which is added if it is new.
    pub fn add_measure(&mut self, measure: GroupMeasure) -> usize {
        self.measures.iter().position(|known| *known == measure).unwrap_or_else(|| {
            self.measures.push(measure);
            self.measures.len() - 1
        })
    }
}

impl GroupKey {
    /// The type of its values.
    pub fn value_type(&self, model: &Model, record: RecordTypeId) -> ValueType {
        match self.period {
            Some(period) => ValueType::Scalar(period.scalar()),
            None => field_type(self.path.target(model, model.record(record))),
        }
    }

    /// The record type whose ids it is: that of a reference, or of the record itself.
    pub fn identified_type<'m>(&self, model: &'m Model, record: RecordTypeId) -> Option<&'m RecordType> {
        let owner = self.path.owner(model, model.record(record));
        let kind = &owner.field(self.path.value.field).kind;
        let reference = kind.reference().map(|reference| model.record(reference.target));
        reference.or_else(|| kind.is_id().then_some(owner))
    }

    /// Why records cannot be grouped so, if that is the case.
    pub(crate) fn misfit(&self, model: &Model, record: RecordTypeId) -> Option<String> {
        let field = self.path.target(model, model.record(record));
        let (name, text) = (&field.name, &self.text);
        let scalar = field.kind.scalar();
        match self.period {
            _ if field.kind.list_item().is_some() => {
                Some(format!("`{text}`: `{name}` is a list, and records are grouped by single values"))
            }
            _ if !field.kind.is_comparable() => {
                Some(format!("`{text}`: `{name}` has no single values to group by"))
            }
            Some(TimePeriod::Hour) if scalar == Some(Scalar::Date) => {
                Some(format!("`{text}`: `{name}` is a date, which has no hour"))
            }
            Some(period) if scalar.is_none_or(|scalar| scalar.group() != ScalarGroup::Time) => {
                Some(format!("`{text}`: `{name}` is no date or time, so it has no {}", period.name()))
            }
            Some(_) | None => None,
        }
    }
}

impl GroupMeasure {
    /// The type of its values. Sums and means of integers are decimals, because they may be longer or have a fraction.
    pub fn value_type(&self, model: &Model, record: RecordTypeId) -> ValueType {
        match self {
            GroupMeasure::Count | GroupMeasure::OfField(MeasureFunction::CountDistinct, _) => {
                ValueType::Scalar(Scalar::Int)
            }
            GroupMeasure::OfField(MeasureFunction::Sum | MeasureFunction::Average, path) => {
                let is_real = path.target(model, model.record(record)).kind.scalar() == Some(Scalar::Float);
                ValueType::Scalar(if is_real { Scalar::Float } else { Scalar::Decimal })
            }
            GroupMeasure::OfField(MeasureFunction::Least | MeasureFunction::Greatest, path) => {
                field_type(path.target(model, model.record(record)))
            }
        }
    }

    /// Why it cannot be computed, if that is the case.
    pub(crate) fn misfit(&self, model: &Model, record: RecordTypeId) -> Option<String> {
        let GroupMeasure::OfField(function, path) = self else { return None };
        let field = path.target(model, model.record(record));
        let (word, expected) = match function {
            _ if function.fits(field) => return None,
            MeasureFunction::Sum => ("sum", "a number"),
            MeasureFunction::Average => ("average", "a number"),
            MeasureFunction::Least => ("least value", "a number, a time or text"),
            MeasureFunction::Greatest => ("greatest value", "a number, a time or text"),
            MeasureFunction::CountDistinct => ("number of different values", "a single value"),
        };
        Some(format!("`{}` is not {expected}, so it has no {word}", field.name))
    }
}

impl MeasureFunction {
    /// The names in requests.
    pub const NAMES: [(&'static str, MeasureFunction); 5] = [
        ("sum", MeasureFunction::Sum),
        ("avg", MeasureFunction::Average),
        ("min", MeasureFunction::Least),
        ("max", MeasureFunction::Greatest),
        ("countDistinct", MeasureFunction::CountDistinct),
    ];

    pub fn from_name(name: &str) -> Option<MeasureFunction> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, function)| function)
    }

    /// True if it can be computed of the values of this field.
    pub fn fits(self, field: &Field) -> bool {
        let fields = match self {
            MeasureFunction::Sum | MeasureFunction::Average => MeasureFields::Numbers,
            MeasureFunction::Least | MeasureFunction::Greatest => MeasureFields::Ordered,
            MeasureFunction::CountDistinct => MeasureFields::Comparable,
        };
        fields.contains(field)
    }
}

/// The type of a field that holds a single value.
fn field_type(field: &Field) -> ValueType {
    field.kind.value_type().cloned().unwrap_or(ValueType::Scalar(Scalar::Json))
}

/// The record type, for messages.
pub(crate) fn unknown_path_message(
    record: &RecordType,
    name: &str,
    purpose: &str,
    may_offer: impl Fn(&Field) -> bool,
) -> String {
    let known = record.fields.iter().filter(|field| !field.kind.is_unstored() && may_offer(field));
    let known = known.map(|field| field.name.as_str());
    let hint = trefoil_model::naming::names::nearest_name(name, known);
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    format!("{} has no field `{name}` to {purpose}{hint}", record.name)
}
