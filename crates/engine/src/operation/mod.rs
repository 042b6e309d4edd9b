//! The input of the engine: an [`Operation`] on records or on a plain list.

mod aggregate;
mod condition;
mod listing;
mod nested_write;
mod outcome;
mod reference_path;
mod selection;
mod sort_key;
mod written_fields;

use std::sync::Arc;

use trefoil_model::{FieldId, RecordId, RecordTypeId, Value};

use crate::changes::RecordImage;
use crate::changes::image_list::ImageList;
use crate::plain_list::PlainListOperation;
use crate::plan::PreparedSelection;

pub(crate) use crate::operation::aggregate::unknown_path_message;
pub use crate::operation::aggregate::{
    AggregateQuery, GroupCondition, GroupKey, GroupMeasure, GroupOrder, MeasureFunction, OrderTarget,
};
pub use crate::operation::condition::{Condition, FieldComparison, MAX_CONDITION_DEPTH, ValuePath};
pub use crate::operation::listing::{CountMode, ListSearch, ListSlice, Listing};
pub use crate::operation::nested_write::{MAX_WRITE_DEPTH, NestedWrite, RecordInput, RelatedInput};
pub use crate::operation::outcome::Outcome;
pub use crate::operation::reference_path::ReferencePath;
pub use crate::operation::selection::{ChildSelection, Selection};
pub use crate::operation::sort_key::{MAX_SORT_DEPTH, MAX_SORT_PATHS, RANK_NAME, SortKey, SortValue};
pub use crate::operation::written_fields::{FillValue, FilledField, MissingFields};

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
    /// Updates the record that has the given id, or the given values in the fields `by`, else creates one.
    Upsert {
        record: RecordTypeId,
        id: Option<RecordId>,
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
    /// Writes a record together with records that are related to it: all of them, or none.
    Nested {
        record: RecordTypeId,
        write: NestedWrite,
        selection: Arc<PreparedSelection>,
    },
    /// The record as a change left it; related records are read now.
    ReadImage {
        record: RecordTypeId,
        /// By column, as in [`crate::RecordChange`].
        image: RecordImage,
        selection: Arc<PreparedSelection>,
    },
    /// The images that the actor sees: each row begins with the position of one.
    SeeImages {
        record: RecordTypeId,
        list: ImageList,
    },
    /// Groups of records; each row is one.
    Aggregate {
        record: RecordTypeId,
        query: AggregateQuery,
    },
    /// An operation on a plain list, whose rows have one text cell.
    PlainList(PlainListOperation),
}

impl Operation {
    /// Whether it can write related records too.
    pub fn takes_related(&self) -> bool {
        matches!(self, Operation::Create { .. } | Operation::Update { .. })
    }

    /// The operation together with what it does to related records, if it takes such.
    pub fn with_related(self, related: Vec<RelatedInput>) -> Operation {
        if related.is_empty() {
            return self;
        }
        match self {
            Operation::Create { record, id, fields, filled_fields, selection } => {
                let input = RecordInput { id, fields, filled_fields, related };
                Operation::Nested { record, write: NestedWrite::Create(input), selection }
            }
            Operation::Update {
                record,
                id,
                fields,
                filled_fields,
                missing_fields,
                expected_version,
                selection,
            } => {
                let input = RecordInput { id: None, fields, filled_fields, related };
                let write = NestedWrite::Update { id, input, missing_fields, expected_version };
                Operation::Nested { record, write, selection }
            }
            other @ (Operation::Get { .. }
            | Operation::Aggregate { .. }
            | Operation::List { .. }
            | Operation::CreateMany { .. }
            | Operation::UpdateMany { .. }
            | Operation::Upsert { .. }
            | Operation::DeleteMany { .. }
            | Operation::Delete { .. }
            | Operation::Nested { .. }
            | Operation::ReadImage { .. }
            | Operation::SeeImages { .. }
            | Operation::PlainList(_)) => other,
        }
    }

    /// The record id that it names, if any.
    pub fn id(&self) -> Option<&RecordId> {
        match self {
            Operation::Get { id, .. } | Operation::Update { id, .. } | Operation::Delete { id, .. } => {
                Some(id)
            }
            Operation::Create { id, .. } | Operation::Upsert { id, .. } => id.as_ref(),
            Operation::Nested { write: NestedWrite::Update { id, .. }, .. } => Some(id),
            Operation::List { .. }
            | Operation::CreateMany { .. }
            | Operation::UpdateMany { .. }
            | Operation::DeleteMany { .. }
            | Operation::Nested { .. }
            | Operation::ReadImage { .. }
            | Operation::SeeImages { .. }
            | Operation::Aggregate { .. }
            | Operation::PlainList(_) => None,
        }
    }
}
