//! The sums below a list, of the fields with `@display(sum: true)`.

use trefoil_engine::{AggregateQuery, Engine, GroupMeasure, Listing, MeasureFunction, Operation, OwnedRow};
use trefoil_model::{FieldId, RecordTypeId};

use crate::detail::display::{ValueDisplay, display_typed, format_number, typed_value};
use crate::labels::field_label;
use crate::summary::choices::measure_label;
use crate::template_data::{DisplayValue, LabelledValue};

/// The sums of all records that a list has on its pages; `None` if its type asks for none.
pub fn sum_operation(engine: &Engine, record: RecordTypeId, listing: &Listing) -> Option<Operation> {
    let measures: Vec<GroupMeasure> = sum_fields(engine, record).map(sum_measure).collect();
    let query = AggregateQuery {
        conditions: listing.conditions.clone(),
        search: listing.search.clone(),
        measures,
        ..AggregateQuery::default()
    };
    (!query.measures.is_empty()).then_some(Operation::Aggregate { record, query })
}

/// The result of [`sum_operation`] with labels.
pub fn sum_values(
    engine: &Engine,
    record: RecordTypeId,
    row: &OwnedRow,
    is_part: bool,
) -> Vec<LabelledValue> {
    let (model, owner) = (engine.model(), engine.model().record(record));
    let sums = sum_fields(engine, record).zip(&row.cells).map(|(field, cell)| {
        let value_type = sum_measure(field).value_type(model, record);
        let label = measure_label(MeasureFunction::Sum, &field_label(owner.field(field)));
        let value = typed_value(&value_type, cell.as_cell());
        LabelledValue {
            label: if is_part { format!("{label}, all pages") } else { label },
            value: value.map_or(DisplayValue::Nothing, |value| {
                let shown = display_typed(ValueDisplay::of(engine), &value_type, &value);
                format_number(shown, owner.field(field).display.format)
            }),
        }
    });
    sums.collect()
}

/// Of the fields that the actor may see.
fn sum_fields(engine: &Engine, record: RecordTypeId) -> impl Iterator<Item = FieldId> {
    let fields = engine.model().record(record).fields.iter().enumerate();
    let fields = fields.filter(|(_, field)| field.display.sum).map(|(position, _)| FieldId(position));
    fields.filter(move |field| engine.shows_field(record, *field))
}

fn sum_measure(field: FieldId) -> GroupMeasure {
    GroupMeasure::OfField(MeasureFunction::Sum, field.into())
}
