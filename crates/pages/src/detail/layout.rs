//! `DetailLayout`: what a detail page reads of a record and of the records related to it.

use trefoil_engine::{CountMode, ListSlice, Listing, Operation};
use trefoil_model::naming::names;
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId};
use trefoil_resources::collection::{NestedCollection, nested_collections};

use crate::labels::ResourceLabels;
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
    pub fn new(model: &Model, all_labels: &[ResourceLabels], record: RecordTypeId) -> DetailLayout {
        let owner = model.record(record);
        let stored = owner.fields.iter().enumerate().filter(|(_, field)| field.is_stored());
        let stored: Vec<FieldId> = stored.map(|(i, _)| FieldId(i)).collect();
        let reading = RecordReading::new(model, all_labels, record, &stored).with_version();
        let label = |nested: &NestedCollection| names::display_label(&owner.field(nested.field).name);
        let related_lists =
            nested_collections(owner).map(|nested| RelatedList { label: label(&nested), nested }).collect();
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
