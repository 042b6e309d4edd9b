//! Writes cells as JSON, byte by byte and without allocating.

use crate::values::{date_times, decimal};
use crate::{CellValue, Field, KeyForm, RecordId, Scalar, Value, ValueType};

/// The cell holds something that the field cannot: another program wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableCellError;

/// Writes a cell as every response shows it: ids, Long and Decimal as strings, times without trailing zeros.
pub fn write_cell(
    out: &mut Vec<u8>,
    value_type: &ValueType,
    cell: CellValue<'_>,
) -> Result<(), UnreadableCellError> {
    if cell == CellValue::Null {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match (value_type, cell) {
        (ValueType::Scalar(scalar), cell) => return write_scalar(out, *scalar, cell),
        (ValueType::Enum(_), CellValue::Text(text)) => write_text(out, text),
        (ValueType::Key(KeyForm::Digits), CellValue::Int(id)) => write_quoted_int(out, id),
        (ValueType::Key(KeyForm::Number), CellValue::Int(id)) => write_int(out, id),
        (ValueType::Key(KeyForm::Uuid | KeyForm::Text), CellValue::Text(id)) => write_text(out, id),
        (ValueType::Embedded(_) | ValueType::List(_), CellValue::Text(text)) => {
            write_checked_json(out, text)?
        }
        (
            ValueType::Key(_) | ValueType::Enum(_) | ValueType::Embedded(_) | ValueType::List(_),
            CellValue::Null
            | CellValue::Int(_)
            | CellValue::Real(_)
            | CellValue::Text(_)
            | CellValue::Unreadable,
        ) => return Err(UnreadableCellError),
    }
    Ok(())
}

/// Writes the id of a record as a JSON string.
pub fn write_id(out: &mut Vec<u8>, id: &RecordId) {
    match id {
        RecordId::Number(number) => write_quoted_int(out, *number),
        RecordId::Text(text) => write_text(out, text),
    }
}

/// The cell as a value, for Rust code, equal to what [`write_cell`] writes. An unreadable cell is null.
pub fn cell_to_value(value_type: &ValueType, cell: CellValue<'_>) -> Value {
    let mut text = Vec::new();
    let written = write_cell(&mut text, value_type, cell);
    written.ok().and_then(|()| serde_json::from_slice(&text).ok()).unwrap_or(Value::Null)
}

impl Field {
    /// A cell of the field's column as a value, see [`cell_to_value`].
    pub fn cell_value(&self, cell: CellValue<'_>) -> Value {
        self.kind.value_type().map_or(Value::Null, |value_type| cell_to_value(value_type, cell))
    }
}

fn write_scalar(out: &mut Vec<u8>, scalar: Scalar, cell: CellValue<'_>) -> Result<(), UnreadableCellError> {
    match (scalar, cell) {
        (Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email | Scalar::Uuid, CellValue::Text(text)) => {
            write_text(out, text);
        }
        (Scalar::Int, CellValue::Int(number)) if i32::try_from(number).is_ok() => write_int(out, number),
        (Scalar::Long, CellValue::Int(number)) => write_quoted_int(out, number),
        (Scalar::Float, CellValue::Int(number)) => write_float(out, number as f64),
        (Scalar::Float, CellValue::Real(number)) if number.is_finite() => write_float(out, number),
        (Scalar::Boolean, CellValue::Int(0)) => out.extend_from_slice(b"false"),
        (Scalar::Boolean, CellValue::Int(1)) => out.extend_from_slice(b"true"),
        (Scalar::Decimal, CellValue::Text(digits)) if decimal::is_canonical(digits) => {
            write_text(out, digits)
        }
        (Scalar::Date, CellValue::Text(text)) if date_times::parse_date(text).is_some() => {
            write_text(out, text)
        }
        (Scalar::DateTime, CellValue::Text(text)) => write_date_time(out, text, "Z")?,
        (Scalar::LocalDateTime, CellValue::Text(text)) => write_date_time(out, text, "")?,
        (Scalar::Json, CellValue::Text(text)) => write_checked_json(out, text)?,
        (
            Scalar::String
            | Scalar::Int
            | Scalar::Float
            | Scalar::Boolean
            | Scalar::Id
            | Scalar::Long
            | Scalar::Decimal
            | Scalar::Date
            | Scalar::Uuid
            | Scalar::Url
            | Scalar::Email
            | Scalar::Json
            | Scalar::DateTime
            | Scalar::LocalDateTime,
            CellValue::Null
            | CellValue::Int(_)
            | CellValue::Real(_)
            | CellValue::Text(_)
            | CellValue::Unreadable,
        ) => return Err(UnreadableCellError),
    }
    Ok(())
}

/// Writes a JSON string. Runs that need no escape are copied whole.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    let mut from = unescaped_prefix_len(bytes);
    while let Some(offset) = bytes[from..].iter().position(|byte| !needs_no_escape(*byte)) {
        let at = from + offset;
        out.extend_from_slice(&bytes[copied..at]);
        let byte = bytes[at];
        copied = at + 1;
        from = copied + unescaped_prefix_len(&bytes[copied..]);
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(control >> 4)], HEX[usize::from(control & 15)]]);
            }
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

fn needs_no_escape(byte: u8) -> bool {
    byte >= 0x20 && byte != b'"' && byte != b'\\'
}

/// A lower bound for the number of leading bytes that need no escape. Scans chunks of 32 bytes, which the compiler
/// vectorises, then words of 8, as most texts are short.
fn unescaped_prefix_len(bytes: &[u8]) -> usize {
    let chunks = bytes
        .chunks_exact(32)
        .take_while(|chunk| chunk.iter().fold(true, |all, b| all & needs_no_escape(*b)));
    let scanned = chunks.count() * 32;
    let words = bytes[scanned..]
        .chunks_exact(8)
        .take_while(|word| need_no_escape((*word).try_into().expect("eight")));
    scanned + words.count() * 8
}

/// Checks eight bytes at once: a byte below the limit borrows in the subtraction, which sets its highest bit.
fn need_no_escape(word: [u8; 8]) -> bool {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let word = u64::from_le_bytes(word);
    let has_below = |word: u64, limit: u8| word.wrapping_sub(EACH * u64::from(limit)) & !word;
    let has = |byte: u8| has_below(word ^ (EACH * u64::from(byte)), 1);
    (has_below(word, 0x20) | has(b'"') | has(b'\\')) & (EACH << 7) == 0
}

/// Writes any value as compact JSON.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Int(number) => write_int(out, *number),
        Value::Number(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::String(text) => write_text(out, text),
        Value::List(items) => {
            for (i, item) in items.iter().enumerate() {
                out.push(if i == 0 { b'[' } else { b',' });
                write_value(out, item);
            }
            out.extend_from_slice(if items.is_empty() { b"[]" } else { b"]" });
        }
        Value::Object(fields) => {
            for (i, (name, field)) in fields.iter().enumerate() {
                out.push(if i == 0 { b'{' } else { b',' });
                write_text(out, name);
                out.push(b':');
                write_value(out, field);
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
    }
}

pub fn write_int(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub fn write_quoted_int(out: &mut Vec<u8>, number: i64) {
    out.push(b'"');
    write_int(out, number);
    out.push(b'"');
}

/// Writes a number as JavaScript does: the fewest digits that read back the same, `1` for 1.0, `1e+21`.
fn write_float(out: &mut Vec<u8>, number: f64) {
    // Not `-0`.
    let number = if number == 0.0 { 0.0 } else { number };
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
}

/// Writes stored JSON as it is, after checking that it is JSON.
fn write_checked_json(out: &mut Vec<u8>, text: &str) -> Result<(), UnreadableCellError> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|_| UnreadableCellError)?;
    // Only a long text can be nested deeply: each level has an opening and a closing byte.
    if text.len() > 2 * MAX_READABLE_DEPTH && nesting_depth(text) > MAX_READABLE_DEPTH {
        return Err(UnreadableCellError);
    }
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Nesting that JSON readers accept. Deeper values were not stored by this server, see
/// [`crate::values::coerce::MAX_DEPTH`].
const MAX_READABLE_DEPTH: usize = 127;

/// Nesting of lists and objects in a JSON text.
fn nesting_depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Writes a time without trailing zeros of the fraction, and with the zone that clients see.
fn write_date_time(out: &mut Vec<u8>, text: &str, zone: &str) -> Result<(), UnreadableCellError> {
    if !date_times::is_canonical_date_time(text) {
        // Other programs may have stored another format.
        let moment = date_times::parse_date_time(text).ok_or(UnreadableCellError)?;
        return write_date_time(out, &date_times::format_date_time(moment), zone);
    }
    let trimmed = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
    // Zeros of whole seconds stay.
    let trimmed = if trimmed.len() < 19 { &text[..19] } else { trimmed };
    out.push(b'"');
    out.extend_from_slice(trimmed.as_bytes());
    out.extend_from_slice(zone.as_bytes());
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deeply_nested_json_is_unreadable() {
        let nested = |levels: usize| "[".repeat(levels) + "\"[[\\\"[\"" + &"]".repeat(levels);
        for (text, expected) in [
            (nested(MAX_READABLE_DEPTH), Ok(())),
            (nested(MAX_READABLE_DEPTH + 1), Err(UnreadableCellError)),
            (format!("[{}1]", "[],".repeat(500)), Ok(())),
            (format!("\"{}\"", "[".repeat(500)), Ok(())),
            ("[".to_owned(), Err(UnreadableCellError)),
        ] {
            let mut out = Vec::new();
            assert_eq!(write_checked_json(&mut out, &text), expected, "{text:.40}");
            let is_parsed = serde_json::from_str::<Value>(&text).is_ok();
            assert_eq!(is_parsed, expected.is_ok(), "{text:.40}");
        }
    }
}
