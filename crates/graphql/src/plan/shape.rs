//! The shape of an answer, known before the request: what each object holds, in order, and where it comes from.

use std::sync::Arc;

use trefoil_engine::{ChildSelection, Listing, ResolverFn, Selection};
use trefoil_model::error::Error;
use trefoil_model::{FieldId, FieldKind, RecordTypeId};

use crate::plan::input::FieldArguments;
use crate::response_error::{DocumentLocation, ResponseError};

/// What is selected of one object type: fields merged by response key, fragments expanded.
pub struct ObjectShape {
    pub type_name: String,
    pub fields: Vec<FieldShape>,
    /// Set for record types …
    pub record: Option<RecordTypeId>,
    /// … with what the store reads, unless a connection reads it for all its lists …
    pub reads: RecordReads,
    /// … and where in it all stored fields are, when a resolver wants them as its parent.
    pub parent_columns: Vec<(usize, FieldId)>,
    /// A registered resolver answers something here or below.
    pub uses_resolvers: bool,
    /// Why it cannot be told what is selected of it.
    pub selection_error: Option<ResponseError>,
}

/// One key of an object.
pub struct FieldShape {
    pub label: ResponseLabel,
    pub slot: ValueSlot,
    pub source: FieldSource,
}

/// How a field is called in the answer and in messages.
pub struct ResponseLabel {
    /// `"name":`, escaped.
    pub json_key: Vec<u8>,
    /// The response key, for paths.
    pub response_key: String,
    pub type_name: String,
    /// In the schema.
    pub name: String,
    pub locations: Vec<DocumentLocation>,
}

/// A place for a value: what fits and whether null does.
pub struct ValueSlot {
    pub required: bool,
    pub output: OutputShape,
}

pub enum OutputShape {
    Leaf(LeafType),
    List(Box<ValueSlot>),
    Object(Arc<ObjectShape>),
    /// An interface or a union, with the shape for each type it can be.
    Abstract(Arc<AbstractShape>),
}

pub struct AbstractShape {
    pub name: String,
    pub possible_types: Vec<Arc<ObjectShape>>,
    pub uses_resolvers: bool,
}

/// How a scalar or enum value that a resolver gave is written.
#[derive(Debug, Clone, PartialEq)]
pub enum LeafType {
    Int,
    Float,
    String,
    Boolean,
    Id,
    /// `Long` and `Decimal`: numbers that are written as text.
    NumberAsText,
    Enum {
        name: String,
        values: Vec<String>,
    },
    /// Any other scalar, as it is.
    Custom,
}

/// Where a field's value comes from.
pub enum FieldSource {
    /// The constant `__typename`, as JSON.
    Typename(Vec<u8>),
    /// A column of the row.
    Column {
        position: usize,
        kind: FieldKind,
    },
    /// Related records of the row, read along with it.
    Relation(usize),
    /// A property of the parent value.
    Property,
    Resolver {
        resolver: ResolverFn,
        arguments: FieldArguments,
    },
    /// The schema itself answers it.
    Introspection(FieldArguments),
    /// Nothing answers it.
    Missing(String),
    /// Its arguments ask for what cannot be.
    Invalid(Arc<Error>),
}

/// What is read of a record, by position.
#[derive(Default)]
pub struct RecordReads {
    pub columns: Vec<FieldId>,
    pub children: Vec<ChildRead>,
}

pub struct ChildRead {
    pub field: FieldId,
    pub listing: Listing,
    pub object: Arc<ObjectShape>,
}

impl RecordReads {
    /// The position of a column, added when it is new.
    pub fn add_column(&mut self, field: FieldId) -> usize {
        self.columns.iter().position(|known| *known == field).unwrap_or_else(|| {
            self.columns.push(field);
            self.columns.len() - 1
        })
    }

    pub fn add_child(&mut self, child: ChildRead) -> usize {
        self.children.push(child);
        self.children.len() - 1
    }

    pub fn selection(&self) -> Selection {
        let children = self.children.iter().map(|child| ChildSelection {
            field: child.field,
            listing: child.listing.clone(),
            selection: child.object.reads.selection(),
        });
        Selection::new(self.columns.clone(), children.collect())
    }
}

impl ValueSlot {
    pub fn uses_resolvers(&self) -> bool {
        match &self.output {
            OutputShape::Leaf(_) => false,
            OutputShape::List(item) => item.uses_resolvers(),
            OutputShape::Object(object) => object.uses_resolvers,
            OutputShape::Abstract(object) => object.uses_resolvers,
        }
    }
}

impl FieldShape {
    pub fn uses_resolvers(&self) -> bool {
        matches!(self.source, FieldSource::Resolver { .. }) || self.slot.uses_resolvers()
    }
}

/// A Relay connection over a list of records. All its lists are made of the same rows.
pub struct ConnectionShape {
    pub entries: ConnectionEntries<ConnectionField>,
    pub record: RecordTypeId,
    /// For the nodes of every list in it.
    pub reads: RecordReads,
    pub needs_total: bool,
    pub needs_cursors: bool,
    pub uses_resolvers: bool,
}

/// What is selected of one of a connection's own objects.
pub struct ConnectionEntries<T> {
    pub list: Vec<ConnectionEntry<T>>,
    /// Why it cannot be told.
    pub selection_error: Option<ResponseError>,
}

/// One key of it.
pub struct ConnectionEntry<T> {
    pub label: ResponseLabel,
    pub required: bool,
    pub field: T,
}

pub enum ConnectionField {
    Typename(Vec<u8>),
    Edges { item_required: bool, entries: ConnectionEntries<EdgeField> },
    Nodes { item_required: bool, object: Arc<ObjectShape> },
    PageInfo(ConnectionEntries<PageInfoField>),
    TotalCount,
    Missing(String),
}

pub enum EdgeField {
    Typename(Vec<u8>),
    Cursor,
    Node(Arc<ObjectShape>),
    Missing(String),
}

pub enum PageInfoField {
    Typename(Vec<u8>),
    HasNextPage,
    HasPreviousPage,
    StartCursor,
    EndCursor,
    Missing(String),
}
