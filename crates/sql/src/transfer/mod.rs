//! Copies whole stores: backup, restore, and moving between SQLite and PostgreSQL.
//!
//! A store is read table by table in the order of the key (`copied_table`), and a digest of what was read is compared
//! with a digest of what was written. `store_handle` is one side of a copy, on either database; `store_metadata`
//! goes along with the rows. `backup`, `restore` and `move_store` are built on these.

// The arguments and errors of the commands.
pub(crate) mod expected_schema;
pub(crate) mod store_location;
pub(crate) mod transfer_error;
pub(crate) mod transfer_progress;

// One side of a copy, and the tables and metadata that are copied.
pub(crate) mod copied_table;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod store_handle;
pub(crate) mod store_metadata;

// Copying and comparing, and the file that a copy is written to.
pub(crate) mod copy;
pub(crate) mod partial_file;

// The commands.
pub mod backup;
pub(crate) mod close_store;
pub(crate) mod examine_store;
pub(crate) mod move_store;
pub mod restore;

pub use crate::move_record::StoreMove;
pub use crate::transfer::backup::{BackupLabel, BackupResult, back_up_store, read_label};
pub use crate::transfer::copied_table::TableDigest;
pub use crate::transfer::examine_store::{StoreContents, examine_store};
pub use crate::transfer::expected_schema::ExpectedSchema;
pub use crate::transfer::move_store::{MoveResult, move_store, undo_move};
pub use crate::transfer::partial_file::PartialStoreFile;
pub use crate::transfer::restore::{RestoreResult, restore_store};
pub use crate::transfer::store_location::StoreLocation;
pub use crate::transfer::store_metadata::last_ids;
pub use crate::transfer::transfer_error::TransferError;
pub use crate::transfer::transfer_progress::TransferProgress;
