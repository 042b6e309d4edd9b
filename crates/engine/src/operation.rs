//! The input ([`Operation`]) and the result ([`Outcome`]) of the engine.

use std::sync::{Arc, OnceLock};

use trefoil_model::{FieldId, RecordTypeId, Value};

use crate::changes::RecordImage;
use crate::plain_list::{PlainListOperation, PlainListPosition};
use crate::plan::PlannedSelection;

/// One operation. Names are resolved, values are as received: [`crate::plan`] validates them.
#[derive(Debug, Clone)]
pub enum Operation {
    Get {
        record: RecordTypeId,
        id: i64,
        selection: Arc<Selection>,
    },
    List {
        record: RecordTypeId,
        listing: Listing,
        selection: Arc<Selection>,
    },
    Create {
        record: RecordTypeId,
        /// Only seeds and imports choose ids.
        id: Option<i64>,
        fields: Vec<(FieldId, Value)>,
        selection: Arc<Selection>,
    },
    Update {
        record: RecordTypeId,
        id: i64,
        /// The given fields; the others …
        fields: Vec<(FieldId, Value)>,
        /// … keep their value, or are reset to their default or null.
        missing_fields: MissingFields,
        expected_version: Option<i64>,
        selection: Arc<Selection>,
    },
    Delete {
        record: RecordTypeId,
        id: i64,
        expected_version: Option<i64>,
        selection: Arc<Selection>,
    },
    /// The record as a change left it; related records are read now.
    ReadImage {
        record: RecordTypeId,
        /// By column, as in [`crate::RecordChange`].
        image: RecordImage,
        selection: Arc<Selection>,
    },
    /// An operation on a plain list, whose rows have one text cell.
    PlainList(PlainListOperation),
}

impl Operation {
    /// The record id that it names, if any.
    pub fn id(&self) -> Option<i64> {
        match self {
            Operation::Get { id, .. } | Operation::Update { id, .. } | Operation::Delete { id, .. } => {
                Some(*id)
            }
            Operation::Create { id, .. } => *id,
            Operation::List { .. } | Operation::ReadImage { .. } | Operation::PlainList(_) => None,
        }
    }
}

/// How an update treats the fields that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFields {
    Keep,
    Reset,
}

/// The records of a list and their order.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub conditions: Vec<Condition>,
    /// Matches records with this text in any text field, ignoring case.
    pub search: Option<String>,
    /// Ties are broken by id, ascending.
    pub sort_keys: Vec<SortKey>,
    pub slice: ListSlice,
    /// Counts all matching records, whatever the slice.
    pub count: CountMode,
    /// Also reads what cursors need: the sort keys and the id follow the selected columns.
    pub with_cursors: bool,
}

/// How the records of a list are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountMode {
    #[default]
    Skip,
    Exact,
    /// Counts up to one more than this number, which then means "more": the cost does not grow with the list.
    UpTo(u32),
}

#[derive(Debug, Clone)]
pub struct Condition {
    pub field: FieldId,
    pub op: ComparisonOp,
    pub value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ComparisonOp {
    /// Null equals null.
    Eq,
    Ne,
    Lt,
    Lte,
    Gt,
    Gte,
    /// Substring, case-sensitive.
    Contains,
    /// Any value of a list.
    In,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortKey {
    pub field: FieldId,
    pub descending: bool,
}

impl SortKey {
    /// Appends it, unless the field is a sort key already.
    pub fn append_to(self, sort_keys: &mut Vec<SortKey>) {
        if !sort_keys.iter().any(|known| known.field == self.field) {
            sort_keys.push(self);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum ListSlice {
    #[default]
    All,
    /// Pages count from 1.
    Page { page: i64, size: i64 },
    /// The first records after a cursor.
    First { first: i64, after: Option<String> },
}

/// The columns and children to read of each record, both addressed by position. Immutable, so that it is planned
/// once, however often requests use it.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Fields with a column; [`crate::Row::cell`] takes a position in this list.
    pub columns: Vec<FieldId>,
    /// References, inverses and links; [`crate::Row::each_child`] takes a position in this list.
    pub children: Vec<ChildSelection>,
    /// Also reads the record's version, after the selected columns. Not for children.
    pub includes_version: bool,
    pub(crate) planned: OnceLock<Arc<PlannedSelection>>,
}

impl Selection {
    pub fn new(columns: Vec<FieldId>, children: Vec<ChildSelection>) -> Selection {
        Selection { columns, children, includes_version: false, planned: OnceLock::new() }
    }

    /// The same selection with the version after the columns.
    pub fn with_version(self) -> Selection {
        Selection { includes_version: true, planned: OnceLock::new(), ..self }
    }
}

#[derive(Debug, Clone)]
pub struct ChildSelection {
    pub field: FieldId,
    /// Empty for references.
    pub listing: Listing,
    pub selection: Selection,
}

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
        id: i64,
        version: i64,
    },
    Updated {
        id: i64,
        version: i64,
    },
    Deleted {
        id: i64,
    },
    /// The plain list as it is now; `remaining` is the part that was not read yet.
    PlainList {
        version: i64,
        length: i64,
        remaining: Option<PlainListPosition>,
    },
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    Created,
    Updated,
    Deleted,
}

impl ChangeKind {
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Created => "created",
            ChangeKind::Updated => "updated",
            ChangeKind::Deleted => "deleted",
        }
    }
}
