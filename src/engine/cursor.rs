//! Opaque cursors: the place of a record in a list, as text that a client hands back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::operation::Order;
use super::store::Row;
use crate::error::{Error, Result};
use crate::model::{Cell, Stored, decimal};

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

/// The cursor of a row whose cells from `first` on are the order's fields and then the id.
pub fn encode(order: &[Order], row: &dyn Row, first: usize) -> String {
    let cells = (0..=order.len()).map(|i| to_json(row.cell(first + i)));
    let parts: Vec<serde_json::Value> = std::iter::once(signature(order).into()).chain(cells).collect();
    URL_SAFE_NO_PAD.encode(serde_json::Value::from(parts).to_string())
}

/// The order's values and the id that a cursor stands for; refused when it was made for another order.
pub fn decode(order: &[Order], text: &str) -> Result<Seen> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
    let parts: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| refused())?;
    let [signed, values @ .., id] = parts.as_slice() else { return Err(refused()) };
    if signed.as_str() != Some(signature(order).as_str()) || values.len() != order.len() {
        return Err(refused());
    }
    let values = values.iter().map(|value| to_told(value).ok_or_else(refused)).collect::<Result<_>>()?;
    Ok(Seen { values, id: id.as_i64().ok_or_else(refused)? })
}

pub(super) fn refused() -> Error {
    let message = "`after` is no cursor of this list in this order; start again without it";
    Error::invalid("after", "CURSOR", message)
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

/// Which order a cursor belongs to: `3,-5` for field 3 ascending, then field 5 descending.
fn signature(order: &[Order]) -> String {
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
