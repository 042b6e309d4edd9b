//! What the SDL says, resolved and immutable: record types, their fields and the root fields.

pub mod diagnostic;
pub mod error;
pub mod naming;
mod relay_connection;
pub mod sdl;
mod source_file;
pub mod values;

use indexmap::IndexMap;

pub use crate::diagnostic::{Diagnostic, Severity};
pub use crate::sdl::parse::{ReservedPath, parse_schema};
pub use crate::source_file::SourceFile;
pub use crate::values::json_number::JsonNumber;
pub use crate::values::value::{CellValue, StoredValue, Value};

/// Position of a record type in [`Model::records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordTypeId(pub usize);

/// Position of a field in [`RecordType::fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub usize);

/// The whole schema. Swapped as one on reload; a request holds one to its end.
#[derive(Debug)]
pub struct Model {
    pub records: Vec<RecordType>,
    pub enums: IndexMap<String, EnumType>,
    /// Object types without `id`: values inside their owner.
    pub embedded: IndexMap<String, EmbeddedType>,
    /// Every field of Query, Mutation and Subscription, in schema order.
    pub root_fields: Vec<RootField>,
    /// The validated schema, for document validation and introspection.
    pub schema: apollo_compiler::validation::Valid<apollo_compiler::Schema>,
    /// The schema as text, directive definitions included; what `/graphql/schema.graphqls` serves.
    pub sdl: String,
    /// Of `sdl`: equal for equal schemas, whatever their files.
    pub hash: u64,
}

#[derive(Debug)]
pub struct RecordType {
    pub name: String,
    /// The collection: `order-lines` for `OrderLine`, unless `@resource(path:)` says otherwise.
    pub path: String,
    pub table: String,
    pub description: Option<String>,
    pub fields: Vec<Field>,
    /// `@index`: the fields of each.
    pub indexes: Vec<Vec<FieldId>>,
    pub renamed_from: Option<String>,
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// The name in JSON bodies and forms: `userId` for a reference `user`, `courseIds` for a link `courses`.
    pub input_name: String,
    /// The column that keeps it; empty for fields that have none (inverses, links, unstored).
    pub column: String,
    pub kind: FieldKind,
    /// Non-null in the schema.
    pub required: bool,
    pub unique: bool,
    pub rules: Vec<FieldRule>,
    pub default: Option<Value>,
    pub value_source: ValueSource,
    pub description: Option<String>,
    pub renamed_from: Option<String>,
    /// Only lists of records have some; they filter and page.
    pub arguments: Vec<Argument>,
}

/// What a field holds and so how it is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// The record's own id.
    Id,
    Scalar(Scalar),
    Enum(String),
    /// A value inside its owner, by type name, kept as JSON.
    Embedded(String),
    /// A list of scalars, enums or embedded values, kept as JSON.
    List(Box<ListItem>),
    /// Another record's id, in a column of its own.
    Reference {
        target: RecordTypeId,
        on_delete: OnDelete,
    },
    /// The records of `of` whose reference `field` points here.
    Inverse {
        target: RecordTypeId,
        field: FieldId,
    },
    /// Records on the other side of a link table.
    Link {
        target: RecordTypeId,
        table: String,
        own_column: String,
        other_column: String,
    },
    /// Nothing is kept: only a registered resolver can answer it.
    Unstored,
}

/// The element of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListItem {
    pub kind: FieldKind,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    String,
    Int,
    Float,
    Boolean,
    Id,
    Long,
    Decimal,
    Date,
    DateTime,
    Uuid,
    Url,
    Email,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    Refuse,
    Cascade,
    SetNull,
}

/// A constraint that holds on every face alike.
#[derive(Debug, Clone)]
pub enum FieldRule {
    NotBlank,
    /// In Unicode code points; for lists, elements.
    Length {
        min: Option<u64>,
        max: Option<u64>,
    },
    /// Bounds as exact decimals.
    Range {
        min: Option<String>,
        max: Option<String>,
    },
    /// Matches the whole text.
    Pattern {
        pattern: String,
        regex: regex::Regex,
    },
    Email,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSource {
    Client,
    /// `@createdAt`
    CreationTime,
    /// `@updatedAt`
    UpdateTime,
    /// `@version`: shows the record's version.
    RecordVersion,
}

#[derive(Debug)]
pub struct EnumType {
    pub name: String,
    pub values: Vec<String>,
    pub description: Option<String>,
}

/// An object type without `id`.
#[derive(Debug)]
pub struct EmbeddedType {
    pub name: String,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RootKind {
    Query,
    Mutation,
    Subscription,
}

/// One operation the schema offers.
#[derive(Debug)]
pub struct RootField {
    pub root_kind: RootKind,
    pub name: String,
    pub arguments: Vec<Argument>,
    pub ty: TypeRef,
    /// `@resolver(name:)`
    pub resolver: Option<String>,
    pub location: SourceLocation,
}

#[derive(Debug, Clone)]
pub struct Argument {
    pub name: String,
    pub ty: TypeRef,
    /// For an input object: its fields, one level deep.
    pub fields: Vec<Argument>,
}

/// A type as written: `[User!]!`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    Named(String),
    List(Box<TypeRef>),
    NonNull(Box<TypeRef>),
}

/// Where in the schema files something is written; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceLocation {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TypeRef::Named(name) => f.write_str(name),
            TypeRef::List(inner) => write!(f, "[{inner}]"),
            TypeRef::NonNull(inner) => write!(f, "{inner}!"),
        }
    }
}

impl TypeRef {
    /// The innermost name: `User` for `[User!]!`.
    pub fn inner_name(&self) -> &str {
        match self {
            TypeRef::Named(name) => name,
            TypeRef::List(inner) | TypeRef::NonNull(inner) => inner.inner_name(),
        }
    }

    pub fn is_list(&self) -> bool {
        match self {
            TypeRef::Named(_) => false,
            TypeRef::List(_) => true,
            TypeRef::NonNull(inner) => inner.is_list(),
        }
    }

    pub fn is_required(&self) -> bool {
        matches!(self, TypeRef::NonNull(_))
    }
}

impl Model {
    /// Whether records of this type hold references or links to others.
    pub fn leads_on(&self, record: RecordTypeId) -> bool {
        let fields = &self.record(record).fields;
        fields.iter().any(|field| matches!(field.kind, FieldKind::Reference { .. } | FieldKind::Link { .. }))
    }

    pub fn record(&self, id: RecordTypeId) -> &RecordType {
        &self.records[id.0]
    }

    pub fn find_record(&self, name: &str) -> Option<RecordTypeId> {
        self.records.iter().position(|record| record.name == name).map(RecordTypeId)
    }

    pub fn find_root_field(&self, root: RootKind, name: &str) -> Option<&RootField> {
        self.root_fields.iter().find(|field| field.root_kind == root && field.name == name)
    }

    pub fn find_record_by_path(&self, path: &str) -> Option<RecordTypeId> {
        self.records.iter().position(|record| record.path == path).map(RecordTypeId)
    }
}

impl RecordType {
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.0]
    }

    pub fn find_field(&self, name: &str) -> Option<FieldId> {
        self.fields.iter().position(|field| field.name == name).map(FieldId)
    }

    /// The field a client means by `name` when it writes: a reference also answers to `userId`,
    /// a link also to `courseIds`.
    pub fn find_input_field(&self, name: &str) -> Option<FieldId> {
        self.fields.iter().position(|field| field.name == name || field.input_name == name).map(FieldId)
    }

    /// Every record type has one; `parse` sees to it.
    pub fn id_field(&self) -> FieldId {
        FieldId(
            self.fields
                .iter()
                .position(|field| field.kind == FieldKind::Id)
                .expect("a record type has an id"),
        )
    }
}

impl FieldKind {
    /// Whether a column holds one value that can be filtered, sorted and indexed by.
    pub fn is_comparable(&self) -> bool {
        match self {
            FieldKind::Scalar(scalar) => *scalar != Scalar::Json,
            FieldKind::Id | FieldKind::Enum(_) | FieldKind::Reference { .. } => true,
            FieldKind::Embedded(_)
            | FieldKind::List(_)
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => false,
        }
    }
}

impl Field {
    /// Whether a column of the record's own table keeps it.
    pub fn is_stored(&self) -> bool {
        !self.column.is_empty()
    }
}
