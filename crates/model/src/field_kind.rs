//! What a field holds, and the questions that other code asks about it.
//!
//! There are three small enums instead of one long one, so that code matches only what it can meet: [`FieldKind`]
//! where a field is, [`ValueType`] which values are in its column, [`Relation`] how it leads to other records. Code
//! that needs one kind or one property asks a method here instead of matching.

use crate::scalar::{Scalar, ScalarGroup, StorageClass};

/// Position of a record type in [`crate::Model::records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordTypeId(pub usize);

/// Position of a field in [`crate::RecordType::fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub usize);

/// Where the content of a field is.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// The record's own id.
    Id(KeyForm),
    /// A value in a column of this record.
    Value(ValueType),
    /// Other records.
    Relation(Relation),
    /// Not stored: only a registered resolver can answer it.
    Unstored,
}

/// The type of the values in a column, or of the items of a list.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueType {
    /// The id of a record: the type of id fields and references.
    Key(KeyForm),
    Scalar(Scalar),
    Enum(String),
    /// A value inside its owner, stored as JSON; holds the type name.
    Embedded(String),
    /// A list of scalars, enums or embedded values, stored as JSON.
    List(Box<ListItem>),
}

/// The values that ids of a record type have, and how they are written in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyForm {
    /// An integer, as digits in a text: for `ID` and `Long`.
    Digits,
    /// An integer, as a number: for `Int`.
    Number,
    Uuid,
    /// A text of at most [`crate::MAX_KEY_BYTES`].
    Text,
}

/// Where the id of a new record comes from, if the client gives none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySource {
    /// The store counts it up.
    Counter,
    /// The server generates a UUID of version 7.
    Generator,
    /// Nowhere: the client must give it.
    Client,
}

impl KeyForm {
    const fn value_type(self) -> &'static ValueType {
        match self {
            KeyForm::Digits => &ValueType::Key(KeyForm::Digits),
            KeyForm::Number => &ValueType::Key(KeyForm::Number),
            KeyForm::Uuid => &ValueType::Key(KeyForm::Uuid),
            KeyForm::Text => &ValueType::Key(KeyForm::Text),
        }
    }

    /// True if the ids are integers.
    pub const fn is_integer(self) -> bool {
        matches!(self, KeyForm::Digits | KeyForm::Number)
    }
}

/// The element of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListItem {
    pub value_type: ValueType,
    pub required: bool,
}

/// How a field leads to other records.
#[derive(Debug, Clone, PartialEq)]
pub enum Relation {
    Reference(Reference),
    Inverse(Inverse),
    Link(Link),
}

/// The id of another record, in a column of this record.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub target: RecordTypeId,
    /// That of the target.
    pub key_form: KeyForm,
    pub on_delete: OnDelete,
}

/// What happens to a reference when the record it points to is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    Refuse,
    Cascade,
    SetNull,
}

/// The records of `target` whose reference `field` points here.
#[derive(Debug, Clone, PartialEq)]
pub struct Inverse {
    pub target: RecordTypeId,
    pub field: FieldId,
}

/// The records on the other side of a link table.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub target: RecordTypeId,
    /// That of the target.
    pub key_form: KeyForm,
    pub table: String,
    pub own_column: String,
    pub other_column: String,
}

impl FieldKind {
    /// The type of the values in the field's column; `None` if this record has no column for it.
    pub const fn value_type(&self) -> Option<&ValueType> {
        match self {
            FieldKind::Id(form) => Some(form.value_type()),
            FieldKind::Relation(Relation::Reference(reference)) => Some(reference.key_form.value_type()),
            FieldKind::Value(value_type) => Some(value_type),
            FieldKind::Relation(Relation::Inverse(_) | Relation::Link(_)) | FieldKind::Unstored => None,
        }
    }

    /// The value type of a field that holds a value of its own: neither an id nor a reference.
    pub const fn own_value(&self) -> Option<&ValueType> {
        match self {
            FieldKind::Value(value_type) => Some(value_type),
            FieldKind::Id(_) | FieldKind::Relation(_) | FieldKind::Unstored => None,
        }
    }

    pub const fn relation(&self) -> Option<&Relation> {
        match self {
            FieldKind::Relation(relation) => Some(relation),
            FieldKind::Id(_) | FieldKind::Value(_) | FieldKind::Unstored => None,
        }
    }

    pub const fn is_id(&self) -> bool {
        matches!(self, FieldKind::Id(_))
    }

    /// The form of the record's own id.
    pub const fn key_form(&self) -> Option<KeyForm> {
        if let FieldKind::Id(form) = self { Some(*form) } else { None }
    }

    pub const fn is_unstored(&self) -> bool {
        matches!(self, FieldKind::Unstored)
    }

    /// True if clients may write it, unless the server fills it.
    pub const fn has_input(&self) -> bool {
        match self {
            FieldKind::Value(_) | FieldKind::Relation(Relation::Reference(_) | Relation::Link(_)) => true,
            FieldKind::Id(_) | FieldKind::Relation(Relation::Inverse(_)) | FieldKind::Unstored => false,
        }
    }

    pub fn reference(&self) -> Option<&Reference> {
        if let Some(Relation::Reference(reference)) = self.relation() { Some(reference) } else { None }
    }

    pub fn inverse(&self) -> Option<&Inverse> {
        if let Some(Relation::Inverse(inverse)) = self.relation() { Some(inverse) } else { None }
    }

    pub fn link(&self) -> Option<&Link> {
        if let Some(Relation::Link(link)) = self.relation() { Some(link) } else { None }
    }

    pub fn is_reference(&self) -> bool {
        self.reference().is_some()
    }

    pub fn is_link(&self) -> bool {
        self.link().is_some()
    }

    /// The record type whose ids are written into this field: that of a reference or a link.
    pub fn input_target(&self) -> Option<RecordTypeId> {
        self.relation().filter(|_| self.has_input()).map(Relation::target)
    }

    /// The scalar of a field that holds a single one.
    pub fn scalar(&self) -> Option<Scalar> {
        self.value_type().and_then(ValueType::scalar)
    }

    /// True if a column holds a single value that can be filtered, sorted and indexed by.
    pub fn is_comparable(&self) -> bool {
        self.value_type().is_some_and(|value_type| !value_type.is_json())
    }

    /// True if the values are free text, which can be searched.
    pub fn is_text(&self) -> bool {
        self.value_type().is_some_and(ValueType::is_text)
    }

    pub fn is_number(&self) -> bool {
        self.scalar().is_some_and(|scalar| scalar.group() == ScalarGroup::Number)
    }

    /// True for values that can be written like the key of another record.
    pub fn holds_key_text(&self) -> bool {
        matches!(self.scalar(), Some(Scalar::Id | Scalar::Int | Scalar::Long | Scalar::String | Scalar::Uuid))
    }

    /// True for numbers and times.
    pub fn is_ordered(&self) -> bool {
        self.scalar().is_some_and(|scalar| matches!(scalar.group(), ScalarGroup::Number | ScalarGroup::Time))
    }

    pub fn list_item(&self) -> Option<&ListItem> {
        if let Some(ValueType::List(item)) = self.value_type() { Some(item) } else { None }
    }
}

impl ValueType {
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            ValueType::Scalar(scalar) => Some(*scalar),
            ValueType::Key(_) | ValueType::Enum(_) | ValueType::Embedded(_) | ValueType::List(_) => None,
        }
    }

    pub fn enum_name(&self) -> Option<&str> {
        if let ValueType::Enum(name) = self { Some(name) } else { None }
    }

    pub fn embedded_name(&self) -> Option<&str> {
        if let ValueType::Embedded(name) = self { Some(name) } else { None }
    }

    /// The type itself, or that of the items of a list, whose items may be lists too.
    pub fn innermost(&self) -> &ValueType {
        if let ValueType::List(item) = self { item.value_type.innermost() } else { self }
    }

    pub const fn storage_class(&self) -> StorageClass {
        match self {
            ValueType::Key(form) if form.is_integer() => StorageClass::Integer,
            ValueType::Key(_) => StorageClass::Text,
            ValueType::Scalar(scalar) => scalar.storage_class(),
            ValueType::Enum(_) | ValueType::Embedded(_) | ValueType::List(_) => StorageClass::Text,
        }
    }

    /// True if the values are free text.
    pub fn is_text(&self) -> bool {
        self.scalar().is_some_and(|scalar| scalar.group() == ScalarGroup::Text)
    }

    /// True if the values are stored as JSON, and so cannot be compared.
    pub fn is_json(&self) -> bool {
        match self {
            ValueType::Key(_) | ValueType::Enum(_) => false,
            ValueType::Scalar(scalar) => *scalar == Scalar::Json,
            ValueType::Embedded(_) | ValueType::List(_) => true,
        }
    }

    /// True if the values consist of other values with types of their own.
    pub const fn has_parts(&self) -> bool {
        match self {
            ValueType::Key(_) | ValueType::Scalar(_) | ValueType::Enum(_) => false,
            ValueType::Embedded(_) | ValueType::List(_) => true,
        }
    }
}

impl Relation {
    /// The record type on the other side.
    pub const fn target(&self) -> RecordTypeId {
        match self {
            Relation::Reference(reference) => reference.target,
            Relation::Inverse(inverse) => inverse.target,
            Relation::Link(link) => link.target,
        }
    }
}
