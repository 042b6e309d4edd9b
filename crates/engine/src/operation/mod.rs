//! The input of the engine: an [`Operation`] on records or on a plain list.

mod condition;
mod listing;
mod outcome;
mod selection;
mod sort_key;

use std::sync::Arc;

use trefoil_model::{FieldId, RecordId, RecordTypeId, Value};

use crate::changes::RecordImage;
use crate::plain_list::PlainListOperation;
use crate::plan::PreparedSelection;

pub use crate::operation::condition::{Condition, FieldComparison, MAX_CONDITION_DEPTH, ValuePath};
pub use crate::operation::listing::{CountMode, ListSearch, ListSlice, Listing};
pub use crate::operation::outcome::Outcome;
pub use crate::operation::selection::{ChildSelection, Selection};
pub use crate::operation::sort_key::{
    MAX_SORT_DEPTH, MAX_SORT_PATHS, RANK_NAME, ReferencePath, SortKey, SortValue,
};

/// One operation. Names are resolved, values are as received: [`crate::plan`] validates them.
#[derive(Debug, Clone)]
pub enum Operation {
    Get {
        record: RecordTypeId,
        id: RecordId,
        selection: Arc<PreparedSelection>,
    },
    List {
        record: RecordTypeId,
        listing: Listing,
        selection: Arc<PreparedSelection>,
    },
    Create {
        record: RecordTypeId,
        /// `None` if the store or the server makes it.
        id: Option<RecordId>,
        fields: Vec<(FieldId, Value)>,
        filled_fields: Vec<FilledField>,
        selection: Arc<PreparedSelection>,
    },
    /// Creates all of these records, or none.
    CreateMany {
        record: RecordTypeId,
        items: Vec<Vec<(FieldId, Value)>>,
        filled_fields: Vec<FilledField>,
        selection: Arc<PreparedSelection>,
    },
    /// Changes the given fields of every record that matches.
    UpdateMany {
        record: RecordTypeId,
        conditions: Vec<Condition>,
        fields: Vec<(FieldId, Value)>,
        filled_fields: Vec<FilledField>,
    },
    /// Updates the record that has the given values in the fields `by`, else creates one.
    Upsert {
        record: RecordTypeId,
        by: Vec<FieldId>,
        fields: Vec<(FieldId, Value)>,
        filled_fields: Vec<FilledField>,
        selection: Arc<PreparedSelection>,
    },
    /// Deletes every record that matches.
    DeleteMany {
        record: RecordTypeId,
        conditions: Vec<Condition>,
    },
    Update {
        record: RecordTypeId,
        id: RecordId,
        /// The given fields; the others …
        fields: Vec<(FieldId, Value)>,
        filled_fields: Vec<FilledField>,
        /// … keep their value, or are reset to their default or null.
        missing_fields: MissingFields,
        expected_version: Option<i64>,
        selection: Arc<PreparedSelection>,
    },
    Delete {
        record: RecordTypeId,
        id: RecordId,
        expected_version: Option<i64>,
        selection: Arc<PreparedSelection>,
    },
    /// The record as a change left it; related records are read now.
    ReadImage {
        record: RecordTypeId,
        /// By column, as in [`crate::RecordChange`].
        image: RecordImage,
        selection: Arc<PreparedSelection>,
    },
    /// An operation on a plain list, whose rows have one text cell.
    PlainList(PlainListOperation),
}

impl Operation {
    /// The record id that it names, if any.
    pub fn id(&self) -> Option<&RecordId> {
        match self {
            Operation::Get { id, .. } | Operation::Update { id, .. } | Operation::Delete { id, .. } => {
                Some(id)
            }
            Operation::Create { id, .. } => id.as_ref(),
            Operation::List { .. }
            | Operation::CreateMany { .. }
            | Operation::UpdateMany { .. }
            | Operation::Upsert { .. }
            | Operation::DeleteMany { .. }
            | Operation::ReadImage { .. }
            | Operation::PlainList(_) => None,
        }
    }
}

/// A field that the operation fills by itself if no value is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledField {
    pub field: FieldId,
    pub value: FillValue,
    /// Also when a record changes, not only when it is created.
    pub on_update: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillValue {
    CurrentTime,
    CurrentDate,
    False,
    Zero,
    EmptyList,
}

/// How an update treats the fields that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFields {
    Keep,
    Reset,
}
