//! Opaque cursors: the place of a record in a list, as text that a client hands back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::operation::Order;
use crate::plan::holds_text;
use crate::store::Row;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::decimal;
use trefoil_model::{Cell, Kind, RecordType, Scalar, Stored};

/// A longer text is not in a cursor, which must fit the head of a request …
const LONGEST: usize = 1_024;
/// … but so much of its beginning. The rest is asked of the record itself.
const BEGINNING: usize = 128;

// What is cut off are texts of the order alone, never the digits of a number.
const _: () = assert!(decimal::MAX_DIGITS + "-0.".len() < LONGEST);

/// The place of a record in a list, as far as a cursor knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Of the order's fields.
    pub values: Vec<Told>,
    pub id: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Whole(Stored),
    /// How a text begins that is too long to be told.
    Beginning(Stored),
}

/// How the cursors of a list are written: what ties them to the list, and how many fields order it.
#[derive(Debug, Clone)]
pub struct CursorFormat {
    signature: String,
    fields: usize,
}

impl CursorFormat {
    pub fn of(record: &RecordType, order: &[Order]) -> CursorFormat {
        CursorFormat { signature: signature(record, order), fields: order.len() }
    }

    /// The cursor of a row whose cells from `first` on are the order's fields and then the id.
    pub fn encode(&self, row: &dyn Row, first: usize) -> String {
        let cells = (0..=self.fields).map(|i| to_json(row.cell(first + i)));
        let parts: Vec<serde_json::Value> =
            std::iter::once(self.signature.as_str().into()).chain(cells).collect();
        URL_SAFE_NO_PAD.encode(serde_json::Value::from(parts).to_string())
    }
}

/// The order's values and the id that a cursor stands for; refused when it was made for other records or another order,
/// or when it holds what the order's fields cannot.
pub fn decode(record: &RecordType, order: &[Order], text: &str) -> Result<Seen> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
    let parts: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| refused())?;
    let [signed, values @ .., id] = parts.as_slice() else { return Err(refused()) };
    let is_ours = |signed: &str| signed == signature(record, order) || signed == older_signature(order);
    if !signed.as_str().is_some_and(is_ours) || values.len() != order.len() {
        return Err(refused());
    }
    let told = |(value, order): (&serde_json::Value, &Order)| {
        to_told(value).filter(|told| fits(&record.field(order.field).kind, told)).ok_or_else(refused)
    };
    let values = values.iter().zip(order).map(told).collect::<Result<_>>()?;
    Ok(Seen { values, id: id.as_i64().ok_or_else(refused)? })
}

fn refused() -> Error {
    let message = "`after` is no cursor of this list in this order; start again without it";
    Error::invalid("after", "CURSOR", message)
}

/// Whether the field could have this value. What no list of ours has written must not reach a database that takes only
/// values of a column's type.
fn fits(kind: &Kind, told: &Told) -> bool {
    match told {
        Told::Whole(Stored::Null) => true,
        Told::Whole(Stored::Int(_)) => {
            matches!(
                kind,
                Kind::Id
                    | Kind::Reference { .. }
                    | Kind::Scalar(Scalar::Int | Scalar::Long | Scalar::Boolean)
            )
        }
        Told::Whole(Stored::Real(_)) => matches!(kind, Kind::Scalar(Scalar::Float)),
        Told::Whole(Stored::Text(text)) => is_kept_as_text(kind) && !text.contains('\0'),
        // Only what is text has a beginning.
        Told::Beginning(Stored::Text(text)) => holds_text(kind) && !text.contains('\0'),
        Told::Beginning(Stored::Null | Stored::Int(_) | Stored::Real(_)) => false,
    }
}

fn is_kept_as_text(kind: &Kind) -> bool {
    match kind {
        Kind::Scalar(Scalar::Int | Scalar::Long | Scalar::Boolean | Scalar::Float) => false,
        Kind::Scalar(
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
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_) => true,
        Kind::Id | Kind::Reference { .. } | Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => {
            false
        }
    }
}

impl Seen {
    /// What of it is in the statement's text: after each value, whether it is told whole.
    pub fn shape(&self) -> Vec<u8> {
        let each = |told: &Told| match told {
            Told::Whole(_) => 1,
            Told::Beginning(_) => 2,
        };
        std::iter::once(1).chain(self.values.iter().map(each)).collect()
    }
}

impl Told {
    pub fn stored(&self) -> &Stored {
        match self {
            Told::Whole(value) | Told::Beginning(value) => value,
        }
    }
}

/// Which list a cursor belongs to: `User:name,-age` for users by name, then from the oldest on. Conditions are no part of
/// it: a place in the order means the same whatever else is asked.
fn signature(record: &RecordType, order: &[Order]) -> String {
    let words = order.iter().map(|order| {
        format!("{}{}", if order.descending { "-" } else { "" }, record.field(order.field).name)
    });
    format!("{}:{}", record.name, words.collect::<Vec<_>>().join(","))
}

/// How cursors were signed before they named their records: `3,-5` for field 3 ascending, then field 5 descending.
fn older_signature(order: &[Order]) -> String {
    let words =
        order.iter().map(|order| format!("{}{}", if order.descending { "-" } else { "" }, order.field.0));
    words.collect::<Vec<_>>().join(",")
}

fn to_json(cell: Cell<'_>) -> serde_json::Value {
    match cell {
        Cell::Null | Cell::Unreadable => serde_json::Value::Null,
        Cell::Int(number) => number.into(),
        // Kept apart from integers and exact: the bits.
        Cell::Real(number) => serde_json::json!({ "f": number.to_bits() }),
        Cell::Text(text) if text.len() > LONGEST => {
            serde_json::json!({ "b": &text[..text.floor_char_boundary(BEGINNING)] })
        }
        Cell::Text(text) => text.into(),
    }
}

fn to_told(value: &serde_json::Value) -> Option<Told> {
    match value {
        serde_json::Value::Null => Some(Told::Whole(Stored::Null)),
        serde_json::Value::Number(number) => number.as_i64().map(Stored::Int).map(Told::Whole),
        serde_json::Value::String(text) => Some(Told::Whole(Stored::Text(text.clone()))),
        serde_json::Value::Object(map) => match (map.get("f"), map.get("b")) {
            (Some(bits), _) => bits.as_u64().map(|bits| Told::Whole(Stored::Real(f64::from_bits(bits)))),
            (None, Some(text)) => text.as_str().map(|text| Told::Beginning(Stored::Text(text.to_owned()))),
            (None, None) => None,
        },
        serde_json::Value::Bool(_) | serde_json::Value::Array(_) => None,
    }
}
