//! The change log as subscribers follow it, with event ids that stay valid across restarts.
//!
//! Missed and live changes are read in the same way: ask for the changes after a number
//! ([`ChangeFeed::changes_after`]), deliver them, and ask again from where they end. As replay and live delivery are
//! the same, there cannot be a gap between them.

// Following the log.
pub(crate) mod change_feed;
pub(crate) mod retry_backoff;
pub(crate) mod single_flight_cache;

// The changes that one subscription receives, and where it continues.
pub(crate) mod change_filter;
pub(crate) mod event_id;
mod matching_changes;
pub(crate) mod relation_tests;

// Whether a stream may still deliver.
mod credential_log;

// What ends with a change of an account.
mod ended_accounts;

// Whether anything was changed at all.
mod version_probe;

// The record in a change.
pub(crate) mod image_list;
mod image_predicate;
pub(crate) mod image_row;
mod image_rules;
pub mod record_image;
mod visible_changes;

use trefoil_model::{CellValue, Field, RecordId, RecordType, ValueSource};

pub use crate::changes::change_feed::{ChangeFeed, FeedGeneration, ReloadGuard};
pub use crate::changes::change_filter::ChangeFilter;
pub use crate::changes::credential_log::{API_KEY_CHANGES, CredentialLog, KEY_IDENTITY, SESSION_CHANGES};
pub use crate::changes::image_list::{ImageList, seen_columns};
pub(crate) use crate::changes::image_row::ImageRow;
pub use crate::changes::image_rules::{CommonVerdict, EventAccess};
pub use crate::changes::record_image::{RecordImage, image_cell, parse_image};
pub(crate) use crate::changes::relation_tests::{RelationMatches, RelationTestMap, RelationTests};
pub use crate::changes::retry_backoff::RetryBackoff;
pub use crate::changes::single_flight_cache::{
    ComputationFuture, ComputationItem, MemorySize, SharedResult, SingleFlightCache,
};
pub(crate) use crate::changes::version_probe::VersionProbe;

/// The current state of the change log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeLog {
    /// Epochs in order; the last one is current.
    pub epochs: Vec<LogEpoch>,
    /// Changes up to this number are no longer kept.
    pub pruned_until: i64,
    /// The number of the last change.
    pub last_number: i64,
}

/// A named part of the log. A restored store begins a new one, so that no event id is issued twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEpoch {
    pub tag: String,
    /// The epoch's numbers are greater than this.
    pub after: i64,
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordChange {
    pub number: i64,
    /// The record type's name.
    pub type_name: String,
    pub kind: ChangeKind,
    pub record_id: RecordId,
    pub version: i64,
    /// The record after the change, or before it if it was deleted: [`trefoil_model::StoredValue`]s by column.
    pub image: RecordImage,
}

/// The member of an image with the columns that an update changed. No column can have this name.
pub const CHANGED_COLUMNS: &str = "changed columns";

impl RecordChange {
    /// The fields that the change gave other values, as far as clients can set them. Only the images of types with a
    /// subscription that tells them say so.
    pub fn changed_fields<'m>(&self, record: &'m RecordType) -> Vec<&'m str> {
        let CellValue::Text(columns) = image_cell(&self.image, CHANGED_COLUMNS) else { return Vec::new() };
        let columns: Vec<String> = serde_json::from_str(columns).unwrap_or_default();
        let is_changed =
            |field: &&Field| field.value_source == ValueSource::Client && columns.contains(&field.column);
        record.fields.iter().filter(is_changed).map(|field| field.name.as_str()).collect()
    }
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    Created,
    Updated,
    Deleted,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 3] = [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted];

    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Created => "created",
            ChangeKind::Updated => "updated",
            ChangeKind::Deleted => "deleted",
        }
    }
}

/// Consecutive changes without a gap.
#[derive(Debug)]
pub struct ChangeBatch {
    pub changes: Vec<RecordChange>,
    /// Everything up to this number is included; continue after it.
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
        let changes = self
            .changes
            .iter()
            .map(|change| size_of::<RecordChange>() + change.type_name.len() + change.image.memory_size());
        size_of::<ChangeBatch>() + changes.sum::<usize>()
    }
}
