//! Reads rows out of files, each with its place and either what it gives or what is wrong with it.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::csv_reader;
use crate::csv_reader::Broken;
use crate::file_columns::{Named, named};
use crate::{Format, Inventory, Resource};
use trefoil_model::values::csv_cell as cells;
use trefoil_model::values::csv_cell::{BYTE_ORDER_MARK, Point};
use trefoil_model::{FieldId, Model, RecordType, Value};

const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// One row of a file.
#[derive(Debug)]
pub struct Entry {
    /// Where it begins, counting from 1.
    pub line: u64,
    /// `None` where the row does not tell, and so is wrong.
    pub resource: Option<Resource>,
    /// The error is what is wrong with it.
    pub given: Result<Given, String>,
    /// About so many bytes.
    pub weight: usize,
}

#[derive(Debug, PartialEq)]
pub enum Given {
    Record { id: Option<i64>, fields: Vec<(FieldId, Value)> },
    Value(String),
}

/// Why a file cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub struct Stop {
    pub line: u64,
    pub why: String,
}

impl Stop {
    fn new(line: u64, why: impl Into<String>) -> Stop {
        Stop { line, why: why.into() }
    }

    fn unreadable(line: u64, error: &io::Error) -> Stop {
        Stop::new(line, format!("cannot be read: {error}"))
    }

    fn too_long(line: u64, longest: usize) -> Stop {
        Stop::new(line, format!("this row is longer than {longest} bytes (--max-row)"))
    }
}

/// Whether more is wanted.
pub type Give<'g> = &'g mut dyn FnMut(Entry) -> bool;

/// Hands out the rows of one file, for as long as they are wanted.
pub fn read(
    inventory: &Inventory,
    (resource, format): (Option<&Resource>, Format),
    input: Box<dyn BufRead + Send>,
    longest: usize,
    give: Give<'_>,
) -> Result<(), Stop> {
    match (format, resource) {
        (Format::Ndjson, _) => Lines { inventory, resource, longest }.read(input, give),
        (Format::Csv, Some(resource)) => table(inventory, resource, input, longest, give),
        (Format::Csv, None) => Err(Stop::new(1, "CSV holds one resource; name it with --resource")),
    }
}

/// Refuses what is surely another encoding.
fn refuse_utf16(begin: &[u8]) -> Result<(), Stop> {
    let is_utf16 = begin.starts_with(b"\xff\xfe") || begin.starts_with(b"\xfe\xff");
    let why = "this is UTF-16; save the file as UTF-8";
    if is_utf16 { Err(Stop::new(1, why)) } else { Ok(()) }
}

/// No row begins so, and each line of what the array holds would be told of otherwise.
fn refuse_array(begin: &[u8]) -> Result<(), Stop> {
    let why = "this is a JSON array, and NDJSON has one record a line; `jq -c '.[]'` makes lines of it";
    if begin.trim_ascii_start().starts_with(b"[") { Err(Stop::new(1, why)) } else { Ok(()) }
}

const NOT_UTF8: &str = "this is not UTF-8; save the file as UTF-8";

/// NDJSON.
struct Lines<'a> {
    inventory: &'a Inventory,
    resource: Option<&'a Resource>,
    longest: usize,
}

impl Lines<'_> {
    fn read(&self, mut input: Box<dyn BufRead + Send>, give: Give<'_>) -> Result<(), Stop> {
        let (mut bytes, mut line) = (Vec::new(), 0);
        loop {
            line += 1;
            bytes.clear();
            let most = self.longest as u64 + 1;
            let read = input.by_ref().take(most).read_until(b'\n', &mut bytes);
            if read.map_err(|error| Stop::unreadable(line, &error))? == 0 {
                return Ok(());
            }
            if bytes.len() as u64 == most {
                return Err(Stop::too_long(line, self.longest));
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
            if !give(self.entry(line, text)) {
                return Ok(());
            }
        }
    }

    fn entry(&self, line: u64, bytes: &[u8]) -> Entry {
        let (resource, given) = match (std::str::from_utf8(bytes), self.resource) {
            (Err(_), resource) => (resource.cloned(), Err(NOT_UTF8.to_owned())),
            (Ok(text), Some(resource)) => {
                let json = parsed(text, 0);
                (Some(resource.clone()), json.and_then(|json| given(&self.inventory.model, resource, json)))
            }
            (Ok(text), None) => match self.named(text) {
                Ok((resource, given)) => (Some(resource), given),
                Err(why) => (None, Err(why)),
            },
        };
        Entry { line, resource, given, weight: bytes.len() }
    }

    /// A line that names its resource. What is inside is read by itself, so that it may be as deep as it may be alone.
    fn named(&self, text: &str) -> Result<(Resource, Result<Given, String>), String> {
        const FORM: &str = "each line is {\"resource\": \"…\", \"record\": {…}}, or \"value\" for a plain list; \
                            for the rows of one resource use --resource";
        let line: Line<'_> = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => FORM.to_owned(),
            false => no_json(&error, 0),
        })?;
        let resource = self.inventory.named(&line.resource)?;
        let content = match (&resource, line.record, line.value) {
            (Resource::Records(_), Some(content), None) | (Resource::List(_), None, Some(content)) => content,
            (Resource::Records(_) | Resource::List(_), _, _) => return Ok((resource, Err(FORM.to_owned()))),
        };
        let begin = content.get().as_ptr().addr() - text.as_ptr().addr();
        let json = parsed(content.get(), begin);
        let given = json.and_then(|json| given(&self.inventory.model, &resource, json));
        Ok((resource, given))
    }
}

/// A line of a stream.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    resource: Cow<'a, str>,
    #[serde(borrow)]
    record: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// So many bytes of the line stand before the text.
fn parsed(text: &str, before: usize) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| no_json(&error, before))
}

fn no_json(error: &serde_json::Error, before: usize) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    match error.is_eof() {
        true => "the row ends in the middle of its JSON; was the file cut off?".to_owned(),
        false => format!("this is no JSON: {message} (column {})", before + error.column()),
    }
}

fn given(model: &Model, resource: &Resource, json: Value) -> Result<Given, String> {
    match (resource, json) {
        (Resource::List(_), Value::String(text)) => Ok(Given::Value(text)),
        (Resource::List(_), _) => Err("a value of a plain list is a JSON string".to_owned()),
        (Resource::Records(record), Value::Object(object)) => {
            let record = model.record(*record);
            let (mut id, mut fields) = (None, Vec::with_capacity(object.len()));
            for (name, value) in object {
                match named(record, &name)? {
                    Named::Id => id = self::id(&value)?,
                    Named::Field(field) => fields.push((field, value)),
                    Named::Nothing => {}
                }
            }
            Ok(Given::Record { id, fields })
        }
        (Resource::Records(_), _) => Err("a record is a JSON object".to_owned()),
    }
}

fn id(value: &Value) -> Result<Option<i64>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let id = value.as_i64().filter(|id| *id > 0);
    id.map(Some).ok_or_else(|| "an id is a positive 64-bit integer".to_owned())
}

/// CSV.
fn table(
    inventory: &Inventory,
    resource: &Resource,
    mut input: Box<dyn BufRead + Send>,
    longest: usize,
    give: Give<'_>,
) -> Result<(), Stop> {
    let head = Head::read(&mut input, longest)?;
    let known = |name: &str| match resource {
        Resource::Records(record) => named(inventory.model.record(*record), name).is_ok(),
        Resource::List(_) => name == "value",
    };
    let separator = head.separator.unwrap_or_else(|| likely(&head.text, known));
    let point = if separator == b';' { Point::Comma } else { Point::Dot };
    let mut reader =
        csv_reader::Reader::new(io::Cursor::new(head.text).chain(input), separator, head.line, longest);
    let broken = |broken: Broken| match broken {
        Broken::Read(error) => Stop::unreadable(0, &error),
        Broken::Open(line) => {
            Stop::new(line, "a quote is opened here and never closed; was the file cut off?")
        }
        Broken::TooLong(line) => Stop::too_long(line, longest),
    };
    let mut row = csv_reader::Row::default();
    if !reader.next(&mut row).map_err(broken)? {
        return Err(Stop::new(1, "there is no line with the names of the columns"));
    }
    let columns = Table::new(inventory, resource, &row, point)?;
    while reader.next(&mut row).map_err(broken)? {
        let entry = Entry {
            line: row.line,
            resource: Some(resource.clone()),
            given: columns.given(&row),
            weight: row.weight(),
        };
        if !give(entry) {
            return Ok(());
        }
    }
    Ok(())
}

/// The first line, which tells how the others are to be read.
struct Head {
    text: Vec<u8>,
    line: u64,
    /// Where a line `sep=;` says so, as spreadsheets write it.
    separator: Option<u8>,
}

impl Head {
    fn read(input: &mut dyn BufRead, longest: usize) -> Result<Head, Stop> {
        let mut text = Head::line(input, longest)?;
        refuse_utf16(&text)?;
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len());
        }
        // Not trimmed, since the separator may be a tab.
        let line = text.strip_suffix(b"\n").unwrap_or(&text);
        match line.strip_suffix(b"\r").unwrap_or(line) {
            [b's', b'e', b'p', b'=', separator] => {
                let separator = Some(*separator);
                Ok(Head { text: Head::line(input, longest)?, line: 2, separator })
            }
            _ => Ok(Head { text, line: 1, separator: None }),
        }
    }

    fn line(input: &mut dyn BufRead, longest: usize) -> Result<Vec<u8>, Stop> {
        let mut text = Vec::new();
        let read = input.take(longest as u64 + 1).read_until(b'\n', &mut text);
        read.map_err(|error| Stop::unreadable(1, &error))?;
        if text.len() > longest { Err(Stop::too_long(1, longest)) } else { Ok(text) }
    }
}

/// The separator with which most names are known.
fn likely(head: &[u8], known: impl Fn(&str) -> bool) -> u8 {
    let worth = |separator: u8| {
        let mut row = csv_reader::Row::default();
        // A name with a line break in it: then the others decide.
        let _ = csv_reader::Reader::new(head, separator, 1, usize::MAX).next(&mut row);
        let names = row.cells().filter_map(|cell| std::str::from_utf8(cell).ok());
        (names.filter(|name| known(name.trim())).count(), row.count())
    };
    // Of equals the last would win.
    SEPARATORS.into_iter().rev().max_by_key(|separator| worth(*separator)).unwrap_or(b',')
}

/// What the columns of a file stand for.
struct Table<'a> {
    of: Of<'a>,
    point: Point,
}

enum Of<'a> {
    Records(&'a RecordType, Vec<(String, Named)>),
    List,
}

impl<'a> Table<'a> {
    fn new(
        inventory: &'a Inventory,
        resource: &Resource,
        head: &csv_reader::Row,
        point: Point,
    ) -> Result<Table<'a>, Stop> {
        let mut names: Vec<String> = Vec::new();
        for cell in head.cells() {
            let name =
                std::str::from_utf8(cell).map_err(|_| Stop::new(head.line, NOT_UTF8))?.trim().to_owned();
            if !name.is_empty() && names.contains(&name) {
                return Err(Stop::new(head.line, format!("there are two columns `{name}`")));
            }
            names.push(name);
        }
        let of = match resource {
            Resource::List(_) if names == ["value"] => Of::List,
            Resource::List(_) => {
                return Err(Stop::new(head.line, "a plain list has one column, which is named `value`"));
            }
            Resource::Records(record) => {
                let record = inventory.model.record(*record);
                let column = |name: String| match name.is_empty() {
                    true => Ok((name, Named::Nothing)),
                    false => named(record, &name).map(|meant| (name, meant)),
                };
                let columns = names.into_iter().map(column).collect::<Result<Vec<_>, String>>();
                Of::Records(record, columns.map_err(|why| Stop::new(head.line, why))?)
            }
        };
        Ok(Table { of, point })
    }

    fn given(&self, row: &csv_reader::Row) -> Result<Given, String> {
        if row.is_torn {
            return Err(
                "something stands behind a closing quote; a quote within quotes is doubled".to_owned()
            );
        }
        let wanted = match &self.of {
            Of::Records(_, columns) => columns.len(),
            Of::List => 1,
        };
        if row.count() != wanted {
            let cells = if row.count() == 1 { "1 cell".to_owned() } else { format!("{} cells", row.count()) };
            return Err(format!("{cells}, where the first line names {wanted} columns"));
        }
        let mut texts = row.cells().map(|cell| std::str::from_utf8(cell).map_err(|_| NOT_UTF8.to_owned()));
        match &self.of {
            Of::List => {
                let text = texts.next().unwrap_or(Ok(""))?;
                Ok(Given::Value(cells::unmarked(text).to_owned()))
            }
            Of::Records(record, columns) => {
                let (mut id, mut fields) = (None, Vec::with_capacity(columns.len()));
                for ((name, meant), text) in columns.iter().zip(texts) {
                    let text = text?;
                    match meant {
                        Named::Id if text.is_empty() => {}
                        Named::Id => id = self::id(&Value::from(text))?,
                        Named::Field(field) => {
                            fields.push((*field, cells::value(record.field(*field), text, self.point)?));
                        }
                        Named::Nothing if name.is_empty() && !text.is_empty() => {
                            return Err(format!("`{text}` stands in a column without a name"));
                        }
                        Named::Nothing => {}
                    }
                }
                Ok(Given::Record { id, fields })
            }
        }
    }
}
