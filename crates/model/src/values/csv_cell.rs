//! A value as the text of a CSV cell and back: exact, and harmless to the spreadsheet that opens it.

use crate::values::json_text;
use crate::{CellValue, Field, FieldKind, Scalar, Value};

/// So that spreadsheets know it is UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
pub const LINE_END: &[u8] = b"\r\n";

/// What spreadsheets take for the beginning of a formula, or pass over to find one. Some take the wide ones of East Asia
/// for the others.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// Stands before a text that would be taken for something else, and alone for the empty text.
const FORMULA_ESCAPE: char = '\'';

/// Whether a field's values are free text: only these are marked.
pub fn is_free_text(kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Scalar(Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email) => true,
        FieldKind::Scalar(
            Scalar::Int
            | Scalar::Float
            | Scalar::Boolean
            | Scalar::Long
            | Scalar::Decimal
            | Scalar::Date
            | Scalar::DateTime
            | Scalar::Uuid
            | Scalar::Json,
        )
        | FieldKind::Id
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Reference { .. }
        | FieldKind::Inverse { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => false,
    }
}

/// Whether a text that begins so means itself, or what is left of it without its first mark.
fn has_formula_escape(text: &str) -> bool {
    text.strip_prefix(FORMULA_ESCAPE).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(FORMULA_ESCAPE) || rest.starts_with(FORMULA_STARTS)
    })
}

/// Adds a mark where the text needs one.
pub fn push_escaped(out: &mut Vec<u8>, text: &str) {
    if text.starts_with(FORMULA_STARTS) || has_formula_escape(text) {
        out.push(FORMULA_ESCAPE as u8);
    }
    out.extend_from_slice(text.as_bytes());
}

/// Takes the mark away again, and nothing else.
pub fn unescape(text: &str) -> &str {
    if has_formula_escape(text) { &text[1..] } else { text }
}

/// What a cell with nothing in it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyCell {
    Null,
    /// The empty text: the field is a text and cannot be null.
    EmptyText,
}

impl EmptyCell {
    pub fn for_field(field: &Field) -> EmptyCell {
        if is_free_text(&field.kind) && field.required { EmptyCell::EmptyText } else { EmptyCell::Null }
    }
}

/// The text of a cell; null is an empty one. The empty text is a lone mark where null would be possible.
pub fn push_cell(
    out: &mut Vec<u8>,
    kind: &FieldKind,
    blank: EmptyCell,
    cell: CellValue<'_>,
) -> Result<(), json_text::UnreadableCellError> {
    match cell {
        CellValue::Null => return Ok(()),
        CellValue::Text("") if is_free_text(kind) && blank == EmptyCell::Null => {
            out.push(FORMULA_ESCAPE as u8)
        }
        CellValue::Text(text) if is_free_text(kind) => push_escaped(out, text),
        CellValue::Int(_) | CellValue::Real(_) | CellValue::Text(_) | CellValue::Unreadable => {
            let mut shown = Vec::new();
            json_text::write_cell(&mut shown, kind, cell)?;
            out.extend_from_slice(without_json_quotes(kind, &shown));
        }
    }
    Ok(())
}

/// A cell as it stands in a file, as RFC 4180 says.
pub fn push_quoted(out: &mut Vec<u8>, cell: &[u8]) {
    // A space at either end would not survive some readers.
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

/// The only cell of its line: with nothing in it, readers would skip the line.
pub fn push_only_cell(out: &mut Vec<u8>, cell: &[u8]) {
    match cell {
        [] => out.extend_from_slice(b"\"\""),
        cell => push_quoted(out, cell),
    }
}

/// JSON without its quotes, unless it is JSON that the cell is to hold.
fn without_json_quotes<'j>(kind: &FieldKind, json: &'j [u8]) -> &'j [u8] {
    match kind {
        FieldKind::Scalar(Scalar::Json)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Link { .. } => json,
        FieldKind::Scalar(_) | FieldKind::Id | FieldKind::Enum(_) | FieldKind::Reference { .. } => {
            json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\"")).unwrap_or(json)
        }
        FieldKind::Inverse { .. } | FieldKind::Unstored => json,
    }
}

/// How a file writes numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalPoint {
    Dot,
    /// Where `;` stands between cells, `1,5` is a number.
    Comma,
}

/// What a cell says. What does not look like its type stays text, so that coercion tells what is wrong with it.
pub fn parse_cell(field: &Field, text: &str, point: DecimalPoint) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(match EmptyCell::for_field(field) {
            EmptyCell::EmptyText => Value::from(""),
            EmptyCell::Null => Value::Null,
        });
    }
    Ok(match &field.kind {
        kind if is_free_text(kind) => Value::from(unescape(text)),
        FieldKind::Scalar(Scalar::Int | Scalar::Float) => {
            let text = with_decimal_dot(text, point);
            Value::number(text.trim_ascii()).unwrap_or_else(|| Value::from(text.as_str()))
        }
        FieldKind::Scalar(Scalar::Decimal) => Value::from(with_decimal_dot(text, point).as_str()),
        FieldKind::Scalar(Scalar::Boolean) if text.eq_ignore_ascii_case("true") => Value::Bool(true),
        FieldKind::Scalar(Scalar::Boolean) if text.eq_ignore_ascii_case("false") => Value::Bool(false),
        FieldKind::Scalar(Scalar::Json)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Link { .. } => serde_json::from_str(text)
            .map_err(|_| format!("`{}` must be JSON in its cell", field.input_name))?,
        FieldKind::Scalar(_) | FieldKind::Id | FieldKind::Enum(_) | FieldKind::Reference { .. } => {
            Value::from(text)
        }
        FieldKind::Inverse { .. } | FieldKind::Unstored => Value::from(text),
    })
}

fn with_decimal_dot(text: &str, point: DecimalPoint) -> String {
    match point {
        DecimalPoint::Comma if !text.contains('.') => text.replacen(',', ".", 1),
        DecimalPoint::Comma | DecimalPoint::Dot => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_comes_back_as_it_was() {
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
