//! Takes whole stores from one place to another: aside, back, and over to the other kind of database.
//!
//! A store is read in [`section`]s, each a table in the order of its key, and what is read is summed up; what was
//! written is read again and must sum up to the same. [`end`] is one side of a copy, on either database. Above them
//! stand [`backup`], [`restore`] and [`moving`]. What a store knows of itself ([`facts`]) goes with the rows.

pub mod backup;
pub(crate) mod copied_table;
pub(crate) mod copy;
pub(crate) mod examine_store;
pub(crate) mod expected_schema;
pub(crate) mod move_record;
pub(crate) mod move_store;
pub(crate) mod partial_file;
pub(crate) mod postgres;
pub mod restore;
pub(crate) mod sqlite;
pub(crate) mod store_handle;
pub(crate) mod store_location;
pub(crate) mod store_metadata;
pub(crate) mod transfer_error;

pub use crate::transfer::backup::{BackupLabel, BackupResult, back_up_store, read_label};
pub use crate::transfer::copied_table::TableDigest;
pub use crate::transfer::examine_store::{Contents, examine};
pub use crate::transfer::expected_schema::ExpectedSchema;
pub use crate::transfer::move_record::MoveRecord;
pub(crate) use crate::transfer::move_record::refuse_moved_store as refuse_elsewhere;
pub use crate::transfer::move_store::{MoveResult, move_store, undo_move};
pub use crate::transfer::partial_file::PartialStoreFile;
pub use crate::transfer::restore::{RestoreResult, restore_store};
pub use crate::transfer::store_location::StoreLocation;
pub use crate::transfer::store_metadata::last_ids;
pub use crate::transfer::transfer_error::TransferError;

/// Told how far the work is.
pub trait TransferProgress {
    /// Something of so many rows (or pages of a file) begins; of nothing that is counted where there are none.
    fn begin(&mut self, task: &'static str, unit: &'static str, total: u64);
    /// So many more are done.
    fn advance(&mut self, done: u64);
}

/// Nobody looks.
impl TransferProgress for () {
    fn begin(&mut self, _task: &'static str, _unit: &'static str, _total: u64) {}
    fn advance(&mut self, _done: u64) {}
}
