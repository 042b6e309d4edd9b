//! The schema of an application as immutable data.
//!
//! [`parse_schema`] reads SDL files into a [`Model`]: record types with their fields, enums, embedded types and the
//! root fields of GraphQL. The crate also defines the values that fields hold, their validation, and the errors that
//! callers see. Every other crate builds on it; it knows neither HTTP nor SQL.

// The input files, and mistakes found in them.
pub mod diagnostic;
mod source_file;

// From SDL to the model.
pub mod sdl;

// Who may do what.
pub mod access;

// Table, column, path and operation names, derived from the names in the schema.
pub mod naming;

// What fields hold.
mod comparison_op;
mod display_words;
mod field_kind;
mod filter_operator;
mod scalar;

// Queries on the finished model.
mod abstract_type;
mod aggregate_wrapper;
mod change_wrapper;
mod list_wrapper;
mod payload;
mod record_title;
mod searched_texts;
mod shown_names;

// Values: parsing, validation, and their text in JSON and CSV.
pub mod values;

// The errors of all operations.
pub mod error;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use apollo_compiler::Schema;
use apollo_compiler::validation::Valid;
use indexmap::IndexMap;

use crate::naming::names;

pub use crate::access::AccessModel;
use crate::access::RuleValue;
pub use crate::aggregate_wrapper::{MeasureFields, RelationSummary};
pub use crate::change_wrapper::ChangePart;
pub use crate::comparison_op::ComparisonOp;
pub use crate::diagnostic::{Diagnostic, Severity};
pub use crate::display_words::{
    ChoiceDisplay, ChoiceTone, ControlWidth, FieldDisplay, RecordDisplay, ValueFormat,
};
pub use crate::field_kind::{
    FieldId, FieldKind, Inverse, KeyForm, KeySource, Link, ListItem, OnDelete, RecordTypeId, Reference,
    Relation, ValueType,
};
pub use crate::filter_operator::{FilterOperator, TextMatch, TextPart};
pub use crate::list_wrapper::{PageField, PagePart};
pub use crate::payload::PayloadPart;
pub use crate::record_title::{RecordTitle, TitlePart};
pub use crate::scalar::{JsonForm, Scalar, ScalarGroup, StorageClass};
pub use crate::sdl::parse::{parse_protected_schema, parse_schema};
pub use crate::sdl::resource_paths::ReservedPath;
pub use crate::searched_texts::SearchedText;
pub use crate::source_file::{SourceFile, SourceLocation};
pub use crate::values::json_number::JsonNumber;
pub use crate::values::periods::{LocalTime, PeriodBounds, ShownTime, TimePeriod, ZoneOffsets};
pub use crate::values::record_id::{MAX_KEY_BYTES, RecordId};
pub use crate::values::value::{CellValue, StoredValue, Value};

/// The whole schema. A reload replaces it as a whole; a request uses one model from start to end.
#[derive(Debug)]
pub struct Model {
    pub records: Vec<RecordType>,
    pub enums: IndexMap<String, EnumType>,
    /// Object types without `id`, stored as values inside their owner.
    pub embedded: IndexMap<String, EmbeddedType>,
    /// Every field of Query, Mutation and Subscription, in schema order.
    pub root_fields: Vec<RootField>,
    /// The validated schema, for document validation and introspection.
    pub schema: Valid<Schema>,
    /// The schema as text with its directive definitions, as `/graphql/schema.graphqls` serves it.
    pub sdl: String,
    /// Hash of `sdl`: equal for equal schemas, however they are split into files.
    pub hash: u64,
    /// Ids in GraphQL are global, as Relay wants them: unique over all types that implement `Node`.
    pub global_ids: bool,
    /// The part of the schema that was generated from its types, as a file of its own; empty without one.
    pub generated: String,
    /// Who may do what; `None` for an open application.
    pub access: Option<AccessModel>,
    pub(crate) time_zone: OnceLock<Arc<ZoneOffsets>>,
    pub(crate) ruled_fields: OnceLock<BTreeSet<(RecordTypeId, FieldId)>>,
}

/// A type whose values are records with a key.
#[derive(Debug)]
pub struct RecordType {
    pub name: String,
    /// Path of the collection: `order-lines` for `OrderLine`, unless `@resource(path:)` sets another.
    pub path: String,
    pub table: String,
    pub description: Option<String>,
    pub fields: Vec<Field>,
    /// What a record is called where others refer to it.
    pub title: RecordTitle,
    pub display: RecordDisplay,
    pub(crate) key: FieldId,
    pub(crate) key_form: KeyForm,
    /// The schema has no field for the key.
    pub(crate) is_key_hidden: bool,
    pub key_source: KeySource,
    /// GraphQL shows its ids together with the name of the type, see [`Model::global_ids`].
    pub has_global_ids: bool,
    /// The fields of each `@index`.
    pub indexes: Vec<Vec<FieldId>>,
    pub renamed_from: Option<String>,
}

/// A field of a record type or an embedded type.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// The name in JSON bodies and forms: `userId` for a reference `user`, `courseIds` for a link `courses`.
    pub input_name: String,
    /// The column that stores the field; empty for fields without one (inverses, links, unstored).
    pub column: String,
    pub kind: FieldKind,
    /// Non-null in the schema.
    pub required: bool,
    /// No two records have the same value.
    pub unique: bool,
    /// `@unique(within:)`: no two records with the same record in this reference have the same value.
    pub unique_within: Option<FieldId>,
    /// Texts that differ only in the case of ASCII letters are equal: `@unique(ignoreCase: true)`.
    pub ignores_case: bool,
    /// `@search`: the field is in the full-text index of its type, and an occurrence of a word counts this much.
    pub search_weight: Option<u32>,
    pub display: FieldDisplay,
    pub rules: Vec<FieldRule>,
    /// What people read instead of the messages with these codes.
    pub messages: Vec<(&'static str, String)>,
    pub default: Option<Value>,
    /// `@default(from:)`: what the actor or the time of the request has, and not a literal.
    pub default_from: Option<RuleValue>,
    pub value_source: ValueSource,
    pub description: Option<String>,
    pub renamed_from: Option<String>,
    /// Filter and paging arguments; only lists of records have them.
    pub arguments: Vec<Argument>,
    /// A rule may hide it or the record that it leads to: then it is null where the record is shown.
    pub may_be_hidden: bool,
    pub(crate) name_words: OnceLock<Vec<String>>,
}

/// A constraint on the values of a field, enforced for GraphQL, REST and HTML alike.
#[derive(Debug, Clone)]
pub enum FieldRule {
    NotBlank,
    /// Length in Unicode code points; for lists, the number of elements.
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
    /// `@version`: the record's version.
    RecordVersion,
    /// `@createdBy`: the account of who created the record.
    CreatingAccount,
    /// `@updatedBy`: the account of who last changed the record.
    UpdatingAccount,
}

impl ValueSource {
    /// True if the server fills in the account of the actor.
    pub const fn is_account(self) -> bool {
        match self {
            ValueSource::CreatingAccount | ValueSource::UpdatingAccount => true,
            ValueSource::Client
            | ValueSource::CreationTime
            | ValueSource::UpdateTime
            | ValueSource::RecordVersion => false,
        }
    }
}

#[derive(Debug)]
pub struct EnumType {
    pub name: String,
    pub values: Vec<String>,
    /// For each of the values.
    pub displays: Vec<ChoiceDisplay>,
    pub description: Option<String>,
}

/// An object type without `id`.
#[derive(Debug)]
pub struct EmbeddedType {
    pub name: String,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootType {
    Query,
    Mutation,
    Subscription,
}

impl RootType {
    /// The name of the root type, unless the schema says another.
    pub fn default_name(self) -> &'static str {
        match self {
            RootType::Query => "Query",
            RootType::Mutation => "Mutation",
            RootType::Subscription => "Subscription",
        }
    }

    /// The word that begins an operation of a document.
    pub fn keyword(self) -> &'static str {
        match self {
            RootType::Query => "query",
            RootType::Mutation => "mutation",
            RootType::Subscription => "subscription",
        }
    }
}

/// A field of Query, Mutation or Subscription.
#[derive(Debug)]
pub struct RootField {
    pub root_kind: RootType,
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
    /// The default value is 0.
    pub is_zero_by_default: bool,
    /// The fields of an input object, one level deep.
    pub fields: Vec<Argument>,
}

/// A type as written in the schema: `[User!]!`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeRef {
    Named(String),
    List(Box<TypeRef>),
    NonNull(Box<TypeRef>),
}

impl fmt::Display for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

    /// True for `[User]`, not for `[[User]]`.
    pub fn is_single_list(&self) -> bool {
        match self {
            TypeRef::Named(_) => false,
            TypeRef::List(inner) => !inner.is_list(),
            TypeRef::NonNull(inner) => inner.is_single_list(),
        }
    }

    pub fn is_required(&self) -> bool {
        matches!(self, TypeRef::NonNull(_))
    }
}

impl Model {
    /// The zone in which pages show and take times, once for all.
    pub fn set_time_zone(&self, zone: Arc<ZoneOffsets>) {
        self.time_zone.get_or_init(|| zone);
    }

    pub fn time_zone(&self) -> &ZoneOffsets {
        self.time_zone.get_or_init(ZoneOffsets::utc)
    }

    /// True if records of this type hold references or links to others.
    pub fn has_outgoing_relations(&self, record: RecordTypeId) -> bool {
        self.record(record).fields.iter().any(|field| field.kind.input_target().is_some())
    }

    pub fn record(&self, id: RecordTypeId) -> &RecordType {
        &self.records[id.0]
    }

    pub fn find_record(&self, name: &str) -> Option<RecordTypeId> {
        self.records.iter().position(|record| record.name == name).map(RecordTypeId)
    }

    pub fn find_root_field(&self, root: RootType, name: &str) -> Option<&RootField> {
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

    /// The field that a client names in a write: a reference is also found as `userId`, a link as `courseIds`. Where
    /// the schema has `userId` beside `user`, the reference is stored and found.
    pub fn find_input_field(&self, name: &str) -> Option<FieldId> {
        let is_named = |field: &Field| field.name == name || field.input_name == name;
        // `addressId` may be declared beside the reference `address`, which stores it.
        let stored = self.fields.iter().position(|field| is_named(field) && !field.kind.is_unstored());
        stored.or_else(|| self.fields.iter().position(is_named)).map(FieldId)
    }

    /// The reference whose key a field shows that is not stored itself: `user` for `userId`.
    pub fn find_shown_reference(&self, name: &str) -> Option<FieldId> {
        self.find_input_field(name).filter(|id| self.field(*id).kind.is_reference())
    }

    /// True if searches may use the full-text index: it has the texts of all records, also those that rules hide.
    pub fn has_open_index(&self) -> bool {
        let mut fields = self.search_fields().peekable();
        fields.peek().is_some() && fields.all(|field| !field.may_be_hidden)
    }

    /// The fields of the full-text index; without any, a search reads all records.
    pub fn search_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.search_weight.is_some())
    }

    /// True if an index begins with this field, so that a condition on it alone need not read all records.
    pub fn has_index(&self, id: FieldId) -> bool {
        let field = self.field(id);
        let is_own = id == self.key || field.unique || field.kind.is_reference();
        is_own || self.indexes.iter().any(|fields| fields.first() == Some(&id))
    }

    /// The field that holds the id, whatever it is called.
    pub fn id_field(&self) -> FieldId {
        self.key
    }

    /// The key's name in GraphQL; `None` if the schema has no field for it.
    pub fn key_in_schema(&self) -> Option<&str> {
        (!self.is_key_hidden).then(|| self.field(self.key).name.as_str())
    }

    /// The fields that clients set in a new record: the writable ones, and the id if the client must give it.
    pub fn is_set_on_create(&self, field: &Field) -> bool {
        field.is_writable() || (field.kind.is_id() && self.key_source == KeySource::Client)
    }

    /// True if the id of a new record may or must be given. Counted ids are the store's, although a create operation
    /// may choose one.
    pub fn accepts_given_key(&self) -> bool {
        self.key_source != KeySource::Counter
    }

    /// The id of a record that a file holds, such as a seed or an import; an error explains what it must be.
    pub fn id_from_file(&self, value: &Value) -> Result<RecordId, String> {
        match RecordId::from_value(self.key_form, value) {
            Ok(id) if id > RecordId::Number(0) => Ok(id),
            Err(help) if !self.key_form.is_integer() => {
                Err(format!("`{}` {help}", self.field(self.key).name))
            }
            Ok(_) | Err(_) => Err("an id must be a positive 64-bit integer".to_owned()),
        }
    }

    /// The form of its ids.
    pub fn key_form(&self) -> KeyForm {
        self.key_form
    }
}

impl Field {
    /// True if a column of the record's own table stores it.
    pub fn is_stored(&self) -> bool {
        !self.column.is_empty()
    }

    /// The words of its name, of that in inputs, and of what else names the record that it refers to.
    pub fn name_words(&self) -> &[String] {
        self.name_words.get_or_init(|| self.own_words())
    }

    /// The words of its name and of that in inputs.
    pub(crate) fn own_words(&self) -> Vec<String> {
        [&self.name, &self.input_name].map(|name| names::snake_words(name)).into()
    }

    /// True for a reference that the server fills.
    pub fn is_filled_reference(&self) -> bool {
        self.kind.is_reference() && !self.is_writable()
    }

    /// True if a value of one record may be refused to another.
    pub fn is_distinct(&self) -> bool {
        self.unique || self.unique_within.is_some()
    }

    /// True if a new record needs no value for it, because there is one where none is given.
    pub fn has_default(&self) -> bool {
        self.default.is_some() || self.default_from.is_some()
    }

    /// True if it has a value wherever the record is shown.
    pub fn is_always_shown(&self) -> bool {
        self.required && !self.may_be_hidden
    }

    /// True if clients may set it when they create or change a record.
    pub fn is_writable(&self) -> bool {
        self.kind.has_input() && self.value_source == ValueSource::Client
    }
}

impl EmbeddedType {
    /// The fields that are part of its values, each with its type.
    pub fn stored_fields(&self) -> impl Iterator<Item = (&Field, &ValueType)> {
        self.fields.iter().filter_map(|field| Some((field, field.kind.value_type()?)))
    }
}
