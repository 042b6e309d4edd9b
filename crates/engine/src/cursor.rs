//! Opaque cursors: the position of a record in a list, as text that clients send back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use trefoil_model::error::{Error, Result};
use trefoil_model::values::decimal;
use trefoil_model::{
    CellValue, FieldKind, KeyForm, Model, RecordId, RecordType, StorageClass, StoredValue, ValueType,
};

use crate::operation::{SortKey, SortValue};
use crate::row::Row;

/// Longer texts are cut in a cursor, which must fit into the head of a request …
const MAX_TEXT_BYTES: usize = 1_024;
/// … to a prefix of this length. The rest is read from the record itself.
const PREFIX_BYTES: usize = 128;

// Only texts are cut, never the digits of a number.
const _: () = assert!(decimal::MAX_DIGITS + "-0.".len() < MAX_TEXT_BYTES);

/// The position of a record in a list, as far as a cursor contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct CursorPosition {
    /// The values of the sort keys.
    pub values: Vec<CursorValue>,
    pub key: CursorKey,
}

/// Which of the records with the same sort keys come after the position.
#[derive(Debug, Clone, PartialEq)]
pub enum CursorKey {
    /// Those with a greater id.
    After(RecordId),
    /// All of them: the position is at a record of an earlier type of the list.
    All,
    /// None of them: the position is at a record of a later type.
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CursorValue {
    Full(StoredValue),
    /// The prefix of a text that is too long for a cursor.
    Prefix(StoredValue),
}

/// The format of a list's cursors: the signature of the list, and the number of sort keys.
#[derive(Debug, Clone)]
pub struct CursorFormat {
    signature: String,
    fields: usize,
}

/// The position of a row, before it is encoded.
#[derive(Debug, Clone)]
pub struct RowPosition(Vec<serde_json::Value>);

impl CursorFormat {
    pub fn of(model: &Model, record: &RecordType, order: &[SortKey]) -> CursorFormat {
        CursorFormat { signature: order_signature(model, record, order), fields: order.len() }
    }

    /// The position of a row whose cells from `first` on are the sort keys and then the id.
    pub fn read(&self, row: &dyn Row, first: usize) -> RowPosition {
        RowPosition((0..=self.fields).map(|i| cell_to_json(row.cell(first + i))).collect())
    }

    /// The cursor of a row.
    pub fn encode(&self, position: RowPosition) -> String {
        let parts = std::iter::once(self.signature.as_str().into()).chain(position.0);
        URL_SAFE_NO_PAD.encode(serde_json::Value::from_iter(parts).to_string())
    }
}

/// Decodes a cursor. Refused if it was made for other records or another order, or holds values that the sort keys
/// cannot have. `name` is the name of its argument.
pub fn decode(
    model: &Model,
    record: &RecordType,
    order: &[SortKey],
    name: &str,
    text: &str,
) -> Result<CursorPosition> {
    let invalid_cursor = || invalid_cursor(name);
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid_cursor())?;
    let parts: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| invalid_cursor())?;
    let [signature, values @ .., id] = parts.as_slice() else { return Err(invalid_cursor()) };
    let is_valid = |signature: &str| {
        signature == order_signature(model, record, order)
            || older_signature(order).is_some_and(|older| signature == older)
    };
    if !signature.as_str().is_some_and(is_valid) || values.len() != order.len() {
        return Err(invalid_cursor());
    }
    let cursor_value = |(value, key): (&serde_json::Value, &SortKey)| {
        value_from_json(value)
            .filter(|value| match &key.value {
                SortValue::Path(path) => fits(&path.target(model, record).kind, value),
                SortValue::Rank => matches!(value, CursorValue::Full(StoredValue::Int(_))),
            })
            .ok_or_else(invalid_cursor)
    };
    let values = values.iter().zip(order).map(cursor_value).collect::<Result<_>>()?;
    let key = match id.as_bool() {
        Some(true) => CursorKey::All,
        Some(false) => CursorKey::None,
        None => CursorKey::After(id_from_json(record.key_form(), id).ok_or_else(invalid_cursor)?),
    };
    Ok(CursorPosition { values, key })
}

/// The cursors for the members of a list of several types, given that of a record of one of them. Ties are in the order
/// of the members.
pub fn cursors_for_members(
    model: &Model,
    members: &[(&RecordType, &[SortKey])],
    text: &str,
) -> Result<Vec<String>> {
    let is_own =
        |(record, order): &(&RecordType, &[SortKey])| decode(model, record, order, "after", text).is_ok();
    let invalid_cursor = || invalid_cursor("after");
    let own = members.iter().position(is_own).ok_or_else(invalid_cursor)?;
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid_cursor())?;
    let parts: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| invalid_cursor())?;
    let cursor = |(number, (record, order)): (usize, &(&RecordType, &[SortKey]))| {
        let mut parts = parts.clone();
        if let ([signature, .., id], false) = (parts.as_mut_slice(), number == own) {
            *signature = order_signature(model, record, order).into();
            *id = (number > own).into();
        }
        URL_SAFE_NO_PAD.encode(serde_json::Value::from(parts).to_string())
    };
    Ok(members.iter().enumerate().map(cursor).collect())
}

fn invalid_cursor(name: &str) -> Error {
    let message = format!("`{name}` is not a cursor of this list with this order; start again without it");
    Error::invalid(name, "CURSOR", message)
}

/// True if the field could have this value. PostgreSQL accepts only values of the column's type, and clients may
/// send forged cursors.
fn fits(kind: &FieldKind, value: &CursorValue) -> bool {
    let storage_class = kind.value_type().map(ValueType::storage_class);
    match value {
        CursorValue::Full(StoredValue::Null) => true,
        CursorValue::Full(StoredValue::Int(_)) => storage_class == Some(StorageClass::Integer),
        CursorValue::Full(StoredValue::Real(_)) => storage_class == Some(StorageClass::Real),
        CursorValue::Full(StoredValue::Text(text)) => {
            storage_class == Some(StorageClass::Text) && !text.contains('\0')
        }
        // Only text has a prefix.
        CursorValue::Prefix(StoredValue::Text(text)) => kind.is_text() && !text.contains('\0'),
        CursorValue::Prefix(StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_)) => false,
    }
}

impl CursorPosition {
    /// The part that changes the SQL text: the kind of key and, for each value, whether it is complete.
    pub fn statement_shape(&self) -> Vec<u8> {
        let key = match self.key {
            CursorKey::After(_) => 1,
            CursorKey::All => 2,
            CursorKey::None => 3,
        };
        let shape = |value: &CursorValue| match value {
            CursorValue::Full(_) => 1,
            CursorValue::Prefix(_) => 2,
        };
        std::iter::once(key).chain(self.values.iter().map(shape)).collect()
    }
}

impl CursorValue {
    pub fn stored(&self) -> &StoredValue {
        match self {
            CursorValue::Full(value) | CursorValue::Prefix(value) => value,
        }
    }
}

/// The list that a cursor belongs to: `User:name,-age` for users by name, then by age descending. Conditions are
/// not part of it: a position in the order means the same under any filter.
fn order_signature(model: &Model, record: &RecordType, order: &[SortKey]) -> String {
    let words = order.iter().map(|key| key.word(model, record));
    format!("{}:{}", record.name, words.collect::<Vec<_>>().join(","))
}

/// The signature of older versions, without the record type: `3,-5` for field 3 ascending, then field 5 descending.
/// They sorted by fields of the record itself only.
fn older_signature(order: &[SortKey]) -> Option<String> {
    let word = |key: &SortKey| {
        Some(format!("{}{}", if key.descending { "-" } else { "" }, key.value.own_field()?.0))
    };
    let words: Option<Vec<String>> = order.iter().map(word).collect();
    words.map(|words| words.join(","))
}

fn cell_to_json(cell: CellValue<'_>) -> serde_json::Value {
    match cell {
        CellValue::Null | CellValue::Unreadable => serde_json::Value::Null,
        CellValue::Int(number) => number.into(),
        // As bits: exact, and distinct from integers.
        CellValue::Real(number) => serde_json::json!({ "f": number.to_bits() }),
        CellValue::Text(text) if text.len() > MAX_TEXT_BYTES => {
            serde_json::json!({ "b": &text[..text.floor_char_boundary(PREFIX_BYTES)] })
        }
        CellValue::Text(text) => text.into(),
    }
}

/// Other programs may have written ids that clients could not choose: a list goes on after these, too.
fn id_from_json(form: KeyForm, id: &serde_json::Value) -> Option<RecordId> {
    match form {
        KeyForm::Digits | KeyForm::Number => id.as_i64().map(RecordId::Number),
        KeyForm::Uuid => {
            id.as_str().filter(|text| RecordId::from_text(form, text).is_ok()).map(RecordId::from)
        }
        KeyForm::Text => id.as_str().filter(|text| !text.contains('\0')).map(RecordId::from),
    }
}

fn value_from_json(value: &serde_json::Value) -> Option<CursorValue> {
    match value {
        serde_json::Value::Null => Some(CursorValue::Full(StoredValue::Null)),
        serde_json::Value::Number(number) => number.as_i64().map(StoredValue::Int).map(CursorValue::Full),
        serde_json::Value::String(text) => Some(CursorValue::Full(StoredValue::Text(text.clone()))),
        serde_json::Value::Object(map) => match (map.get("f"), map.get("b")) {
            (Some(bits), _) => {
                bits.as_u64().map(|bits| CursorValue::Full(StoredValue::Real(f64::from_bits(bits))))
            }
            (None, Some(text)) => {
                text.as_str().map(|text| CursorValue::Prefix(StoredValue::Text(text.to_owned())))
            }
            (None, None) => None,
        },
        serde_json::Value::Bool(_) | serde_json::Value::Array(_) => None,
    }
}
