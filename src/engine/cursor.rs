//! Opaque cursors: the place of a record in a list, as text that a client hands back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::operation::Order;
use super::store::Row;
use crate::error::{Error, Result};
use crate::model::{Cell, Stored};

/// The cursor of a row whose cells from `first` on are the order's fields and then the id.
pub fn encode(order: &[Order], row: &dyn Row, first: usize) -> String {
    let cells = (0..=order.len()).map(|i| to_json(row.cell(first + i)));
    let parts: Vec<serde_json::Value> = std::iter::once(signature(order).into()).chain(cells).collect();
    URL_SAFE_NO_PAD.encode(serde_json::Value::from(parts).to_string())
}

/// The order's values and the id that a cursor stands for; refused when it was made for another order.
pub fn decode(order: &[Order], text: &str) -> Result<(Vec<Stored>, i64)> {
    let refused = || {
        let message = "`after` is no cursor of this list in this order; start again without it";
        Error::invalid("after", "CURSOR", message)
    };
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
    let parts: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|_| refused())?;
    let [signed, values @ .., id] = parts.as_slice() else { return Err(refused()) };
    if signed.as_str() != Some(signature(order).as_str()) || values.len() != order.len() {
        return Err(refused());
    }
    let values = values.iter().map(|value| to_stored(value).ok_or_else(refused)).collect::<Result<_>>()?;
    Ok((values, id.as_i64().ok_or_else(refused)?))
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
        Cell::Text(text) => text.into(),
    }
}

fn to_stored(value: &serde_json::Value) -> Option<Stored> {
    match value {
        serde_json::Value::Null => Some(Stored::Null),
        serde_json::Value::Number(number) => number.as_i64().map(Stored::Int),
        serde_json::Value::String(text) => Some(Stored::Text(text.clone())),
        serde_json::Value::Object(map) => {
            map.get("f").and_then(serde_json::Value::as_u64).map(|bits| Stored::Real(f64::from_bits(bits)))
        }
        serde_json::Value::Bool(_) | serde_json::Value::Array(_) => None,
    }
}
