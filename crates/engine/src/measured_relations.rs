//! Measures the average lengths of lists of related records.

use std::sync::Arc;

use trefoil_model::error::Result;
use trefoil_model::{FieldId, FieldKind, RecordTypeId, Relation};

use crate::engine::Engine;
use crate::operation::{
    AggregateQuery, ChildSelection, GroupMeasure, ListSlice, Listing, Operation, Selection, SortKey,
};
use crate::plan::{PreparedSelection, RelationLengths};
use crate::row::Row;

/// The lists of so many of the oldest and as many of the newest records are counted.
const SAMPLE_SIZE: i64 = 100;

impl Engine {
    /// The average lengths of lists; the default ones until they are measured.
    pub fn relation_lengths(&self) -> Arc<RelationLengths> {
        self.measured_lengths().current()
    }

    /// Measures the lengths if they are old. False if they are not, so that nothing changed.
    pub async fn measure_relations(&self) -> Result<bool> {
        let measured = self.measured_lengths();
        if measured.is_recent() {
            return Ok(false);
        }
        let _measuring = measured.measuring.lock().await;
        if measured.is_recent() {
            return Ok(true);
        }
        let mut lengths = RelationLengths::default();
        for record in 0..self.model().records.len() {
            self.measure_record(RecordTypeId(record), &mut lengths).await?;
        }
        measured.replace(lengths);
        Ok(true)
    }

    async fn measure_record(&self, record: RecordTypeId, lengths: &mut RelationLengths) -> Result<()> {
        let record_type = self.model().record(record);
        let is_list =
            |kind: &FieldKind| matches!(kind, FieldKind::Relation(Relation::Inverse(_) | Relation::Link(_)));
        let lists: Vec<FieldId> = (0..record_type.fields.len())
            .map(FieldId)
            .filter(|field| is_list(&record_type.field(*field).kind))
            .collect();
        if lists.is_empty() {
            return Ok(());
        }
        let count = AggregateQuery { measures: vec![GroupMeasure::Count], ..AggregateQuery::default() };
        let children = lists.iter().map(|field| ChildSelection::groups(*field, count.clone())).collect();
        let selection = PreparedSelection::new(Selection::new(Vec::new(), children));
        let (mut owners, mut sums) = (0, vec![0; lists.len()]);
        for descending in [false, true] {
            let listing = Listing {
                sort_keys: vec![SortKey::by_field(record_type.id_field(), descending)],
                slice: ListSlice::First { first: SAMPLE_SIZE.min(self.limits().max_page_size), after: None },
                ..Listing::default()
            };
            let operation = Operation::List { record, listing, selection: selection.clone() };
            for row in self.collect(operation, selection.clone()).await?.rows {
                owners += 1;
                for (position, sum) in sums.iter_mut().enumerate() {
                    row.each_child(position, &mut |group| {
                        *sum +=
                            group.cell(0).to_i64().and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
                    });
                }
            }
        }
        for (field, sum) in lists.iter().zip(sums) {
            lengths.insert(record, *field, sum, owners);
        }
        Ok(())
    }
}
