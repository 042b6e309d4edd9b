//! `DisplayValue`: a value formatted for people, as templates receive it.

use serde::Serialize;

/// A value formatted for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DisplayValue {
    /// Null.
    Nothing,
    /// `cut` if only the beginning is shown.
    Text {
        text: String,
        cut: bool,
    },
    Number {
        text: String,
    },
    #[serde(rename = "truth")]
    Boolean {
        yes: bool,
    },
    /// An enum value. `tone` is the number of its colour.
    Choice {
        text: String,
        tone: usize,
    },
    /// A date or time: `datetime` in ISO format, `text` for people.
    Time {
        datetime: String,
        text: String,
    },
    /// A web or email address.
    Address {
        href: String,
        text: String,
    },
    /// A link to another record.
    Record {
        href: String,
        text: String,
    },
    /// An id or UUID.
    Code {
        text: String,
    },
    /// A colour such as `#0b6b52`.
    Color {
        text: String,
    },
    /// Indented JSON, or other code.
    Json {
        text: String,
    },
    List {
        items: Vec<DisplayValue>,
    },
    Object {
        fields: Vec<LabelledValue>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelledValue {
    pub label: String,
    pub value: DisplayValue,
}

/// Fields that stand together on the page of a record.
#[derive(Debug, Clone, Serialize)]
pub struct ValueGroup {
    /// `None` for fields without a group.
    pub label: Option<String>,
    pub fields: Vec<LabelledValue>,
}
