//! A value as the text of a CSV cell and back: exact, and harmless to the spreadsheet that opens it.

use crate::values::json_text;
use crate::{Cell, Field, Kind, Scalar, Value};

/// So that spreadsheets know it is UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
pub const LINE_END: &[u8] = b"\r\n";

/// What spreadsheets take for the beginning of a formula, or pass over to find one. Some take the wide ones of East Asia
/// for the others.
const DANGEROUS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
/// Stands before a text that would be taken for something else, and alone for the empty text.
const MARK: char = '\'';

/// Whether a field's values are free text: only these are marked.
pub fn is_text(kind: &Kind) -> bool {
    match kind {
        Kind::Scalar(Scalar::String | Scalar::Id | Scalar::Url | Scalar::Email) => true,
        Kind::Scalar(
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
        | Kind::Id
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Inverse { .. }
        | Kind::Link { .. }
        | Kind::Unstored => false,
    }
}

/// Whether a text that begins so means itself, or what is left of it without its first mark.
fn is_marked(text: &str) -> bool {
    text.strip_prefix(MARK)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(MARK) || rest.starts_with(DANGEROUS))
}

/// Adds a mark where the text needs one.
pub fn push_marked(out: &mut Vec<u8>, text: &str) {
    if text.starts_with(DANGEROUS) || is_marked(text) {
        out.push(MARK as u8);
    }
    out.extend_from_slice(text.as_bytes());
}

/// Takes the mark away again, and nothing else.
pub fn unmarked(text: &str) -> &str {
    if is_marked(text) { &text[1..] } else { text }
}

/// What a cell with nothing in it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blank {
    Null,
    /// The empty text: the field is a text and cannot be null.
    Text,
}

impl Blank {
    pub fn of(field: &Field) -> Blank {
        if is_text(&field.kind) && field.required { Blank::Text } else { Blank::Null }
    }
}

/// The text of a cell; null is an empty one. The empty text is a lone mark where null would be possible.
pub fn push_cell(
    out: &mut Vec<u8>,
    kind: &Kind,
    blank: Blank,
    cell: Cell<'_>,
) -> Result<(), json_text::Unreadable> {
    match cell {
        Cell::Null => return Ok(()),
        Cell::Text("") if is_text(kind) && blank == Blank::Null => out.push(MARK as u8),
        Cell::Text(text) if is_text(kind) => push_marked(out, text),
        Cell::Int(_) | Cell::Real(_) | Cell::Text(_) | Cell::Unreadable => {
            let mut shown = Vec::new();
            json_text::write_cell(&mut shown, kind, cell)?;
            out.extend_from_slice(bare(kind, &shown));
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
pub fn push_alone(out: &mut Vec<u8>, cell: &[u8]) {
    match cell {
        [] => out.extend_from_slice(b"\"\""),
        cell => push_quoted(out, cell),
    }
}

/// JSON without its quotes, unless it is JSON that the cell is to hold.
fn bare<'j>(kind: &Kind, json: &'j [u8]) -> &'j [u8] {
    match kind {
        Kind::Scalar(Scalar::Json) | Kind::Embedded(_) | Kind::List(_) | Kind::Link { .. } => json,
        Kind::Scalar(_) | Kind::Id | Kind::Enum(_) | Kind::Reference { .. } => {
            json.strip_prefix(b"\"").and_then(|json| json.strip_suffix(b"\"")).unwrap_or(json)
        }
        Kind::Inverse { .. } | Kind::Unstored => json,
    }
}

/// How a file writes numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    Dot,
    /// Where `;` stands between cells, `1,5` is a number.
    Comma,
}

/// What a cell says. What does not look like its type stays text, so that coercion tells what is wrong with it.
pub fn value(field: &Field, text: &str, point: Point) -> Result<Value, String> {
    if text.is_empty() {
        return Ok(match Blank::of(field) {
            Blank::Text => Value::from(""),
            Blank::Null => Value::Null,
        });
    }
    Ok(match &field.kind {
        kind if is_text(kind) => Value::from(unmarked(text)),
        Kind::Scalar(Scalar::Int | Scalar::Float) => {
            let text = number(text, point);
            Value::number(text.trim_ascii()).unwrap_or_else(|| Value::from(text.as_str()))
        }
        Kind::Scalar(Scalar::Decimal) => Value::from(number(text, point).as_str()),
        Kind::Scalar(Scalar::Boolean) if text.eq_ignore_ascii_case("true") => Value::Bool(true),
        Kind::Scalar(Scalar::Boolean) if text.eq_ignore_ascii_case("false") => Value::Bool(false),
        Kind::Scalar(Scalar::Json) | Kind::Embedded(_) | Kind::List(_) | Kind::Link { .. } => {
            serde_json::from_str(text)
                .map_err(|_| format!("`{}` must be JSON in its cell", field.input_name))?
        }
        Kind::Scalar(_) | Kind::Id | Kind::Enum(_) | Kind::Reference { .. } => Value::from(text),
        Kind::Inverse { .. } | Kind::Unstored => Value::from(text),
    })
}

fn number(text: &str, point: Point) -> String {
    match point {
        Point::Comma if !text.contains('.') => text.replacen(',', ".", 1),
        Point::Comma | Point::Dot => text.to_owned(),
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
            push_marked(&mut out, text);
            let written = String::from_utf8(out).unwrap();
            assert!(!written.starts_with(DANGEROUS), "{written:?}");
            assert_eq!(unmarked(&written), text);
        }
        assert_eq!(unmarked("'tis the season"), "'tis the season");
    }
}
