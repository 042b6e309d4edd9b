//! Opaque cursors: the place of a record in a list, as text that a client hands back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::operation::SortKey;
use crate::plan::is_text_kind;
use crate::store::Row;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::decimal;
use trefoil_model::{CellValue, FieldKind, RecordType, Scalar, StoredValue};

/// A longer text is not in a cursor, which must fit the head of a request …
const MAX_TEXT_BYTES: usize = 1_024;
/// … but so much of its beginning. The rest is asked of the record itself.
const PREFIX_BYTES: usize = 128;

// What is cut off are texts of the order alone, never the digits of a number.
const _: () = assert!(decimal::MAX_DIGITS + "-0.".len() < MAX_TEXT_BYTES);

/// The place of a record in a list, as far as a cursor knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct CursorPosition {
    /// Of the order's fields.
    pub values: Vec<CursorValue>,
    pub id: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CursorValue {
    Full(StoredValue),
    /// How a text begins that is too long to be told.
    Prefix(StoredValue),
}

/// How the cursors of a list are written: what ties them to the list, and how many fields order it.
#[derive(Debug, Clone)]
pub struct CursorFormat {
    signature: String,
    fields: usize,
}

impl CursorFormat {
    pub fn of(record: &RecordType, order: &[SortKey]) -> CursorFormat {
        CursorFormat { signature: order_signature(record, order), fields: order.len() }
    }

    /// The cursor of a row whose cells from `first` on are the order's fields and then the id.
    pub fn encode(&self, row: &dyn Row, first: usize) -> String {
        let cells = (0..=self.fields).map(|i| cell_to_json(row.cell(first + i)));
        let parts: Vec<serde_json::Value> =
            std::iter::once(self.signature.as_str().into()).chain(cells).collect();
        URL_SAFE_NO_PAD.encode(serde_json::Value::from(parts).to_string())
    }
}

/// The order's values and the id that a cursor stands for; refused when it was made for other records or another order,
/// or when it holds what the order's fields cannot.
pub fn decode(record: &RecordType, order: &[SortKey], text: &str) -> Result<CursorPosition> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid_cursor())?;
    let parts: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| invalid_cursor())?;
    let [signed, values @ .., id] = parts.as_slice() else { return Err(invalid_cursor()) };
    let is_ours = |signed: &str| signed == order_signature(record, order) || signed == older_signature(order);
    if !signed.as_str().is_some_and(is_ours) || values.len() != order.len() {
        return Err(invalid_cursor());
    }
    let told = |(value, order): (&serde_json::Value, &SortKey)| {
        value_from_json(value)
            .filter(|told| fits(&record.field(order.field).kind, told))
            .ok_or_else(invalid_cursor)
    };
    let values = values.iter().zip(order).map(told).collect::<Result<_>>()?;
    Ok(CursorPosition { values, id: id.as_i64().ok_or_else(invalid_cursor)? })
}

fn invalid_cursor() -> Error {
    let message = "`after` is no cursor of this list in this order; start again without it";
    Error::invalid("after", "CURSOR", message)
}

/// Whether the field could have this value. What no list of ours has written must not reach a database that takes only
/// values of a column's type.
fn fits(kind: &FieldKind, told: &CursorValue) -> bool {
    match told {
        CursorValue::Full(StoredValue::Null) => true,
        CursorValue::Full(StoredValue::Int(_)) => {
            matches!(
                kind,
                FieldKind::Id
                    | FieldKind::Reference { .. }
                    | FieldKind::Scalar(Scalar::Int | Scalar::Long | Scalar::Boolean)
            )
        }
        CursorValue::Full(StoredValue::Real(_)) => matches!(kind, FieldKind::Scalar(Scalar::Float)),
        CursorValue::Full(StoredValue::Text(text)) => is_kept_as_text(kind) && !text.contains('\0'),
        // Only what is text has a beginning.
        CursorValue::Prefix(StoredValue::Text(text)) => is_text_kind(kind) && !text.contains('\0'),
        CursorValue::Prefix(StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_)) => false,
    }
}

fn is_kept_as_text(kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Scalar(Scalar::Int | Scalar::Long | Scalar::Boolean | Scalar::Float) => false,
        FieldKind::Scalar(
            Scalar::String
            | Scalar::Id
            | Scalar::Decimal
            | Scalar::Date
            | Scalar::DateTime
            | Scalar::Uuid
            | Scalar::Url
            | Scalar::Email
            | Scalar::Json,
        )
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_) => true,
        FieldKind::Id
        | FieldKind::Reference { .. }
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => false,
    }
}

impl CursorPosition {
    /// What of it is in the statement's text: after each value, whether it is told whole.
    pub fn statement_shape(&self) -> Vec<u8> {
        let each = |told: &CursorValue| match told {
            CursorValue::Full(_) => 1,
            CursorValue::Prefix(_) => 2,
        };
        std::iter::once(1).chain(self.values.iter().map(each)).collect()
    }
}

impl CursorValue {
    pub fn stored(&self) -> &StoredValue {
        match self {
            CursorValue::Full(value) | CursorValue::Prefix(value) => value,
        }
    }
}

/// Which list a cursor belongs to: `User:name,-age` for users by name, then from the oldest on. Conditions are no part of
/// it: a place in the order means the same whatever else is asked.
fn order_signature(record: &RecordType, order: &[SortKey]) -> String {
    let words = order.iter().map(|order| {
        format!("{}{}", if order.descending { "-" } else { "" }, record.field(order.field).name)
    });
    format!("{}:{}", record.name, words.collect::<Vec<_>>().join(","))
}

/// How cursors were signed before they named their records: `3,-5` for field 3 ascending, then field 5 descending.
fn older_signature(order: &[SortKey]) -> String {
    let words =
        order.iter().map(|order| format!("{}{}", if order.descending { "-" } else { "" }, order.field.0));
    words.collect::<Vec<_>>().join(",")
}

fn cell_to_json(cell: CellValue<'_>) -> serde_json::Value {
    match cell {
        CellValue::Null | CellValue::Unreadable => serde_json::Value::Null,
        CellValue::Int(number) => number.into(),
        // Kept apart from integers and exact: the bits.
        CellValue::Real(number) => serde_json::json!({ "f": number.to_bits() }),
        CellValue::Text(text) if text.len() > MAX_TEXT_BYTES => {
            serde_json::json!({ "b": &text[..text.floor_char_boundary(PREFIX_BYTES)] })
        }
        CellValue::Text(text) => text.into(),
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
