//! Values as CSV cells and back, exact and safe to open in a spreadsheet.

use crate::values::json_text;
use crate::{CellValue, Field, JsonForm, KeyForm, Scalar, ScalarGroup, Value, ValueType};

/// Lets spreadsheets recognise UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
pub const LINE_END: &[u8] = b"\r\n";

/// Characters that start a formula in spreadsheets, or that are skipped before one. Some programs treat the
/// full-width forms of East Asia alike.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// Written before a text that would be read as a formula; alone, it is the empty text.
const FORMULA_ESCAPE: char = '\'';

/// True if the first character is an escape that [`unescape`] removes.
fn has_formula_escape(text: &str) -> bool {
    text.strip_prefix(FORMULA_ESCAPE).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(FORMULA_ESCAPE) || rest.starts_with(FORMULA_STARTS)
    })
}

/// Appends the text, with an escape if it needs one.
pub fn push_escaped(out: &mut Vec<u8>, text: &str) {
    if text.starts_with(FORMULA_STARTS) || has_formula_escape(text) {
        out.push(FORMULA_ESCAPE as u8);
    }
    out.extend_from_slice(text.as_bytes());
}

/// Removes the escape that [`push_escaped`] added.
pub fn unescape(text: &str) -> &str {
    if has_formula_escape(text) { &text[1..] } else { text }
}

/// The meaning of an empty cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyCell {
    Null,
    /// The empty text: the field is free text and cannot be null.
    EmptyText,
}

impl EmptyCell {
    pub fn for_field(field: &Field) -> EmptyCell {
        if field.kind.is_text() && field.required { EmptyCell::EmptyText } else { EmptyCell::Null }
    }
}

/// Appends the text of a cell; null is empty. Only free text is escaped. Where null is possible, the empty text is written as a lone escape.
pub fn push_cell(
    out: &mut Vec<u8>,
    value_type: &ValueType,
    empty: EmptyCell,
    cell: CellValue<'_>,
) -> Result<(), json_text::UnreadableCellError> {
    match cell {
        CellValue::Null => return Ok(()),
        CellValue::Text("") if value_type.is_text() && empty == EmptyCell::Null => {
            out.push(FORMULA_ESCAPE as u8)
        }
        CellValue::Text(text) if value_type.is_text() || *value_type == ValueType::Key(KeyForm::Text) => {
            push_escaped(out, text)
        }
        CellValue::Int(_) | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => {
            let mut json = Vec::new();
            json_text::write_cell(&mut json, value_type, cell)?;
            let bare = json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\""));
            out.extend_from_slice(bare.filter(|_| !value_type.is_json()).unwrap_or(&json));
        }
    }
    Ok(())
}

/// Appends a cell, quoted as in RFC 4180 where necessary.
pub fn push_quoted(out: &mut Vec<u8>, cell: &[u8]) {
    // Some readers would drop a space at either end.
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b',' | b';' | b'\n' | b'\r' | b'\t');
    let edges = [cell.first(), cell.last()];
    if cell.iter().all(is_plain) && !edges.contains(&Some(&b' ')) {
        out.extend_from_slice(cell);
        return;
    }
    out.push(b'"');
    for byte in cell {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// Appends the only cell of its line; an empty one is quoted, because readers skip empty lines.
pub fn push_only_cell(out: &mut Vec<u8>, cell: &[u8]) {
    match cell {
        [] => out.extend_from_slice(b"\"\""),
        cell => push_quoted(out, cell),
    }
}

/// The decimal separator of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalPoint {
    Dot,
    /// Used in files that separate cells by `;`: `1,5` is a number.
    Comma,
}

/// The value of a cell. Text that does not look like the field's type stays text, so that coercion reports what is
/// wrong with it.
pub fn parse_cell(field: &Field, text: &str, separator: DecimalPoint) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(match EmptyCell::for_field(field) {
            EmptyCell::EmptyText => Value::from(""),
            EmptyCell::Null => Value::Null,
        });
    }
    if field.kind.is_link() || field.kind.value_type().is_some_and(ValueType::is_json) {
        return serde_json::from_str(text)
            .map_err(|_| format!("the cell of `{}` must contain JSON", field.input_name));
    }
    if field.kind.value_type() == Some(&ValueType::Key(KeyForm::Text)) {
        return Ok(Value::from(unescape(text)));
    }
    let scalar = field.kind.scalar();
    Ok(match scalar.map(Scalar::group) {
        Some(ScalarGroup::Text) => Value::from(unescape(text)),
        Some(ScalarGroup::Number) => {
            let text = with_decimal_dot(text, separator);
            let is_json_number = scalar.map(Scalar::json_form) == Some(JsonForm::Number);
            let number = Value::number(text.trim_ascii()).filter(|_| is_json_number);
            number.unwrap_or_else(|| Value::from(text.as_str()))
        }
        Some(ScalarGroup::Boolean | ScalarGroup::Time | ScalarGroup::Uuid | ScalarGroup::Json) | None => {
            Value::from(text)
        }
    })
}

fn with_decimal_dot(text: &str, separator: DecimalPoint) -> String {
    match separator {
        DecimalPoint::Comma if !text.contains('.') => text.replacen(',', ".", 1),
        DecimalPoint::Comma | DecimalPoint::Dot => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_round_trips() {
        let texts = [
            "", "a", "=1+1", "+49", "-", "@x", "\tx", "\rx", "\n=1", "＝1+1", "'＝1", "'", "''", "'''",
            "'tis", "'=1", "''=1", "'\t", "a'b", " =1", "’",
        ];
        for text in texts {
            let mut out = Vec::new();
            push_escaped(&mut out, text);
            let written = String::from_utf8(out).unwrap();
            assert!(!written.starts_with(FORMULA_STARTS), "{written:?}");
            assert_eq!(unescape(&written), text);
        }
        assert_eq!(unescape("'tis the season"), "'tis the season");
    }
}
