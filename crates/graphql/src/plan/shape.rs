//! The shape of an answer, known before the request: what each object holds, in order, and where it comes from.

use std::sync::Arc;

use crate::plan::input::Arguments;
use crate::response_error::{Failure, Place};
use trefoil_engine::{Child, Listing, Resolver, Selection};
use trefoil_model::error::Error;
use trefoil_model::{FieldId, Kind, TypeId};

/// What is selected of one object type: fields merged by response key, fragments expanded.
pub struct Object {
    pub type_name: String,
    pub fields: Vec<Field>,
    /// Set for record types …
    pub record: Option<TypeId>,
    /// … with what the store reads, unless a connection reads it for all its lists …
    pub reads: Reads,
    /// … and where in it all stored fields are, when a resolver wants them as its parent.
    pub whole: Vec<(usize, FieldId)>,
    /// A registered resolver answers something here or below.
    pub live: bool,
    /// Why it cannot be told what is selected of it.
    pub broken: Option<Failure>,
}

/// One key of an object.
pub struct Field {
    pub label: Label,
    pub slot: Slot,
    pub from: From,
}

/// How a field is called in the answer and in messages.
pub struct Label {
    /// `"name":`, escaped.
    pub key: Vec<u8>,
    /// The response key, for paths.
    pub response: String,
    pub type_name: String,
    /// In the schema.
    pub name: String,
    pub places: Vec<Place>,
}

/// A place for a value: what fits and whether null does.
pub struct Slot {
    pub required: bool,
    pub output: Output,
}

pub enum Output {
    Leaf(Leaf),
    List(Box<Slot>),
    Object(Arc<Object>),
    /// An interface or a union, with the shape for each type it can be.
    Abstract(Arc<Abstract>),
}

pub struct Abstract {
    pub name: String,
    pub possible: Vec<Arc<Object>>,
    pub live: bool,
}

/// How a scalar or enum value that a resolver gave is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    Int,
    Float,
    String,
    Boolean,
    Id,
    /// `Long` and `Decimal`: numbers that are written as text.
    Exact,
    Enum {
        name: String,
        values: Vec<String>,
    },
    /// Any other scalar, as it is.
    Custom,
}

/// Where a field's value comes from.
pub enum From {
    /// The constant `__typename`, as JSON.
    Typename(Vec<u8>),
    /// A column of the row.
    Column {
        position: usize,
        kind: Kind,
    },
    /// Related records of the row, read along with it.
    Child(usize),
    /// A property of the parent value.
    Property,
    Resolver {
        resolver: Resolver,
        arguments: Arguments,
    },
    /// The schema itself answers it.
    Introspection(Arguments),
    /// Nothing answers it.
    Missing(String),
    /// Its arguments ask for what cannot be.
    Refused(Arc<Error>),
}

/// What is read of a record, by position.
#[derive(Default)]
pub struct Reads {
    pub columns: Vec<FieldId>,
    pub children: Vec<ChildRead>,
}

pub struct ChildRead {
    pub field: FieldId,
    pub listing: Listing,
    pub object: Arc<Object>,
}

impl Reads {
    /// The position of a column, added when it is new.
    pub fn column(&mut self, field: FieldId) -> usize {
        self.columns.iter().position(|known| *known == field).unwrap_or_else(|| {
            self.columns.push(field);
            self.columns.len() - 1
        })
    }

    pub fn child(&mut self, child: ChildRead) -> usize {
        self.children.push(child);
        self.children.len() - 1
    }

    pub fn selection(&self) -> Selection {
        let children = self.children.iter().map(|child| Child {
            field: child.field,
            listing: child.listing.clone(),
            selection: child.object.reads.selection(),
        });
        Selection::new(self.columns.clone(), children.collect())
    }
}

impl Slot {
    pub fn is_live(&self) -> bool {
        match &self.output {
            Output::Leaf(_) => false,
            Output::List(item) => item.is_live(),
            Output::Object(object) => object.live,
            Output::Abstract(object) => object.live,
        }
    }
}

impl Field {
    pub fn is_live(&self) -> bool {
        matches!(self.from, From::Resolver { .. }) || self.slot.is_live()
    }
}

/// A Relay connection over a list of records. All its lists are made of the same rows.
pub struct Connection {
    pub entries: Entries<Holds>,
    pub record: TypeId,
    /// For the nodes of every list in it.
    pub reads: Reads,
    pub counted: bool,
    pub cursors: bool,
    pub live: bool,
}

/// What is selected of one of a connection's own objects.
pub struct Entries<T> {
    pub list: Vec<Entry<T>>,
    /// Why it cannot be told.
    pub broken: Option<Failure>,
}

/// One key of it.
pub struct Entry<T> {
    pub label: Label,
    pub required: bool,
    pub holds: T,
}

pub enum Holds {
    Typename(Vec<u8>),
    Edges { item_required: bool, entries: Entries<EdgeHolds> },
    Nodes { item_required: bool, object: Arc<Object> },
    PageInfo(Entries<PageHolds>),
    TotalCount,
    Missing(String),
}

pub enum EdgeHolds {
    Typename(Vec<u8>),
    Cursor,
    Node(Arc<Object>),
    Missing(String),
}

pub enum PageHolds {
    Typename(Vec<u8>),
    HasNext,
    HasPrevious,
    Start,
    End,
    Missing(String),
}
