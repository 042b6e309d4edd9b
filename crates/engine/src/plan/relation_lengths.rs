//! The average number of records in each list of related records, as far as the store knows: what a list without a limit
//! is expected to cost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tokio::sync::Mutex;

use trefoil_model::{FieldId, RecordTypeId};

use crate::plan::plan_limits::DEFAULT_LIST_LENGTH;

/// So many lists of related records inside each other count with their average length, others with the greatest: an
/// average says little of single records, and errors multiply.
pub const MAX_MEASURED_LISTS: usize = 2;

/// Lengths are measured again if they are older than this.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Average lengths by record type and relation.
#[derive(Debug)]
pub struct RelationLengths {
    measured: HashMap<(RecordTypeId, FieldId), u64>,
    /// The length of the others.
    otherwise: u64,
}

impl Default for RelationLengths {
    fn default() -> RelationLengths {
        RelationLengths { measured: HashMap::new(), otherwise: DEFAULT_LIST_LENGTH }
    }
}

impl RelationLengths {
    /// The least that could be measured.
    pub fn shortest() -> RelationLengths {
        RelationLengths { measured: HashMap::new(), otherwise: 1 }
    }

    /// Records that the lists of `owners` records have `sum` records in all.
    pub fn insert(&mut self, record: RecordTypeId, relation: FieldId, sum: u64, owners: u64) {
        let average = u64::div_ceil(sum, owners.max(1)).clamp(1, DEFAULT_LIST_LENGTH);
        self.measured.insert((record, relation), average);
    }

    /// The length of a list inside so many others. From 1 to [`DEFAULT_LIST_LENGTH`], so that an operation that is
    /// allowed stays so as the data grows.
    pub fn expected(&self, record: RecordTypeId, relation: FieldId, outer_lists: usize) -> u64 {
        if outer_lists >= MAX_MEASURED_LISTS {
            return DEFAULT_LIST_LENGTH;
        }
        self.measured.get(&(record, relation)).copied().unwrap_or(self.otherwise)
    }
}

/// The lengths that were measured last.
#[derive(Default)]
pub(crate) struct MeasuredLengths {
    current: RwLock<Option<(Instant, Arc<RelationLengths>)>>,
    /// Held while lengths are measured, by one request for all.
    pub measuring: Mutex<()>,
}

impl MeasuredLengths {
    /// The default lengths until some are measured.
    pub fn current(&self) -> Arc<RelationLengths> {
        self.current.read().as_ref().map(|(_, lengths)| lengths.clone()).unwrap_or_default()
    }

    pub fn replace(&self, lengths: Arc<RelationLengths>) {
        *self.current.write() = Some((Instant::now(), lengths));
    }

    pub fn is_recent(&self) -> bool {
        self.current.read().as_ref().is_some_and(|(measured_at, _)| measured_at.elapsed() < MAX_AGE)
    }
}
