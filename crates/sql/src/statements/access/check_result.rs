//! [`CheckResult`]: what the rules of a write found where they refused nothing.

use trefoil_model::{FieldId, SourceLocation, StoredValue};

/// The fields of a record before a change.
pub type OldValues = Vec<(FieldId, StoredValue)>;

/// A record that a check allows to be written.
pub struct CheckedRecord {
    pub id: StoredValue,
    pub old: OldValues,
}

/// What a check found where nothing was refused.
pub enum CheckResult {
    Missing,
    /// For the actor the same: this rule hides a record.
    Hidden(Box<SourceLocation>),
    Passed(Vec<CheckedRecord>),
}

impl CheckResult {
    pub fn passed(self) -> Option<Vec<CheckedRecord>> {
        match self {
            CheckResult::Passed(records) => Some(records),
            CheckResult::Missing | CheckResult::Hidden(_) => None,
        }
    }
}
