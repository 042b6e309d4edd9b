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
pub use crate::sdl::parse::{Claim, parse};
pub use crate::source_file::SourceFile;
pub use crate::values::json_number::JsonNumber;
pub use crate::values::value::{Cell, Stored, Value};

/// Position of a record type in [`Model::records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub usize);

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
    pub roots: Vec<RootField>,
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
    pub kind: Kind,
    /// Non-null in the schema.
    pub required: bool,
    pub unique: bool,
    pub rules: Vec<Rule>,
    pub default: Option<Value>,
    pub filled_by: FilledBy,
    pub description: Option<String>,
    pub renamed_from: Option<String>,
    /// Only lists of records have some; they filter and page.
    pub arguments: Vec<Argument>,
}

/// What a field holds and so how it is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// The record's own id.
    Id,
    Scalar(Scalar),
    Enum(String),
    /// A value inside its owner, by type name, kept as JSON.
    Embedded(String),
    /// A list of scalars, enums or embedded values, kept as JSON.
    List(Box<Item>),
    /// Another record's id, in a column of its own.
    Reference {
        target: TypeId,
        on_delete: OnDelete,
    },
    /// The records of `of` whose reference `field` points here.
    Inverse {
        of: TypeId,
        field: FieldId,
    },
    /// Records on the other side of a link table.
    Link {
        target: TypeId,
        table: String,
        own_column: String,
        other_column: String,
    },
    /// Nothing is kept: only a registered resolver can answer it.
    Unstored,
}

/// The element of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub kind: Kind,
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
pub enum Rule {
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
        source: String,
        regex: regex::Regex,
    },
    Email,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilledBy {
    Client,
    /// `@createdAt`
    Creation,
    /// `@updatedAt`
    Update,
    /// `@version`: shows the record's version.
    Version,
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
pub enum Root {
    Query,
    Mutation,
    Subscription,
}

/// One operation the schema offers.
#[derive(Debug)]
pub struct RootField {
    pub root: Root,
    pub name: String,
    pub arguments: Vec<Argument>,
    pub ty: TypeRef,
    /// `@resolver(name:)`
    pub resolver: Option<String>,
    pub at: Place,
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
pub struct Place {
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
    pub fn name(&self) -> &str {
        match self {
            TypeRef::Named(name) => name,
            TypeRef::List(inner) | TypeRef::NonNull(inner) => inner.name(),
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
    pub fn leads_on(&self, record: TypeId) -> bool {
        let fields = &self.record(record).fields;
        fields.iter().any(|field| matches!(field.kind, Kind::Reference { .. } | Kind::Link { .. }))
    }

    pub fn record(&self, id: TypeId) -> &RecordType {
        &self.records[id.0]
    }

    pub fn record_named(&self, name: &str) -> Option<TypeId> {
        self.records.iter().position(|record| record.name == name).map(TypeId)
    }

    pub fn root(&self, root: Root, name: &str) -> Option<&RootField> {
        self.roots.iter().find(|field| field.root == root && field.name == name)
    }

    pub fn record_at(&self, path: &str) -> Option<TypeId> {
        self.records.iter().position(|record| record.path == path).map(TypeId)
    }
}

impl RecordType {
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.0]
    }

    pub fn field_named(&self, name: &str) -> Option<FieldId> {
        self.fields.iter().position(|field| field.name == name).map(FieldId)
    }

    /// The field a client means by `name` when it writes: a reference also answers to `userId`,
    /// a link also to `courseIds`.
    pub fn input_field(&self, name: &str) -> Option<FieldId> {
        self.fields.iter().position(|field| field.name == name || field.input_name == name).map(FieldId)
    }

    /// Every record type has one; `parse` sees to it.
    pub fn id_field(&self) -> FieldId {
        FieldId(self.fields.iter().position(|field| field.kind == Kind::Id).expect("a record type has an id"))
    }
}

impl Kind {
    /// Whether a column holds one value that can be filtered, sorted and indexed by.
    pub fn is_comparable(&self) -> bool {
        match self {
            Kind::Scalar(scalar) => *scalar != Scalar::Json,
            Kind::Id | Kind::Enum(_) | Kind::Reference { .. } => true,
            Kind::Embedded(_) | Kind::List(_) | Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => {
                false
            }
        }
    }
}

impl Field {
    /// Whether a column of the record's own table keeps it.
    pub fn is_stored(&self) -> bool {
        !self.column.is_empty()
    }
}
