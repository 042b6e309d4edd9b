//! What filters say of related records: tests that the store runs for all changes of a batch at once.
//!
//! A reference leads from the changed record as its image shows it to a record that is read. Of a list, the record itself
//! is read; one that is deleted has no lists any more.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use trefoil_model::{FieldId, Model, RecordId, RecordTypeId};

use crate::changes::record_image::image_cell;
use crate::changes::{ChangeBatch, ChangeKind, MemorySize, RecordChange, SingleFlightCache};
use crate::operation::{Condition, ListSlice, Listing, Operation, Selection};
use crate::plan::PreparedSelection;

/// Bytes of results kept for subscriptions that come to the same changes a little later.
const CACHE_BYTES: usize = 16 << 10;

/// The tests of related records in one filter, shared by all filters with the same tests.
pub struct RelationTests {
    /// The type of the changed records.
    pub record: RecordTypeId,
    tests: Vec<RelationTest>,
    /// Results by the first and last number of a batch.
    pub results: Arc<SingleFlightCache<(i64, i64), RelationMatches>>,
}

/// A test of the records that one relation leads to.
struct RelationTest {
    /// Equal exactly for equal tests of a record type.
    key: String,
    /// The column with the id of the record to read; `None` if it is the changed record.
    reference: Option<String>,
    /// The type of the record to read, and what it must meet.
    record: RecordTypeId,
    conditions: Vec<Condition>,
    selection: Arc<PreparedSelection>,
}

/// The records that met each test.
#[derive(Debug, Default)]
pub struct RelationMatches(pub Vec<HashSet<RecordId>>);

impl RelationTests {
    pub fn new(record: RecordTypeId) -> RelationTests {
        RelationTests { record, tests: Vec::new(), results: SingleFlightCache::new(CACHE_BYTES) }
    }

    pub fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    /// The position of a test, which is added if missing; `None` if the field is no relation.
    pub fn add(&mut self, model: &Model, relation: FieldId, conditions: &[Condition]) -> Option<usize> {
        let key = format!("{relation:?} {conditions:?}");
        if let Some(position) = self.tests.iter().position(|test| test.key == key) {
            return Some(position);
        }
        let field = model.record(self.record).field(relation);
        let (record, reference, conditions) = match field.kind.is_reference() {
            true => (field.kind.relation()?.target(), Some(field.column.clone()), conditions.to_vec()),
            false => {
                field.kind.relation()?;
                (self.record, None, vec![Condition::some_related(relation, conditions.to_vec())])
            }
        };
        let id = model.record(record).id_field();
        let selection = PreparedSelection::new(Selection::new(vec![id], Vec::new()));
        self.tests.push(RelationTest { key, reference, record, conditions, selection });
        Some(self.tests.len() - 1)
    }

    /// Reads the ids of the records that meet each test, for all changes of the batch: by the position of the test. None
    /// for a test without a record to read.
    pub fn operations(&self, model: &Model, batch: &ChangeBatch) -> Vec<(usize, Operation)> {
        let type_name = &model.record(self.record).name;
        let changes = || batch.changes.iter().filter(|change| change.type_name == *type_name);
        let operation = |(position, test): (usize, &RelationTest)| {
            let ids: BTreeSet<RecordId> = changes().filter_map(|change| test.read_id(change)).collect();
            if ids.is_empty() {
                return None;
            }
            // No more are found than are asked for; a short list does not need a connection of its own.
            let slice = ListSlice::First { first: ids.len() as i64, after: None };
            let has_id = Condition::HasId(ids.into_iter().collect());
            let conditions = [has_id].into_iter().chain(test.conditions.iter().cloned()).collect();
            let listing = Listing { conditions, slice, ..Listing::default() };
            let selection = test.selection.clone();
            Some((position, Operation::List { record: test.record, listing, selection }))
        };
        self.tests.iter().enumerate().filter_map(operation).collect()
    }

    /// The result of the test at this position for a change of the batch.
    pub fn is_match(&self, matches: &RelationMatches, position: usize, change: &RecordChange) -> bool {
        let (Some(test), Some(ids)) = (self.tests.get(position), matches.0.get(position)) else {
            return false;
        };
        test.read_id(change).is_some_and(|id| ids.contains(&id))
    }

    /// No record met a test yet.
    pub fn no_matches(&self) -> RelationMatches {
        RelationMatches(vec![HashSet::new(); self.tests.len()])
    }

    fn key(&self) -> String {
        let keys: Vec<&str> = self.tests.iter().map(|test| test.key.as_str()).collect();
        format!("{:?} {}", self.record, keys.join("\n"))
    }
}

impl RelationTest {
    /// The record to read for a change.
    fn read_id(&self, change: &RecordChange) -> Option<RecordId> {
        match &self.reference {
            Some(column) => RecordId::from_cell(image_cell(&change.image, column)),
            None => (change.kind != ChangeKind::Deleted).then(|| change.record_id.clone()),
        }
    }
}

impl MemorySize for RelationMatches {
    fn memory_size(&self) -> usize {
        let size = |id: &RecordId| match id {
            RecordId::Number(_) => size_of::<RecordId>(),
            RecordId::Text(text) => size_of::<RecordId>() + text.len(),
        };
        let sets =
            self.0.iter().map(|ids| size_of::<HashSet<RecordId>>() + ids.iter().map(size).sum::<usize>());
        sets.sum()
    }
}

/// The tests of all filters in use, so that equal ones are run once for all actors of a class.
#[derive(Default)]
pub struct RelationTestMap(Mutex<HashMap<ClassKey, Weak<RelationTests>>>);

/// The class of the actors, and what their tests say.
type ClassKey = (Option<u128>, String);

impl RelationTestMap {
    /// Equal tests that another filter uses, or these.
    pub fn share(&self, class: Option<u128>, tests: Arc<RelationTests>) -> Arc<RelationTests> {
        let key = (class, tests.key());
        let mut by_key = self.0.lock();
        if let Some(existing) = by_key.get(&key).and_then(Weak::upgrade) {
            return existing;
        }
        // Before the map grows, those that no filter uses any more are removed.
        if by_key.len() == by_key.capacity() {
            by_key.retain(|_, tests| tests.strong_count() > 0);
        }
        by_key.insert(key, Arc::downgrade(&tests));
        tests
    }
}
