//! What a face asks for ([`Operation`]) and what it is told ([`Outcome`]).

use std::sync::{Arc, OnceLock};

use crate::changes::RecordImage;
use crate::plain_list::{PlainListOperation, PlainListPosition};
use crate::plan::PlannedSelection;
use trefoil_model::{FieldId, RecordTypeId, Value};

/// One thing asked for. Names are resolved, values are as they arrived: [`crate::plan`] judges them.
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
        /// Fields that are not given …
        fields: Vec<(FieldId, Value)>,
        /// … keep their value, or, when the whole record is overwritten, take their default or null.
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
    /// The record as a change left it; what is selected below it is read now.
    ReadImage {
        record: RecordTypeId,
        /// By column, as [`crate::Change`] has it.
        image: RecordImage,
        selection: Arc<Selection>,
    },
    /// Of a plain list; its rows have one cell, a text.
    PlainList(PlainListOperation),
}

impl Operation {
    /// The record that it names, where it names one.
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

/// What an update does to the fields it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFields {
    Keep,
    Reset,
}

/// Which records of a list, in which order.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub conditions: Vec<Condition>,
    /// Only records with this in any of their texts, in any case.
    pub search: Option<String>,
    /// Ties are always broken by id, ascending.
    pub sort_keys: Vec<SortKey>,
    pub slice: ListSlice,
    /// Of all that match, whatever the slice.
    pub count: CountMode,
    /// Also read what a cursor is made of: the order's fields and the id follow the selected columns.
    pub with_cursors: bool,
}

/// How far the records of a list are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountMode {
    #[default]
    Skip,
    Exact,
    /// No further than one beyond this number, which then stands for "more": it costs the same however many there are.
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
    /// Text within text, case as written.
    Contains,
    /// The value is a list.
    In,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortKey {
    pub field: FieldId,
    pub descending: bool,
}

impl SortKey {
    /// A field that is there already sorts nothing any more.
    pub fn append_to(self, orders: &mut Vec<SortKey>) {
        if !orders.iter().any(|known| known.field == self.field) {
            orders.push(self);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum ListSlice {
    #[default]
    All,
    /// `page` counts from 1.
    Page { page: i64, size: i64 },
    /// The first so many after a cursor.
    First { first: i64, after: Option<String> },
}

/// What is read of each record: columns and children, both known by position. Not changed once made,
/// so that its proof is made once, however often a request uses it.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Fields with a column; [`crate::Row::cell`] takes the position in this list.
    pub columns: Vec<FieldId>,
    /// References, inverses and links; [`crate::Row::each_child`] takes the position in this list.
    pub children: Vec<ChildSelection>,
    /// Also read the record's version: it follows the selected columns. Not for children.
    pub includes_version: bool,
    pub(crate) planned: OnceLock<Arc<PlannedSelection>>,
}

impl Selection {
    pub fn new(columns: Vec<FieldId>, children: Vec<ChildSelection>) -> Selection {
        Selection { columns, children, includes_version: false, planned: OnceLock::new() }
    }

    /// The same, with the version behind the columns.
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

/// How one operation ended; its records went to the answer row by row before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// One row was given.
    Found,
    /// There is no such record; no row was given.
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
    /// The plain list as it is now; `rest` is what was not read of it yet.
    PlainList {
        version: i64,
        length: i64,
        remaining: Option<PlainListPosition>,
    },
}

/// What can happen to a record.
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
