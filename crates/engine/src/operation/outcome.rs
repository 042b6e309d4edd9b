//! How an operation ended.

use trefoil_model::RecordId;

use crate::plain_list::PlainListPosition;

/// The result of an operation; its records went to the [`crate::RowSink`] row by row before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// One row was read.
    Found,
    /// There is no such record, and no row was read.
    NotFound,
    Listed {
        has_more: bool,
        total: Option<u64>,
    },
    Created {
        id: RecordId,
        version: i64,
    },
    Updated {
        id: RecordId,
        version: i64,
    },
    Deleted {
        id: RecordId,
    },
    /// So many records were created, changed or deleted.
    ChangedMany {
        count: u64,
    },
    /// The plain list as it is now; `remaining` is the part that was not read yet.
    PlainList {
        version: i64,
        length: i64,
        remaining: Option<PlainListPosition>,
    },
}
