//! `DetailLayout`: what a detail page reads of a record and of the records related to it.

use trefoil_engine::{AccessView, CountMode, ListSlice, Listing, Operation};
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId};
use trefoil_resources::collection::{NestedCollection, nested_collections};

use crate::labels::{ResourceLabels, ordered_fields};
use crate::phrases::MAX_COUNT;
use crate::record_reading::RecordReading;

/// Number of related records shown of each list.
const MAX_RELATED: i64 = 5;

/// The fields of a detail page and the lists below them.
pub struct DetailLayout {
    pub reading: RecordReading,
    pub related_lists: Vec<RelatedList>,
}

/// A list of related records.
pub struct RelatedList {
    pub label: String,
    pub nested: NestedCollection,
}

impl DetailLayout {
    /// What the actor may see of it.
    pub fn new(
        (model, view): (&Model, Option<&AccessView>),
        all_labels: &[ResourceLabels],
        record: RecordTypeId,
    ) -> DetailLayout {
        let is_shown = |owner: RecordTypeId, field| view.is_none_or(|view| !view.hides_field(owner, field));
        let owner = model.record(record);
        let stored = ordered_fields(owner).into_iter();
        let stored = stored.filter(|(_, field)| field.is_stored() && !field.display.off.detail);
        let stored: Vec<FieldId> =
            stored.map(|(id, _)| id).filter(|field| is_shown(record, *field)).collect();
        let reading = RecordReading::new(model, all_labels, record, &stored).with_version();
        let label = |nested: &NestedCollection| owner.field(nested.field).label();
        let is_listed = |nested: &NestedCollection| {
            let reference = nested.reference();
            let is_wanted = !owner.field(nested.field).display.off.detail;
            is_wanted
                && is_shown(record, nested.field)
                && reference.is_none_or(|field| is_shown(nested.record, field))
        };
        let related_lists = nested_collections(owner)
            .filter(is_listed)
            .map(|nested| RelatedList { label: label(&nested), nested });
        let related_lists = related_lists.collect();
        DetailLayout { reading, related_lists }
    }

    /// The operations for related records, read together with the record itself.
    pub fn list_operations(&self, readings: &[RecordReading], id: &RecordId) -> Vec<Operation> {
        let list = |RelatedList { nested, .. }: &RelatedList| {
            let listing = Listing {
                conditions: vec![nested.condition(self.reading.record, id)],
                slice: ListSlice::First { first: MAX_RELATED, after: None },
                count: CountMode::UpTo(MAX_COUNT),
                ..Listing::default()
            };
            let selection = readings[nested.record.0].selection.clone();
            Operation::List { record: nested.record, listing, selection }
        };
        self.related_lists.iter().map(list).collect()
    }
}
