//! How an operation ended.

use trefoil_model::{RecordId, SourceLocation};

use crate::plain_list::PlainListPosition;

/// The result of an operation; its records went to the [`crate::RowSink`] row by row before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// One row was read.
    Found,
    /// There is no such record, and no row was read.
    NotFound,
    /// The same for the caller: this rule hides the record that was to be written. The rule is for the log only.
    OutOfSight(Box<SourceLocation>),
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

impl Outcome {
    /// Whether there is no such record for the caller.
    pub fn is_missing(&self) -> bool {
        match self {
            Outcome::NotFound | Outcome::OutOfSight(_) => true,
            Outcome::Found
            | Outcome::Listed { .. }
            | Outcome::Created { .. }
            | Outcome::Updated { .. }
            | Outcome::Deleted { .. }
            | Outcome::ChangedMany { .. }
            | Outcome::PlainList { .. } => false,
        }
    }
}
