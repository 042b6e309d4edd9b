//! Parses the rows of NDJSON and CSV files, each with its line and either its content or what is wrong with it.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::value::RawValue;

use trefoil_model::values::csv_cell as cells;
use trefoil_model::values::csv_cell::{BYTE_ORDER_MARK, DecimalPoint};
use trefoil_model::{FieldId, KeyForm, Model, RecordId, RecordType, Scalar, Value};

use crate::csv_reader::{self, CsvError};
use crate::file_columns::{ColumnMeaning, column_meaning, csv_column_meaning};
use crate::value_spellings;
use crate::{DataFormat, DataResource, ResourceCatalog};

const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// One row of a file.
#[derive(Debug)]
pub struct ParsedRow {
    /// The line where it begins, counting from 1.
    pub line: u64,
    /// `None` if the row does not name one, which is an error.
    pub resource: Option<DataResource>,
    /// The error is what is wrong with the row.
    pub content: Result<RowContent, String>,
    /// A time without a zone was taken as UTC.
    pub assumes_utc: bool,
    /// Approximate size.
    pub byte_len: usize,
}

impl ParsedRow {
    fn new(
        line: u64,
        resource: Option<DataResource>,
        content: Result<RowContent, String>,
        byte_len: usize,
    ) -> ParsedRow {
        ParsedRow { line, resource, content, assumes_utc: false, byte_len }
    }

    /// Brings dates and times to the form of the API.
    fn read_times(&mut self, model: &Model) {
        let (Some(DataResource::Records(record)), Ok(RowContent::Record { fields, .. })) =
            (&self.resource, &mut self.content)
        else {
            return;
        };
        for (field, value) in fields {
            let field = model.record(*record).field(*field);
            match value_spellings::read_time(field, value) {
                Ok(None) => {}
                Ok(Some(spelled)) => {
                    *value = spelled.value;
                    self.assumes_utc |= spelled.assumes_utc;
                }
                Err(reason) => {
                    self.content = Err(format!("{}: {reason}", field.input_name));
                    return;
                }
            }
        }
    }
}

/// The content of a row: a record, or a value of a plain list.
#[derive(Debug, PartialEq)]
pub enum RowContent {
    Record { id: Option<RecordId>, fields: Vec<(FieldId, Value)> },
    Value(String),
}

/// Why a file cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadError {
    pub line: u64,
    pub message: String,
}

impl ReadError {
    fn new(line: u64, message: impl Into<String>) -> ReadError {
        ReadError { line, message: message.into() }
    }

    fn from_io(line: u64, error: &io::Error) -> ReadError {
        ReadError::new(line, format!("cannot be read: {error}"))
    }

    fn row_too_long(line: u64, max_row_bytes: usize) -> ReadError {
        ReadError::new(line, format!("the row is longer than {max_row_bytes} bytes (--max-row)"))
    }
}

/// Receives the rows; returns whether to continue.
pub type RowCallback<'g> = &'g mut dyn FnMut(ParsedRow) -> bool;

/// Passes the rows of one file to `on_row`, until that returns false.
pub fn read_rows(
    catalog: &ResourceCatalog,
    (resource, format): (Option<&DataResource>, DataFormat),
    input: Box<dyn BufRead + Send>,
    max_row_bytes: usize,
    on_row: RowCallback<'_>,
) -> Result<(), ReadError> {
    let on_row: RowCallback<'_> = &mut |mut row: ParsedRow| {
        row.read_times(&catalog.model);
        on_row(row)
    };
    match (format, resource) {
        (DataFormat::Ndjson, _) => NdjsonReader { catalog, resource, max_row_bytes }.read(input, on_row),
        (DataFormat::Csv, Some(resource)) => read_csv(catalog, resource, input, max_row_bytes, on_row),
        (DataFormat::Csv, None) => {
            Err(ReadError::new(1, "a CSV file holds one resource; name it with --resource"))
        }
    }
}

/// Refuses UTF-16, which is recognised by its byte order mark.
fn refuse_utf16(start: &[u8]) -> Result<(), ReadError> {
    let is_utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    let message = "the file is UTF-16; save it as UTF-8, or use --encoding utf-16";
    if is_utf16 { Err(ReadError::new(1, message)) } else { Ok(()) }
}

/// Refuses a JSON array, which would otherwise give an error for each line.
fn refuse_array(start: &[u8]) -> Result<(), ReadError> {
    let message =
        "the file is a JSON array, but NDJSON has one record per line; convert it with `jq -c '.[]'`";
    if start.trim_ascii_start().starts_with(b"[") { Err(ReadError::new(1, message)) } else { Ok(()) }
}

const NOT_UTF8_MESSAGE: &str =
    "the file is not valid UTF-8; save it as UTF-8, or name its encoding, for example --encoding latin1";

/// Reads NDJSON.
struct NdjsonReader<'a> {
    catalog: &'a ResourceCatalog,
    resource: Option<&'a DataResource>,
    max_row_bytes: usize,
}

impl NdjsonReader<'_> {
    fn read(&self, mut input: Box<dyn BufRead + Send>, on_row: RowCallback<'_>) -> Result<(), ReadError> {
        let (mut bytes, mut line) = (Vec::new(), 0);
        loop {
            line += 1;
            bytes.clear();
            let limit = self.max_row_bytes as u64 + 1;
            let read = input.by_ref().take(limit).read_until(b'\n', &mut bytes);
            if read.map_err(|error| ReadError::from_io(line, &error))? == 0 {
                return Ok(());
            }
            if bytes.len() as u64 == limit {
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
            if !on_row(self.parse_line(line, text)) {
                return Ok(());
            }
        }
    }

    fn parse_line(&self, line: u64, bytes: &[u8]) -> ParsedRow {
        let (resource, content) = match (std::str::from_utf8(bytes), self.resource) {
            (Err(_), resource) => (resource.cloned(), Err(NOT_UTF8_MESSAGE.to_owned())),
            (Ok(text), Some(resource)) => {
                let json = parse_json(text, 0);
                (
                    Some(resource.clone()),
                    json.and_then(|json| row_content(&self.catalog.model, resource, json)),
                )
            }
            (Ok(text), None) => match self.parse_stream_line(text) {
                Ok((resource, content)) => (Some(resource), content),
                Err(message) => (None, Err(message)),
            },
        };
        ParsedRow::new(line, resource, content, bytes.len())
    }

    /// A line that names its resource. The content is parsed separately, so that the same limit of depth applies as
    /// without.
    fn parse_stream_line(&self, text: &str) -> Result<(DataResource, Result<RowContent, String>), String> {
        const FORM: &str = "each line must be {\"resource\": \"…\", \"record\": {…}}, or have \"value\" for a plain list; to import rows of one resource, use --resource";
        let line: StreamLine<'_> = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => FORM.to_owned(),
            false => json_error_message(&error, 0),
        })?;
        let resource = self.catalog.find(&line.resource)?;
        let content = match (&resource, line.record, line.value) {
            (DataResource::Records(_), Some(content), None)
            | (DataResource::List(_), None, Some(content)) => content,
            (DataResource::Records(_) | DataResource::List(_), _, _) => {
                return Ok((resource, Err(FORM.to_owned())));
            }
        };
        let offset = content.get().as_ptr().addr() - text.as_ptr().addr();
        let json = parse_json(content.get(), offset);
        let content = json.and_then(|json| row_content(&self.catalog.model, &resource, json));
        Ok((resource, content))
    }
}

/// A line that names its resource.
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

/// Parses JSON; `offset` is its position in the line, for messages.
fn parse_json(text: &str, offset: usize) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| json_error_message(&error, offset))
}

fn json_error_message(error: &serde_json::Error, offset: usize) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    match error.is_eof() {
        true => "unexpected end of the JSON; is the file truncated?".to_owned(),
        false => format!("invalid JSON: {message} (column {})", offset + error.column()),
    }
}

fn row_content(model: &Model, resource: &DataResource, json: Value) -> Result<RowContent, String> {
    match (resource, json) {
        (DataResource::List(_), Value::String(text)) => Ok(RowContent::Value(text)),
        (DataResource::List(_), _) => Err("a value of a plain list must be a JSON string".to_owned()),
        (DataResource::Records(record), Value::Object(object)) => {
            let record = model.record(*record);
            let (mut id, mut fields) = (None, Vec::with_capacity(object.len()));
            for (name, value) in object {
                match column_meaning(record, &name)? {
                    ColumnMeaning::Id => id = parse_id(record, &value)?,
                    ColumnMeaning::Field(field) => fields.push((field, value)),
                    ColumnMeaning::Ignored => {}
                }
            }
            Ok(RowContent::Record { id, fields })
        }
        (DataResource::Records(_), _) => Err("a record must be a JSON object".to_owned()),
    }
}

fn parse_id(record: &RecordType, value: &Value) -> Result<Option<RecordId>, String> {
    if value.is_null() { Ok(None) } else { record.id_from_file(value).map(Some) }
}

/// Reads CSV.
fn read_csv(
    catalog: &ResourceCatalog,
    resource: &DataResource,
    mut input: Box<dyn BufRead + Send>,
    max_row_bytes: usize,
    on_row: RowCallback<'_>,
) -> Result<(), ReadError> {
    let header = CsvHeader::read(&mut input, max_row_bytes)?;
    let is_known = |name: &str| match resource {
        DataResource::Records(record) => csv_column_meaning(catalog.model.record(*record), name).is_ok(),
        DataResource::List(_) => name == "value",
    };
    let separator = header.separator.unwrap_or_else(|| guess_separator(&header.text, is_known));
    let decimal_point = if separator == b';' { DecimalPoint::Comma } else { DecimalPoint::Dot };
    let mut reader = csv_reader::CsvReader::new(
        io::Cursor::new(header.text).chain(input),
        separator,
        header.line,
        max_row_bytes,
    );
    let read_error = |error: CsvError| match error {
        CsvError::Io(error) => ReadError::from_io(0, &error),
        CsvError::UnclosedQuote(line) => ReadError::new(line, "unclosed quote; is the file truncated?"),
        CsvError::RowTooLong(line) => ReadError::row_too_long(line, max_row_bytes),
    };
    let mut row = csv_reader::CsvRow::default();
    if !reader.read_row(&mut row).map_err(read_error)? {
        return Err(ReadError::new(1, "the header line with the column names is missing"));
    }
    let table = CsvTable::new(catalog, resource, &row, decimal_point)?;
    while reader.read_row(&mut row).map_err(read_error)? {
        let content = table.row_content(&row);
        if !on_row(ParsedRow::new(row.line, Some(resource.clone()), content, row.byte_len())) {
            return Ok(());
        }
    }
    Ok(())
}

/// The first line, which determines the separator.
struct CsvHeader {
    text: Vec<u8>,
    line: u64,
    /// From a line `sep=;`, as spreadsheets write it.
    separator: Option<u8>,
}

impl CsvHeader {
    fn read(input: &mut dyn BufRead, max_row_bytes: usize) -> Result<CsvHeader, ReadError> {
        let mut text = CsvHeader::read_line(input, max_row_bytes)?;
        refuse_utf16(&text)?;
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        // Not trimmed, because the separator may be a tab.
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        match line.strip_suffix(b"\r").unwrap_or(line) {
            [b's', b'e', b'p', b'=', separator] => {
                let separator = Some(*separator);
                Ok(CsvHeader { text: CsvHeader::read_line(input, max_row_bytes)?, line: 2, separator })
            }
            _ => Ok(CsvHeader { text, line: 1, separator: None }),
        }
    }

    fn read_line(input: &mut dyn BufRead, max_row_bytes: usize) -> Result<Vec<u8>, ReadError> {
        let mut text = Vec::new();
        let read = input.take(max_row_bytes as u64 + 1).read_until(b'\n', &mut text);
        read.map_err(|error| ReadError::from_io(1, &error))?;
        if text.len() > max_row_bytes { Err(ReadError::row_too_long(1, max_row_bytes)) } else { Ok(text) }
    }
}

/// The separator that gives the most known column names.
fn guess_separator(header: &[u8], is_known: impl Fn(&str) -> bool) -> u8 {
    let score = |separator: u8| {
        let mut row = csv_reader::CsvRow::default();
        // A name may contain a line break; then the other separators decide.
        let _ = csv_reader::CsvReader::new(header, separator, 1, usize::MAX).read_row(&mut row);
        let names = row.cells().filter_map(|cell| std::str::from_utf8(cell).ok());
        (names.filter(|name| is_known(name.trim())).count(), row.count())
    };
    // `max_by_key` prefers the last of equals.
    SEPARATORS.into_iter().rev().max_by_key(|separator| score(*separator)).unwrap_or(b',')
}

/// Refuses a header such as `Due Date,due_date`.
fn refuse_same_meaning(
    columns: Vec<(String, ColumnMeaning)>,
) -> Result<Vec<(String, ColumnMeaning)>, String> {
    for (i, (name, meaning)) in columns.iter().enumerate() {
        let same =
            columns[..i].iter().find(|(_, other)| other == meaning && *meaning != ColumnMeaning::Ignored);
        if let Some((other, _)) = same {
            return Err(format!("the columns `{other}` and `{name}` mean the same field"));
        }
    }
    Ok(columns)
}

/// The columns of a CSV file and its decimal point.
struct CsvTable<'a> {
    columns: CsvColumns<'a>,
    decimal_point: DecimalPoint,
}

enum CsvColumns<'a> {
    Records(&'a RecordType, Vec<(String, ColumnMeaning)>),
    List,
}

impl<'a> CsvTable<'a> {
    fn new(
        catalog: &'a ResourceCatalog,
        resource: &DataResource,
        header: &csv_reader::CsvRow,
        decimal_point: DecimalPoint,
    ) -> Result<CsvTable<'a>, ReadError> {
        let mut names: Vec<String> = Vec::new();
        for cell in header.cells() {
            let name = std::str::from_utf8(cell)
                .map_err(|_| ReadError::new(header.line, NOT_UTF8_MESSAGE))?
                .trim()
                .to_owned();
            if !name.is_empty() && names.contains(&name) {
                return Err(ReadError::new(header.line, format!("duplicate column `{name}`")));
            }
            names.push(name);
        }
        let columns = match resource {
            DataResource::List(_) if names == ["value"] => CsvColumns::List,
            DataResource::List(_) => {
                return Err(ReadError::new(
                    header.line,
                    "a plain list must have exactly one column, `value`",
                ));
            }
            DataResource::Records(record) => {
                let record = catalog.model.record(*record);
                let column = |name: String| match name.is_empty() {
                    true => Ok((name, ColumnMeaning::Ignored)),
                    false => csv_column_meaning(record, &name).map(|meaning| (name, meaning)),
                };
                let columns = names.into_iter().map(column).collect::<Result<Vec<_>, String>>();
                let columns = columns.and_then(refuse_same_meaning);
                CsvColumns::Records(record, columns.map_err(|message| ReadError::new(header.line, message))?)
            }
        };
        Ok(CsvTable { columns, decimal_point })
    }

    fn row_content(&self, row: &csv_reader::CsvRow) -> Result<RowContent, String> {
        if row.has_text_after_quote {
            return Err("unexpected text after a closing quote; double a quote inside quotes".to_owned());
        }
        let expected = match &self.columns {
            CsvColumns::Records(_, columns) => columns.len(),
            CsvColumns::List => 1,
        };
        if row.count() != expected {
            let cells = if row.count() == 1 { "1 cell".to_owned() } else { format!("{} cells", row.count()) };
            return Err(format!("{cells}, but the header has {expected} columns"));
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
                for ((name, meaning), text) in columns.iter().zip(texts) {
                    let text = text?;
                    match meaning {
                        ColumnMeaning::Id if text.is_empty() => {}
                        ColumnMeaning::Id if record.key_form() == KeyForm::Text => {
                            id = parse_id(record, &Value::from(cells::unescape(text)))?;
                        }
                        ColumnMeaning::Id => id = parse_id(record, &Value::from(text))?,
                        ColumnMeaning::Field(field) => {
                            let field_type = record.field(*field);
                            let value = cells::parse_cell(field_type, text, self.decimal_point)?;
                            let is_boolean = field_type.kind.scalar() == Some(Scalar::Boolean);
                            let value = if is_boolean { value_spellings::read_boolean(value) } else { value };
                            fields.push((*field, value));
                        }
                        ColumnMeaning::Ignored if name.is_empty() && !text.is_empty() => {
                            return Err(format!("`{text}` is in a column without a name"));
                        }
                        ColumnMeaning::Ignored => {}
                    }
                }
                Ok(RowContent::Record { id, fields })
            }
        }
    }
}
