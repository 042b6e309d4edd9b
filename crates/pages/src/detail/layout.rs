//! `DetailLayout`: what a detail page reads of a record and of the records related to it.

use trefoil_engine::{ChildSelection, CountMode, ListSlice, Listing, Operation, Selection};
use trefoil_model::naming::names;
use trefoil_model::{FieldId, Link, Model, RecordId, RecordTypeId, Relation};
use trefoil_resources::collection::equals_id;

use crate::labels::ResourceLabels;
use crate::phrases::MAX_COUNT;
use crate::record_reading::RecordReading;

/// Number of referring records shown.
const MAX_REFERRING: i64 = 5;

/// Number of linked records shown: more, since they have no list page of their own.
const MAX_LINKED: i64 = 50;

/// The fields of a detail page and the lists below them.
pub struct DetailLayout {
    pub reading: RecordReading,
    pub related_lists: Vec<RelatedList>,
}

/// A list of related records.
pub struct RelatedList {
    pub label: String,
    pub record: RecordTypeId,
    pub kind: RelationKind,
}

pub enum RelationKind {
    /// Records that refer to the displayed one by this field; their list is at the segment.
    Referring { reference: FieldId, segment: String },
    /// Linked records: children at this position. The children at the next position are ids alone, for the count.
    Linked { child: usize },
}

impl DetailLayout {
    pub fn new(
        model: &Model,
        all_labels: &[ResourceLabels],
        readings: &[RecordReading],
        record: RecordTypeId,
    ) -> DetailLayout {
        let owner = model.record(record);
        let stored = owner.fields.iter().enumerate().filter(|(_, field)| field.is_stored());
        let stored: Vec<FieldId> = stored.map(|(i, _)| FieldId(i)).collect();
        let reading = RecordReading::new(model, all_labels, record, &stored);
        let (reference_count, mut children) = (reading.reference_count(), Vec::new());
        let mut related_lists = Vec::new();
        for (i, field) in owner.fields.iter().enumerate() {
            let (record, kind) = match field.kind.relation() {
                Some(Relation::Inverse(inverse)) => {
                    let segment = names::path_segment(&field.name);
                    (inverse.target, RelationKind::Referring { reference: inverse.field, segment })
                }
                Some(Relation::Link(Link { target, .. })) => {
                    let child = reference_count + children.len();
                    let rows = Selection::clone(&readings[target.0].selection);
                    children.push(linked_child(FieldId(i), MAX_LINKED, rows));
                    let ids = Selection::new(vec![model.record(*target).id_field()], Vec::new());
                    children.push(linked_child(FieldId(i), i64::from(MAX_COUNT) + 1, ids));
                    (*target, RelationKind::Linked { child })
                }
                Some(Relation::Reference(_)) | None => continue,
            };
            related_lists.push(RelatedList { label: names::display_label(&field.name), record, kind });
        }
        DetailLayout { reading: reading.with_children(children), related_lists }
    }

    /// The operations for referring records, read together with the record itself.
    pub fn list_operations(&self, readings: &[RecordReading], id: &RecordId) -> Vec<Operation> {
        let list = |related: &RelatedList| match &related.kind {
            RelationKind::Linked { .. } => None,
            RelationKind::Referring { reference, .. } => {
                let listing = Listing {
                    conditions: vec![equals_id(*reference, id)],
                    slice: ListSlice::First { first: MAX_REFERRING, after: None },
                    count: CountMode::UpTo(MAX_COUNT),
                    ..Listing::default()
                };
                let selection = readings[related.record.0].selection.clone();
                Some(Operation::List { record: related.record, listing, selection })
            }
        };
        self.related_lists.iter().filter_map(list).collect()
    }
}

fn linked_child(field: FieldId, first: i64, selection: Selection) -> ChildSelection {
    let listing = Listing { slice: ListSlice::First { first, after: None }, ..Listing::default() };
    ChildSelection::new(field, listing, selection)
}
