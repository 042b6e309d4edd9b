//! The id of a record, of any key form.

use std::fmt;

use crate::values::decimal;
use crate::{CellValue, KeyForm, StoredValue, Value};

/// Maximum length of a text key. Keys are segments of paths and parts of cursors.
pub const MAX_KEY_BYTES: usize = 200;

/// The id of a record. Which variant the ids of a type have follows from its [`KeyForm`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordId {
    Number(i64),
    /// A text key, or a UUID in lower case with hyphens.
    Text(Box<str>),
}

impl RecordId {
    /// The id that a value denotes; an error explains what it must be.
    pub fn from_value(form: KeyForm, value: &Value) -> Result<RecordId, &'static str> {
        match (form, value) {
            (KeyForm::Digits | KeyForm::Number, value) => {
                value.as_i64().map(RecordId::Number).ok_or(NUMBER_HELP)
            }
            (KeyForm::Uuid | KeyForm::Text, Value::String(text)) => RecordId::from_text(form, text),
            // GraphQL sends an integer where an `ID` is expected.
            (KeyForm::Text, Value::Int(number)) => RecordId::from_text(form, &number.to_string()),
            (KeyForm::Uuid, _) => Err(UUID_HELP),
            (KeyForm::Text, _) => Err(TEXT_HELP),
        }
    }

    /// The id in a path, a file or a form.
    pub fn from_text(form: KeyForm, text: &str) -> Result<RecordId, &'static str> {
        match form {
            KeyForm::Digits | KeyForm::Number => {
                decimal::parse_integer(text).map(RecordId::Number).ok_or(NUMBER_HELP)
            }
            KeyForm::Uuid => match uuid::Uuid::try_parse(text) {
                Ok(uuid) => Ok(RecordId::from(uuid)),
                Err(_) => Err(UUID_HELP),
            },
            KeyForm::Text if is_text_key(text) => Ok(RecordId::Text(text.into())),
            KeyForm::Text => Err(TEXT_HELP),
        }
    }

    /// The id in a cell; `None` if another program wrote something that is no id.
    pub fn from_cell(cell: CellValue<'_>) -> Option<RecordId> {
        match cell {
            CellValue::Int(number) => Some(RecordId::Number(number)),
            CellValue::Text(text) => Some(RecordId::Text(text.into())),
            CellValue::Null | CellValue::Real(_) | CellValue::Unreadable => None,
        }
    }

    /// A new UUID; those generated later sort after it.
    pub fn generate() -> RecordId {
        RecordId::from(uuid::Uuid::now_v7())
    }

    pub fn as_cell(&self) -> CellValue<'_> {
        match self {
            RecordId::Number(number) => CellValue::Int(*number),
            RecordId::Text(text) => CellValue::Text(text),
        }
    }

    pub fn into_stored(self) -> StoredValue {
        match self {
            RecordId::Number(number) => StoredValue::Int(number),
            RecordId::Text(text) => StoredValue::Text(text.into_string()),
        }
    }

    /// The id as the operand of a condition.
    pub fn to_value(&self) -> Value {
        match self {
            RecordId::Number(number) => Value::Int(*number),
            RecordId::Text(text) => Value::String(text.to_string()),
        }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordId::Number(number) => write!(f, "{number}"),
            RecordId::Text(text) => f.write_str(text),
        }
    }
}

impl From<i64> for RecordId {
    fn from(number: i64) -> RecordId {
        RecordId::Number(number)
    }
}

impl From<&str> for RecordId {
    fn from(text: &str) -> RecordId {
        RecordId::Text(text.into())
    }
}

impl From<uuid::Uuid> for RecordId {
    fn from(uuid: uuid::Uuid) -> RecordId {
        RecordId::from(&*uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()))
    }
}

const NUMBER_HELP: &str = "must be an id (a whole number)";
const UUID_HELP: &str = "must be a UUID such as 123e4567-e89b-12d3-a456-426614174000";
const TEXT_HELP: &str = "must be a text of 1 to 200 bytes without `/`, control characters and spaces at its ends, other than `new`, `-`, `.` and `..`";

/// True if the text can be a key: a segment of a path that no page of the collection has.
fn is_text_key(text: &str) -> bool {
    let is_reserved = matches!(text, "" | "new" | "-" | "." | "..");
    // Forms trim what is typed, and lists of ids have one per line.
    let is_plain = text.trim() == text && !text.chars().any(|letter| letter == '/' || letter.is_control());
    !is_reserved && text.len() <= MAX_KEY_BYTES && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_takes_its_own_texts() {
        let parse = |form, text: &str| RecordId::from_text(form, text).ok();
        assert_eq!(parse(KeyForm::Digits, "42"), Some(RecordId::Number(42)));
        assert_eq!(parse(KeyForm::Number, "+42"), None);
        let lower = "0190163d-8694-739b-aea5-966c26f8ad91";
        assert_eq!(parse(KeyForm::Uuid, &lower.to_uppercase()), Some(RecordId::from(lower)));
        assert_eq!(parse(KeyForm::Uuid, "42"), None);
        assert_eq!(parse(KeyForm::Text, "42"), Some(RecordId::from("42")));
        let too_long = "x".repeat(MAX_KEY_BYTES + 1);
        for refused in ["", "new", "-", ".", "..", "a/b", "a\0b", " a", "a ", "a\nb", &too_long] {
            assert_eq!(parse(KeyForm::Text, refused), None, "{refused:?}");
        }
        assert!(parse(KeyForm::Text, &too_long[1..]).is_some());
    }

    #[test]
    fn generated_ids_ascend() {
        let ids: Vec<RecordId> = (0..1_000).map(|_| RecordId::generate()).collect();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| RecordId::from_text(KeyForm::Uuid, &id.to_string()).as_ref() == Ok(id)));
    }
}
