//! `GroupChoices`: the fields that a summary offers to group by, and the measures it offers.

use trefoil_engine::{AccessView, MeasureFunction};
use trefoil_model::{Field, Model, RecordType, RecordTypeId, Scalar, ScalarGroup, TimePeriod, ValueSource};

use crate::labels::{ResourceLabels, field_label, is_long_text, noun_form};

/// What the forms of a record type's summary offer, each as parameter text and label.
pub struct GroupChoices {
    pub group_keys: Vec<(String, String)>,
    pub measures: Vec<(String, String)>,
    /// The text of the first group key, where the address has none.
    pub default_key: String,
}

/// The measure where the address has none.
pub const DEFAULT_MEASURE: &str = "count";

impl GroupChoices {
    /// `None` if the type has no field to group by that the actor may see.
    pub fn new(
        (model, view): (&Model, Option<&AccessView>),
        all_labels: &[ResourceLabels],
        record: RecordTypeId,
    ) -> Option<GroupChoices> {
        let is_shown = |owner: RecordTypeId, field: &Field| {
            let id = model.record(owner).find_field(&field.name);
            view.zip(id).is_none_or(|(view, id)| !view.hides_field(owner, id))
        };
        let is_own_shown = |field: &&Field| is_shown(record, field);
        let (owner, labels) = (model.record(record), &all_labels[record.0]);
        let mut group_keys = Vec::new();
        for field in group_fields(owner).filter(is_own_shown) {
            group_keys.extend(own_keys(field));
            let Some(reference) = field.kind.reference() else { continue };
            let target = model.record(reference.target);
            // The name of the record is shown for the reference itself.
            let title = &all_labels[reference.target.0].title;
            let is_title = |field: &Field| title.fields().any(|id| target.field(id).name == field.name);
            let related = group_fields(target).filter(|field| !is_title(field) && is_category(field));
            let related = related.filter(|field| is_shown(reference.target, field));
            let key = |inner: &Field| {
                let label = format!("{}: {}", field_label(field), field_label(inner));
                (format!("{}.{}", field.name, inner.name), label)
            };
            group_keys.extend(related.map(key));
        }
        let numbers = stored_fields(owner).filter(|field| field.kind.is_number()).filter(is_own_shown);
        let measures = numbers.flat_map(measures_of);
        let count = (DEFAULT_MEASURE.to_owned(), format!("Number of {}", labels.plural_noun));
        Some(GroupChoices {
            default_key: default_key(owner, &is_own_shown).or_else(|| Some(group_keys.first()?.0.clone()))?,
            group_keys,
            measures: std::iter::once(count).chain(measures).collect(),
        })
    }
}

fn stored_fields(record: &RecordType) -> impl Iterator<Item = &Field> {
    record.fields.iter().filter(|field| {
        field.is_stored() && !field.kind.is_id() && field.value_source != ValueSource::RecordVersion
    })
}

/// The fields whose values several records can have.
fn group_fields(record: &RecordType) -> impl Iterator<Item = &Field> {
    stored_fields(record).filter(|field| field.kind.is_comparable() && !field.unique && !is_long_text(field))
}

/// True if records of another type can be grouped by it: a choice or a text.
fn is_category(field: &Field) -> bool {
    match field.kind.scalar().map(Scalar::group) {
        Some(ScalarGroup::Text | ScalarGroup::Boolean) => true,
        Some(ScalarGroup::Number | ScalarGroup::Time | ScalarGroup::Uuid | ScalarGroup::Json) => false,
        None => true,
    }
}

fn is_time(field: &Field) -> bool {
    field.kind.scalar().is_some_and(|scalar| scalar.group() == ScalarGroup::Time)
}

/// The field itself, or its periods.
fn own_keys(field: &Field) -> Vec<(String, String)> {
    if !is_time(field) {
        return vec![(field.name.clone(), field_label(field))];
    }
    let has_hours = field.kind.scalar().is_some_and(Scalar::has_clock);
    let periods = TimePeriod::ALL.into_iter().filter(|period| *period != TimePeriod::Hour || has_hours);
    periods.map(|period| period_key(field, period)).collect()
}

fn period_key(field: &Field, period: TimePeriod) -> (String, String) {
    (format!("{}({})", period.name(), field.name), period_label(&field_label(field), period))
}

/// "Placed at (month)".
pub fn period_label(label: &str, period: TimePeriod) -> String {
    format!("{label} ({})", period.name())
}

fn measures_of(field: &Field) -> impl Iterator<Item = (String, String)> {
    let functions = MeasureFunction::NAMES.into_iter();
    let functions = functions.filter(|(_, function)| *function != MeasureFunction::CountDistinct);
    functions.map(|(name, function)| {
        (format!("{name}({})", field.name), measure_label(function, &field_label(field)))
    })
}

/// "Sum of quantity".
pub fn measure_label(function: MeasureFunction, field: &str) -> String {
    let noun = noun_form(field);
    match function {
        MeasureFunction::Sum => format!("Sum of {noun}"),
        MeasureFunction::Average => format!("Average {noun}"),
        MeasureFunction::Least => format!("Least {noun}"),
        MeasureFunction::Greatest => format!("Greatest {noun}"),
        MeasureFunction::CountDistinct => format!("Different values of {noun}"),
    }
}

/// The first enum, else Boolean, else time by month, else reference.
fn default_key(record: &RecordType, is_shown: &dyn Fn(&&Field) -> bool) -> Option<String> {
    let first =
        |is_wanted: fn(&Field) -> bool| group_fields(record).filter(is_shown).find(|field| is_wanted(field));
    let is_enum = |field: &Field| field.kind.value_type().is_some_and(|ty| ty.enum_name().is_some());
    let is_boolean = |field: &Field| field.kind.scalar() == Some(Scalar::Boolean);
    let choice = first(is_enum).or_else(|| first(is_boolean)).map(|field| field.name.clone());
    choice
        .or_else(|| first(is_time).map(|field| period_key(field, TimePeriod::Month).0))
        .or_else(|| first(|field| field.kind.is_reference()).map(|field| field.name.clone()))
}
