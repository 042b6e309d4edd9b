//! Reads rows out of files, each with its place and either what it gives or what is wrong with it.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::csv_reader;
use crate::csv_reader::CsvError;
use crate::file_columns::{ColumnMeaning, column_meaning};
use crate::{DataFormat, DataResource, ResourceCatalog};
use trefoil_model::values::csv_cell as cells;
use trefoil_model::values::csv_cell::{BYTE_ORDER_MARK, DecimalPoint};
use trefoil_model::{FieldId, Model, RecordType, Value};

const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// One row of a file.
#[derive(Debug)]
pub struct ParsedRow {
    /// Where it begins, counting from 1.
    pub line: u64,
    /// `None` where the row does not tell, and so is wrong.
    pub resource: Option<DataResource>,
    /// The error is what is wrong with it.
    pub content: Result<RowContent, String>,
    /// About so many bytes.
    pub byte_len: usize,
}

#[derive(Debug, PartialEq)]
pub enum RowContent {
    Record { id: Option<i64>, fields: Vec<(FieldId, Value)> },
    Value(String),
}

/// Why a file cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadError {
    pub line: u64,
    pub message: String,
}

impl ReadError {
    fn new(line: u64, why: impl Into<String>) -> ReadError {
        ReadError { line, message: why.into() }
    }

    fn from_io(line: u64, error: &io::Error) -> ReadError {
        ReadError::new(line, format!("cannot be read: {error}"))
    }

    fn row_too_long(line: u64, longest: usize) -> ReadError {
        ReadError::new(line, format!("this row is longer than {longest} bytes (--max-row)"))
    }
}

/// Whether more is wanted.
pub type RowCallback<'g> = &'g mut dyn FnMut(ParsedRow) -> bool;

/// Hands out the rows of one file, for as long as they are wanted.
pub fn read_rows(
    inventory: &ResourceCatalog,
    (resource, format): (Option<&DataResource>, DataFormat),
    input: Box<dyn BufRead + Send>,
    longest: usize,
    give: RowCallback<'_>,
) -> Result<(), ReadError> {
    match (format, resource) {
        (DataFormat::Ndjson, _) => {
            NdjsonReader { inventory, resource, max_row_bytes: longest }.read(input, give)
        }
        (DataFormat::Csv, Some(resource)) => read_csv(inventory, resource, input, longest, give),
        (DataFormat::Csv, None) => Err(ReadError::new(1, "CSV holds one resource; name it with --resource")),
    }
}

/// Refuses what is surely another encoding.
fn refuse_utf16(begin: &[u8]) -> Result<(), ReadError> {
    let is_utf16 = begin.starts_with(b"\xff\xfe") || begin.starts_with(b"\xfe\xff");
    let why = "this is UTF-16; save the file as UTF-8";
    if is_utf16 { Err(ReadError::new(1, why)) } else { Ok(()) }
}

/// No row begins so, and each line of what the array holds would be told of otherwise.
fn refuse_array(begin: &[u8]) -> Result<(), ReadError> {
    let why = "this is a JSON array, and NDJSON has one record a line; `jq -c '.[]'` makes lines of it";
    if begin.trim_ascii_start().starts_with(b"[") { Err(ReadError::new(1, why)) } else { Ok(()) }
}

const NOT_UTF8_MESSAGE: &str = "this is not UTF-8; save the file as UTF-8";

/// NDJSON.
struct NdjsonReader<'a> {
    inventory: &'a ResourceCatalog,
    resource: Option<&'a DataResource>,
    max_row_bytes: usize,
}

impl NdjsonReader<'_> {
    fn read(&self, mut input: Box<dyn BufRead + Send>, give: RowCallback<'_>) -> Result<(), ReadError> {
        let (mut bytes, mut line) = (Vec::new(), 0);
        loop {
            line += 1;
            bytes.clear();
            let most = self.max_row_bytes as u64 + 1;
            let read = input.by_ref().take(most).read_until(b'\n', &mut bytes);
            if read.map_err(|error| ReadError::from_io(line, &error))? == 0 {
                return Ok(());
            }
            if bytes.len() as u64 == most {
                return Err(ReadError::row_too_long(line, self.max_row_bytes));
            }
            let mut text = bytes.as_slice();
            if line == 1 {
                refuse_utf16(text)?;
                text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
                refuse_array(text)?;
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            if !give(self.parse_line(line, text)) {
                return Ok(());
            }
        }
    }

    fn parse_line(&self, line: u64, bytes: &[u8]) -> ParsedRow {
        let (resource, given) = match (std::str::from_utf8(bytes), self.resource) {
            (Err(_), resource) => (resource.cloned(), Err(NOT_UTF8_MESSAGE.to_owned())),
            (Ok(text), Some(resource)) => {
                let json = parse_json(text, 0);
                (
                    Some(resource.clone()),
                    json.and_then(|json| row_content(&self.inventory.model, resource, json)),
                )
            }
            (Ok(text), None) => match self.parse_stream_line(text) {
                Ok((resource, given)) => (Some(resource), given),
                Err(why) => (None, Err(why)),
            },
        };
        ParsedRow { line, resource, content: given, byte_len: bytes.len() }
    }

    /// A line that names its resource. What is inside is read by itself, so that it may be as deep as it may be alone.
    fn parse_stream_line(&self, text: &str) -> Result<(DataResource, Result<RowContent, String>), String> {
        const FORM: &str = "each line is {\"resource\": \"…\", \"record\": {…}}, or \"value\" for a plain list; \
                            for the rows of one resource use --resource";
        let line: StreamLine<'_> = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => FORM.to_owned(),
            false => json_error_message(&error, 0),
        })?;
        let resource = self.inventory.find(&line.resource)?;
        let content = match (&resource, line.record, line.value) {
            (DataResource::Records(_), Some(content), None)
            | (DataResource::List(_), None, Some(content)) => content,
            (DataResource::Records(_) | DataResource::List(_), _, _) => {
                return Ok((resource, Err(FORM.to_owned())));
            }
        };
        let begin = content.get().as_ptr().addr() - text.as_ptr().addr();
        let json = parse_json(content.get(), begin);
        let given = json.and_then(|json| row_content(&self.inventory.model, &resource, json));
        Ok((resource, given))
    }
}

/// A line of a stream.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamLine<'a> {
    #[serde(borrow)]
    resource: Cow<'a, str>,
    #[serde(borrow)]
    record: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// So many bytes of the line stand before the text.
fn parse_json(text: &str, before: usize) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| json_error_message(&error, before))
}

fn json_error_message(error: &serde_json::Error, before: usize) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    match error.is_eof() {
        true => "the row ends in the middle of its JSON; was the file cut off?".to_owned(),
        false => format!("this is no JSON: {message} (column {})", before + error.column()),
    }
}

fn row_content(model: &Model, resource: &DataResource, json: Value) -> Result<RowContent, String> {
    match (resource, json) {
        (DataResource::List(_), Value::String(text)) => Ok(RowContent::Value(text)),
        (DataResource::List(_), _) => Err("a value of a plain list is a JSON string".to_owned()),
        (DataResource::Records(record), Value::Object(object)) => {
            let record = model.record(*record);
            let (mut id, mut fields) = (None, Vec::with_capacity(object.len()));
            for (name, value) in object {
                match column_meaning(record, &name)? {
                    ColumnMeaning::Id => id = self::parse_id(&value)?,
                    ColumnMeaning::Field(field) => fields.push((field, value)),
                    ColumnMeaning::Ignored => {}
                }
            }
            Ok(RowContent::Record { id, fields })
        }
        (DataResource::Records(_), _) => Err("a record is a JSON object".to_owned()),
    }
}

fn parse_id(value: &Value) -> Result<Option<i64>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let id = value.as_i64().filter(|id| *id > 0);
    id.map(Some).ok_or_else(|| "an id is a positive 64-bit integer".to_owned())
}

/// CSV.
fn read_csv(
    inventory: &ResourceCatalog,
    resource: &DataResource,
    mut input: Box<dyn BufRead + Send>,
    longest: usize,
    give: RowCallback<'_>,
) -> Result<(), ReadError> {
    let head = CsvHeader::read(&mut input, longest)?;
    let known = |name: &str| match resource {
        DataResource::Records(record) => column_meaning(inventory.model.record(*record), name).is_ok(),
        DataResource::List(_) => name == "value",
    };
    let separator = head.separator.unwrap_or_else(|| guess_separator(&head.text, known));
    let point = if separator == b';' { DecimalPoint::Comma } else { DecimalPoint::Dot };
    let mut reader =
        csv_reader::CsvReader::new(io::Cursor::new(head.text).chain(input), separator, head.line, longest);
    let broken = |broken: CsvError| match broken {
        CsvError::Io(error) => ReadError::from_io(0, &error),
        CsvError::UnclosedQuote(line) => {
            ReadError::new(line, "a quote is opened here and never closed; was the file cut off?")
        }
        CsvError::RowTooLong(line) => ReadError::row_too_long(line, longest),
    };
    let mut row = csv_reader::CsvRow::default();
    if !reader.read_row(&mut row).map_err(broken)? {
        return Err(ReadError::new(1, "there is no line with the names of the columns"));
    }
    let columns = CsvTable::new(inventory, resource, &row, point)?;
    while reader.read_row(&mut row).map_err(broken)? {
        let entry = ParsedRow {
            line: row.line,
            resource: Some(resource.clone()),
            content: columns.row_content(&row),
            byte_len: row.byte_len(),
        };
        if !give(entry) {
            return Ok(());
        }
    }
    Ok(())
}

/// The first line, which tells how the others are to be read.
struct CsvHeader {
    text: Vec<u8>,
    line: u64,
    /// Where a line `sep=;` says so, as spreadsheets write it.
    separator: Option<u8>,
}

impl CsvHeader {
    fn read(input: &mut dyn BufRead, longest: usize) -> Result<CsvHeader, ReadError> {
        let mut text = CsvHeader::read_line(input, longest)?;
        refuse_utf16(&text)?;
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        // Not trimmed, since the separator may be a tab.
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        match line.strip_suffix(b"\r").unwrap_or(line) {
            [b's', b'e', b'p', b'=', separator] => {
                let separator = Some(*separator);
                Ok(CsvHeader { text: CsvHeader::read_line(input, longest)?, line: 2, separator })
            }
            _ => Ok(CsvHeader { text, line: 1, separator: None }),
        }
    }

    fn read_line(input: &mut dyn BufRead, longest: usize) -> Result<Vec<u8>, ReadError> {
        let mut text = Vec::new();
        let read = input.take(longest as u64 + 1).read_until(b'\n', &mut text);
        read.map_err(|error| ReadError::from_io(1, &error))?;
        if text.len() > longest { Err(ReadError::row_too_long(1, longest)) } else { Ok(text) }
    }
}

/// The separator with which most names are known.
fn guess_separator(head: &[u8], known: impl Fn(&str) -> bool) -> u8 {
    let worth = |separator: u8| {
        let mut row = csv_reader::CsvRow::default();
        // A name with a line break in it: then the others decide.
        let _ = csv_reader::CsvReader::new(head, separator, 1, usize::MAX).read_row(&mut row);
        let names = row.cells().filter_map(|cell| std::str::from_utf8(cell).ok());
        (names.filter(|name| known(name.trim())).count(), row.count())
    };
    // Of equals the last would win.
    SEPARATORS.into_iter().rev().max_by_key(|separator| worth(*separator)).unwrap_or(b',')
}

/// What the columns of a file stand for.
struct CsvTable<'a> {
    columns: CsvColumns<'a>,
    point: DecimalPoint,
}

enum CsvColumns<'a> {
    Records(&'a RecordType, Vec<(String, ColumnMeaning)>),
    List,
}

impl<'a> CsvTable<'a> {
    fn new(
        inventory: &'a ResourceCatalog,
        resource: &DataResource,
        head: &csv_reader::CsvRow,
        point: DecimalPoint,
    ) -> Result<CsvTable<'a>, ReadError> {
        let mut names: Vec<String> = Vec::new();
        for cell in head.cells() {
            let name = std::str::from_utf8(cell)
                .map_err(|_| ReadError::new(head.line, NOT_UTF8_MESSAGE))?
                .trim()
                .to_owned();
            if !name.is_empty() && names.contains(&name) {
                return Err(ReadError::new(head.line, format!("there are two columns `{name}`")));
            }
            names.push(name);
        }
        let of = match resource {
            DataResource::List(_) if names == ["value"] => CsvColumns::List,
            DataResource::List(_) => {
                return Err(ReadError::new(head.line, "a plain list has one column, which is named `value`"));
            }
            DataResource::Records(record) => {
                let record = inventory.model.record(*record);
                let column = |name: String| match name.is_empty() {
                    true => Ok((name, ColumnMeaning::Ignored)),
                    false => column_meaning(record, &name).map(|meant| (name, meant)),
                };
                let columns = names.into_iter().map(column).collect::<Result<Vec<_>, String>>();
                CsvColumns::Records(record, columns.map_err(|why| ReadError::new(head.line, why))?)
            }
        };
        Ok(CsvTable { columns: of, point })
    }

    fn row_content(&self, row: &csv_reader::CsvRow) -> Result<RowContent, String> {
        if row.has_text_after_quote {
            return Err(
                "something stands behind a closing quote; a quote within quotes is doubled".to_owned()
            );
        }
        let wanted = match &self.columns {
            CsvColumns::Records(_, columns) => columns.len(),
            CsvColumns::List => 1,
        };
        if row.count() != wanted {
            let cells = if row.count() == 1 { "1 cell".to_owned() } else { format!("{} cells", row.count()) };
            return Err(format!("{cells}, where the first line names {wanted} columns"));
        }
        let mut texts =
            row.cells().map(|cell| std::str::from_utf8(cell).map_err(|_| NOT_UTF8_MESSAGE.to_owned()));
        match &self.columns {
            CsvColumns::List => {
                let text = texts.next().unwrap_or(Ok(""))?;
                Ok(RowContent::Value(cells::unescape(text).to_owned()))
            }
            CsvColumns::Records(record, columns) => {
                let (mut id, mut fields) = (None, Vec::with_capacity(columns.len()));
                for ((name, meant), text) in columns.iter().zip(texts) {
                    let text = text?;
                    match meant {
                        ColumnMeaning::Id if text.is_empty() => {}
                        ColumnMeaning::Id => id = self::parse_id(&Value::from(text))?,
                        ColumnMeaning::Field(field) => {
                            fields.push((*field, cells::parse_cell(record.field(*field), text, self.point)?));
                        }
                        ColumnMeaning::Ignored if name.is_empty() && !text.is_empty() => {
                            return Err(format!("`{text}` stands in a column without a name"));
                        }
                        ColumnMeaning::Ignored => {}
                    }
                }
                Ok(RowContent::Record { id, fields })
            }
        }
    }
}
