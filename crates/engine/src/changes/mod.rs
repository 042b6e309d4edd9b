//! The change log as a subscriber follows it: where it starts, what comes after a place, and names for places that outlive the process.
//!
//! There is one way to follow, for what was missed and for what is live: ask for what comes [`Feed::after`] a number,
//! deliver it, ask again from where it ended. A gap between replay and live cannot exist, because there is no border.

pub(crate) mod change_feed;
pub(crate) mod change_filter;
pub(crate) mod event_id;
pub mod image;
pub(crate) mod image_row;
pub(crate) mod shared_work;

use std::sync::Arc;

pub use crate::changes::change_feed::{ChangeFeed, FeedGeneration, ReloadGuard};
pub use crate::changes::change_filter::ChangeFilter;
pub use crate::changes::image::{RecordImage, image_cell, parse_image};
pub(crate) use crate::changes::image_row::ImageRow;
pub use crate::changes::shared_work::{MemorySize, SharedWork, WorkFuture, WorkItem};

use crate::operation::ChangeKind;

/// The change log as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeLog {
    /// In order; the last one is the one that numbers are given in now.
    pub epochs: Vec<LogEpoch>,
    /// The changes up to this number are no longer kept.
    pub pruned_until: i64,
    /// The number of the last change.
    pub last_number: i64,
}

/// A stretch of the log with a name of its own. A restored store begins a new one, so that no id is given twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEpoch {
    pub tag: String,
    /// Its numbers are greater than this.
    pub after: i64,
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordChange {
    pub number: i64,
    /// The record type's name.
    pub type_name: String,
    pub kind: ChangeKind,
    pub record_id: i64,
    pub version: i64,
    /// The record as the change left it, or, when it was deleted, as it was: by column, as [`trefoil_model::Stored`] says.
    pub image: RecordImage,
}

/// A stretch of changes without a hole.
#[derive(Debug)]
pub struct ChangeBatch {
    pub changes: Vec<RecordChange>,
    /// Everything up to this number is in it: ask for what comes after this next.
    pub until: i64,
}

impl MemorySize for ChangeLog {
    fn memory_size(&self) -> usize {
        size_of::<ChangeLog>()
            + self.epochs.iter().map(|epoch| size_of::<LogEpoch>() + epoch.tag.len()).sum::<usize>()
    }
}

impl MemorySize for ChangeBatch {
    fn memory_size(&self) -> usize {
        let changes = self.changes.iter().map(|change| {
            let cells =
                change.image.iter().map(|(name, value)| crate::changes::image::cell_memory_size(name, value));
            size_of::<RecordChange>() + change.type_name.len() + cells.sum::<usize>()
        });
        size_of::<ChangeBatch>() + changes.sum::<usize>()
    }
}

/// What somebody's work came to, for everyone who waited for it.
pub type SharedResult<T> = trefoil_model::error::Result<Arc<T>>;
