//! What a face asks for ([`Operation`]) and what it is told ([`Outcome`]).

use std::sync::{Arc, OnceLock};

use crate::changes::Image;
use crate::plain_list::{OnList, Place};
use crate::plan::Chosen;
use trefoil_model::{FieldId, TypeId, Value};

/// One thing asked for. Names are resolved, values are as they arrived: [`crate::plan`] judges them.
#[derive(Debug, Clone)]
pub enum Operation {
    Get {
        record: TypeId,
        id: i64,
        selection: Arc<Selection>,
    },
    List {
        record: TypeId,
        listing: Listing,
        selection: Arc<Selection>,
    },
    Create {
        record: TypeId,
        /// Only seeds and imports choose ids.
        id: Option<i64>,
        fields: Vec<(FieldId, Value)>,
        selection: Arc<Selection>,
    },
    Update {
        record: TypeId,
        id: i64,
        /// Fields that are not given …
        fields: Vec<(FieldId, Value)>,
        /// … keep their value, or, when the whole record is overwritten, take their default or null.
        absent: Absent,
        expected_version: Option<i64>,
        selection: Arc<Selection>,
    },
    Delete {
        record: TypeId,
        id: i64,
        expected_version: Option<i64>,
        selection: Arc<Selection>,
    },
    /// The record as a change left it; what is selected below it is read now.
    Changed {
        record: TypeId,
        /// By column, as [`crate::Change`] has it.
        image: Image,
        selection: Arc<Selection>,
    },
    /// Of a plain list; its rows have one cell, a text.
    Plain(OnList),
}

impl Operation {
    /// The record that it names, where it names one.
    pub fn id(&self) -> Option<i64> {
        match self {
            Operation::Get { id, .. } | Operation::Update { id, .. } | Operation::Delete { id, .. } => {
                Some(*id)
            }
            Operation::Create { id, .. } => *id,
            Operation::List { .. } | Operation::Changed { .. } | Operation::Plain(_) => None,
        }
    }
}

/// What an update does to the fields it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
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
    pub order: Vec<Order>,
    pub slice: Slice,
    /// Of all that match, whatever the slice.
    pub count: Count,
    /// Also read what a cursor is made of: the order's fields and the id follow the selected columns.
    pub cursors: bool,
}

/// How far the records of a list are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Count {
    #[default]
    No,
    Exact,
    /// No further than one beyond this number, which then stands for "more": it costs the same however many there are.
    UpTo(u32),
}

#[derive(Debug, Clone)]
pub struct Condition {
    pub field: FieldId,
    pub op: Op,
    pub value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
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
pub struct Order {
    pub field: FieldId,
    pub descending: bool,
}

impl Order {
    /// A field that is there already sorts nothing any more.
    pub fn follow(self, orders: &mut Vec<Order>) {
        if !orders.iter().any(|known| known.field == self.field) {
            orders.push(self);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum Slice {
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
    pub children: Vec<Child>,
    /// Also read the record's version: it follows the selected columns. Not for children.
    pub versioned: bool,
    pub(crate) proven: OnceLock<Arc<Chosen>>,
}

impl Selection {
    pub fn new(columns: Vec<FieldId>, children: Vec<Child>) -> Selection {
        Selection { columns, children, versioned: false, proven: OnceLock::new() }
    }

    /// The same, with the version behind the columns.
    pub fn with_version(self) -> Selection {
        Selection { versioned: true, proven: OnceLock::new(), ..self }
    }
}

#[derive(Debug, Clone)]
pub struct Child {
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
    Missing,
    Listed {
        more: bool,
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
    Plain {
        version: i64,
        length: i64,
        rest: Option<Place>,
    },
}

/// What can happen to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    Created,
    Updated,
    Deleted,
}

impl Deed {
    pub fn name(self) -> &'static str {
        match self {
            Deed::Created => "created",
            Deed::Updated => "updated",
            Deed::Deleted => "deleted",
        }
    }
}
