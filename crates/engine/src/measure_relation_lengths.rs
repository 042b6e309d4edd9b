//! Measures the average lengths of lists of related records.

use std::sync::Arc;

use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, RecordTypeId, Relation};

use crate::access::Actor;
use crate::engine::Engine;
use crate::operation::{ChildSelection, ListSlice, Listing, Operation, Selection, SortKey};
use crate::plan::{DEFAULT_LIST_LENGTH, PreparedSelection, RelationLengths};
use crate::row::Row;

/// The lists of so many of the oldest and as many of the newest records are read, each up to the greatest length that
/// counts.
const SAMPLE_SIZE: i64 = 100;

impl Engine {
    /// The average lengths of lists; the default ones until they are measured.
    pub fn relation_lengths(&self) -> Arc<RelationLengths> {
        self.measured_lengths().current()
    }

    /// Measures the lengths if they are old. False if nothing changed: they are not old, or could not be measured.
    pub async fn measure_relations(&self) -> bool {
        let measured = self.measured_lengths();
        if measured.is_recent() {
            return false;
        }
        let _measuring = measured.measuring.lock().await;
        if measured.is_recent() {
            return true;
        }
        let mut lengths = RelationLengths::default();
        let operator = self.as_operator();
        for record in 0..self.model().records.len() {
            if let Err(error) = operator.measure_record(RecordTypeId(record), &mut lengths).await {
                tracing::warn!(%error, "the lengths of lists could not be measured");
                // Not again at once: whatever makes it fail may take long.
                measured.replace(measured.current());
                return false;
            }
        }
        measured.replace(Arc::new(lengths));
        true
    }

    async fn measure_record(&self, record: RecordTypeId, lengths: &mut RelationLengths) -> Result<()> {
        let (model, limits) = (self.model(), self.limits());
        let record_type = model.record(record);
        let first = |count: i64| ListSlice::First { first: count.min(limits.max_page_size), after: None };
        // What a list is expected to cost is told to everybody, so it is measured only where everybody sees the records.
        let anonymous = self.for_actor(&Actor::default());
        let view = anonymous.access_view();
        let is_public = |field| {
            view.is_none_or(|view| {
                view.verdict(AccessAction::Read, record) == AccessVerdict::Yes
                    && view.field_verdict(record, field) == AccessVerdict::Yes
            })
        };
        let mut lists = Vec::new();
        let mut children = Vec::new();
        for field in (0..record_type.fields.len()).map(FieldId) {
            let relation = record_type.field(field).kind.relation();
            if let Some(relation @ (Relation::Inverse(_) | Relation::Link(_))) = relation
                && is_public(field)
            {
                let id = model.record(relation.target()).id_field();
                let listing = Listing { slice: first(DEFAULT_LIST_LENGTH as i64), ..Listing::default() };
                lists.push(field);
                children.push(ChildSelection::new(field, listing, Selection::new(vec![id], Vec::new())));
            }
        }
        if lists.is_empty() {
            return Ok(());
        }
        let selection = PreparedSelection::new(Selection::new(Vec::new(), children));
        let (mut owners, mut sums) = (0, vec![0; lists.len()]);
        for descending in [false, true] {
            let listing = Listing {
                sort_keys: vec![SortKey::by_field(record_type.id_field(), descending)],
                slice: first(SAMPLE_SIZE),
                ..Listing::default()
            };
            let operation = Operation::List { record, listing, selection: selection.clone() };
            let rows = self.collect(operation, selection.clone()).await?.rows;
            for row in &rows {
                owners += 1;
                for (position, sum) in sums.iter_mut().enumerate() {
                    row.each_child(position, &mut |_| *sum += 1);
                }
            }
            // These were all.
            if (rows.len() as i64) < SAMPLE_SIZE {
                break;
            }
        }
        for (field, sum) in lists.iter().zip(sums) {
            lengths.insert(record, *field, sum, owners);
        }
        Ok(())
    }
}
