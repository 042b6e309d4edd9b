//! The shape of a response as planned: the fields of each object in order, and the source of each value.

use std::sync::Arc;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{
    AggregateQuery, ChildSelection, GroupMeasure, ListSlice, Listing, ResolverFn, Selection,
};
use trefoil_model::error::Error;
use trefoil_model::{ChangePart, FieldId, JsonForm, PagePart, PayloadPart, RecordTypeId, Scalar, ValueType};

use crate::plan::input::FieldArguments;
use crate::response_error::{DocumentLocation, ResponseError};

/// The selected fields of an object type, merged by response key and with fragments expanded.
pub struct ObjectShape {
    pub type_name: String,
    pub fields: Vec<FieldShape>,
    /// Set for record types.
    pub record: Option<RecordTypeId>,
    /// The columns and children that the store reads; empty in a connection, which reads for all its lists.
    pub reads: RecordReads,
    /// Column positions of all stored fields, if a resolver gets the record as its parent.
    pub parent_columns: Vec<(usize, FieldId)>,
    /// A field here or below has a registered resolver.
    pub uses_resolvers: bool,
    /// The error of a null `@skip` or `@include` condition.
    pub selection_error: Option<ResponseError>,
}

/// A field of an object.
pub struct FieldShape {
    pub label: ResponseLabel,
    pub slot: ValueSlot,
    pub source: FieldSource,
}

/// The names of a field in the response and in messages.
pub struct ResponseLabel {
    /// The response key as JSON, with the colon.
    pub json_key: Vec<u8>,
    /// The response key in error paths.
    pub response_key: String,
    pub type_name: String,
    /// The field's name in the schema.
    pub name: String,
    pub locations: Vec<DocumentLocation>,
}

/// The type of a value and whether it is non-null.
pub struct ValueSlot {
    pub required: bool,
    pub output: OutputShape,
}

pub enum OutputShape {
    Leaf(LeafType),
    List(Box<ValueSlot>),
    Object(Arc<ObjectShape>),
    /// An interface or a union.
    Abstract(Arc<AbstractShape>),
}

pub struct AbstractShape {
    pub name: String,
    pub possible_types: Vec<Arc<ObjectShape>>,
    pub uses_resolvers: bool,
}

/// The serialisation of a scalar or enum value of a resolver.
#[derive(Debug, Clone, PartialEq)]
pub enum LeafType {
    Int,
    Float,
    String,
    Boolean,
    Id,
    /// `Long` and `Decimal`: numbers serialised as strings.
    NumberAsText,
    Enum {
        name: String,
        values: Vec<String>,
    },
    /// Any other scalar, serialised as plain JSON.
    Custom,
}

/// True for numbers that are written as text, like `Long`.
pub fn is_number_as_text(type_name: &str) -> bool {
    Scalar::from_name(type_name).is_some_and(|scalar| scalar.json_form() == JsonForm::Text)
}

/// The source of a field's value.
pub enum FieldSource {
    /// The type name as JSON.
    Typename(Vec<u8>),
    /// A column of the row.
    Column {
        position: usize,
        value_type: ValueType,
    },
    /// The key of a record of a type, in a column of the row, as a global id.
    GlobalId {
        position: usize,
        type_name: String,
    },
    /// Related records, read together with the row; an index into its children.
    Relation(usize),
    /// Related records in a connection or a page.
    Connection(Arc<RelatedConnection>),
    /// The number of related records, in the one group that is the child at this index.
    RelatedCount(usize),
    /// Groups of related records.
    RelatedGroups {
        position: usize,
        groups: Arc<GroupsShape>,
        keys: GroupKeyTypes,
    },
    /// A property of the parent value.
    Property,
    Resolver {
        resolver: ResolverFn,
        arguments: FieldArguments,
    },
    /// A field of an introspection type.
    Introspection(FieldArguments),
    /// There is no resolver; the error message.
    Missing(String),
    /// The arguments are invalid.
    Invalid(Arc<Error>),
}

/// Columns and children to read of a record, by position.
#[derive(Default)]
pub struct RecordReads {
    pub columns: Vec<FieldId>,
    pub children: Vec<RelatedRead>,
}

/// Related records, or groups of them.
pub struct RelatedRead {
    pub field: FieldId,
    pub content: ChildContent,
}

pub enum ChildContent {
    Records { listing: Listing, object: Arc<ObjectShape> },
    Connection { listing: Listing, connection: Arc<ConnectionShape> },
    Groups(AggregateQuery),
}

impl RecordReads {
    /// The position of a column, which is added if necessary.
    pub fn add_column(&mut self, field: FieldId) -> usize {
        self.columns.iter().position(|known| *known == field).unwrap_or_else(|| {
            self.columns.push(field);
            self.columns.len() - 1
        })
    }

    pub fn add_child(&mut self, child: RelatedRead) -> usize {
        self.children.push(child);
        self.children.len() - 1
    }

    pub fn selection(&self) -> Selection {
        let children = self.children.iter().map(|child| match &child.content {
            ChildContent::Records { listing, object } => {
                ChildSelection::new(child.field, listing.clone(), object.reads.selection())
            }
            ChildContent::Connection { listing, connection } => {
                ChildSelection::new(child.field, listing.clone(), connection.reads.selection())
            }
            ChildContent::Groups(query) => ChildSelection::groups(child.field, query.clone()),
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

/// The groups of an aggregate as a response shows them.
pub struct GroupsShape {
    /// The slot of one group.
    pub slot: ValueSlot,
    pub parts: Vec<MeasureField>,
}

/// A measure and where it is in a group: `count`, or `total` in `sum`.
pub struct MeasureField {
    pub part: String,
    pub field: Option<String>,
    pub measure: GroupMeasure,
    pub value_type: ValueType,
}

/// The values that records are grouped by.
pub type GroupKeyTypes = Vec<GroupKeyType>;

/// A value that records are grouped by.
pub struct GroupKeyType {
    /// As the request wrote it.
    pub text: String,
    pub value_type: ValueType,
    /// The type of the records whose global ids it is.
    pub global_type: Option<String>,
}

/// A Relay connection over a list of records. `edges` and `nodes` are written from the same rows.
pub struct ConnectionShape {
    pub entries: ConnectionEntries<ConnectionField>,
    pub record: RecordTypeId,
    /// The number that an argument gives the first page.
    pub first_page: Option<i64>,
    /// The columns and children for the nodes of all its lists.
    pub reads: RecordReads,
    pub needs_total: bool,
    /// More than the number of all records is selected.
    pub needs_records: bool,
    /// Whether there are records before or after the page is selected.
    pub needs_extent: bool,
    pub needs_page_id: bool,
    /// Cursors of the page or of its edges are selected.
    pub needs_cursors: bool,
    pub needs_edge_cursors: bool,
    pub uses_resolvers: bool,
    /// What a resolver of an edge gets as its parent.
    pub parent: Option<Arc<ObjectShape>>,
}

/// A connection or a page over the related records of a row.
pub struct RelatedConnection {
    pub connection: Arc<ConnectionShape>,
    /// The child of the row that has the records, unless only their number is selected.
    pub records: Option<usize>,
    /// The child whose one group is the number of all of them.
    pub total: Option<usize>,
    pub slice: ListSlice,
    pub cursors: Option<CursorFormat>,
}

/// The result of a write or a change that is wrapped in a type of its own.
pub struct PayloadShape {
    pub entries: ConnectionEntries<PayloadField>,
    /// The columns and children for all fields that select the record.
    pub reads: RecordReads,
    pub uses_resolvers: bool,
    /// What a resolver of the payload gets as its parent.
    pub parent: Option<Arc<ObjectShape>>,
}

pub enum PayloadField {
    Typename(Vec<u8>),
    Resolver(Arc<FieldShape>),
    Record(Arc<ObjectShape>),
    Part(PayloadPart),
    /// Of a change, not of a write.
    Change(ChangePart),
    Missing(String),
}

impl PayloadShape {
    /// The fields with a resolver.
    pub fn resolver_fields(&self) -> Vec<Arc<FieldShape>> {
        let fields = self.entries.list.iter().filter_map(|entry| match &entry.field {
            PayloadField::Resolver(field) => Some(field.clone()),
            PayloadField::Typename(_)
            | PayloadField::Record(_)
            | PayloadField::Part(_)
            | PayloadField::Change(_)
            | PayloadField::Missing(_) => None,
        });
        fields.collect()
    }

    /// The shapes in which its record is written.
    pub fn record_shapes(&self) -> Vec<Arc<ObjectShape>> {
        let fields = self.entries.list.iter().map(|entry| &entry.field);
        fields.filter_map(PayloadField::record_shape).collect()
    }
}

impl PayloadField {
    fn record_shape(&self) -> Option<Arc<ObjectShape>> {
        match self {
            PayloadField::Record(object) => Some(object.clone()),
            PayloadField::Typename(_)
            | PayloadField::Resolver(_)
            | PayloadField::Part(_)
            | PayloadField::Change(_)
            | PayloadField::Missing(_) => None,
        }
    }
}

/// The selected fields of a connection, edge or page info object.
pub struct ConnectionEntries<T> {
    pub list: Vec<ConnectionEntry<T>>,
    /// The error of a null condition.
    pub selection_error: Option<ResponseError>,
}

/// A field of such an object.
pub struct ConnectionEntry<T> {
    pub label: ResponseLabel,
    pub required: bool,
    pub field: T,
}

/// A field of a Relay connection.
pub enum ConnectionField {
    Typename(Vec<u8>),
    Resolver(Arc<FieldShape>),
    Edges { item_required: bool, entries: ConnectionEntries<EdgeField> },
    Nodes { item_required: bool, object: Arc<ObjectShape> },
    PageInfo(ConnectionEntries<PageInfoField>),
    Part(PagePart, ValueSlot),
    Missing(String),
}

pub enum EdgeField {
    Typename(Vec<u8>),
    Resolver(Arc<FieldShape>),
    Cursor,
    Node(Arc<ObjectShape>),
    Missing(String),
}

pub enum PageInfoField {
    Typename(Vec<u8>),
    Resolver(Arc<FieldShape>),
    Part(PagePart, ValueSlot),
    Missing(String),
}
