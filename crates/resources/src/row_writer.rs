//! Writes records down while the store hands them out, and remembers how each operation ended.

use std::sync::Arc;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{Outcome, Row, RowSink};
use trefoil_model::CellValue;
use trefoil_model::error::{Error, Result};

use crate::record_shape::RecordShape;

/// How rows stand beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEncoding {
    /// One object.
    SingleObject,
    /// An array of objects.
    Array,
    /// An object a line.
    Ndjson,
    /// A line of cells each, below one that names them.
    Csv,
    /// An array of the first field's values.
    TextArray,
    /// The first field's values, one a line.
    TextLines,
    /// An event of a stream each.
    Events,
}

/// What is done with the rows of one request.
pub struct RowWriter {
    shape: Arc<RecordShape>,
    encoding: RowEncoding,
    /// Rows of earlier operations only prove that something is there.
    first_shown: usize,
    /// Where the last row's cursor is wanted.
    cursor_order: Option<CursorFormat>,
    /// There is a part before this one.
    is_continued: bool,
    out: Vec<u8>,
    row_count: usize,
    version: Option<i64>,
    last_cursor: Option<String>,
    /// The id and version of each row, where they are wanted.
    versions: Option<Vec<(i64, i64)>>,
    outcomes: Vec<(usize, Result<Outcome>)>,
    /// How many outcomes were told before the store began.
    early_outcomes: usize,
}

/// What was written down.
pub struct EncodedRows {
    pub bytes: Vec<u8>,
    pub row_count: usize,
    /// Of the last row.
    pub version: Option<i64>,
    pub last_cursor: Option<String>,
    /// Ids and versions, where they were wanted.
    pub versions: Vec<(i64, i64)>,
}

impl RowWriter {
    pub fn new(shape: &Arc<RecordShape>, form: RowEncoding) -> RowWriter {
        RowWriter {
            shape: shape.clone(),
            encoding: form,
            first_shown: 0,
            cursor_order: None,
            is_continued: false,
            out: Vec::new(),
            row_count: 0,
            version: None,
            last_cursor: None,
            versions: None,
            outcomes: Vec::new(),
            early_outcomes: 0,
        }
    }

    /// Shows only what operations from this number on give.
    pub fn show_from(self, from: usize) -> RowWriter {
        RowWriter { first_shown: from, ..self }
    }

    /// Each row has what a cursor is made of.
    pub fn with_cursors(self, format: CursorFormat) -> RowWriter {
        RowWriter { cursor_order: Some(format), ..self }
    }

    /// Remembers the id and version of each row of a list that has cursors and no order but that of ids.
    pub fn with_versions(self) -> RowWriter {
        RowWriter { versions: Some(Vec::new()), ..self }
    }

    pub fn continued(self, continued: bool) -> RowWriter {
        RowWriter { is_continued: continued, ..self }
    }

    /// What was read and how it ended, by operation; in order.
    pub fn finish(mut self) -> (EncodedRows, Vec<(usize, Result<Outcome>)>) {
        self.outcomes.sort_by_key(|(number, _)| *number);
        let noted = self.versions.unwrap_or_default();
        let read = EncodedRows {
            bytes: self.out,
            row_count: self.row_count,
            version: self.version,
            last_cursor: self.last_cursor,
            versions: noted,
        };
        (read, self.outcomes)
    }

    fn separator(&self) -> Option<u8> {
        match (self.encoding, self.row_count == 0 && !self.is_continued) {
            (
                RowEncoding::SingleObject
                | RowEncoding::Ndjson
                | RowEncoding::Csv
                | RowEncoding::TextLines
                | RowEncoding::Events,
                _,
            ) => None,
            (RowEncoding::Array | RowEncoding::TextArray, true) => Some(b'['),
            (RowEncoding::Array | RowEncoding::TextArray, false) => Some(b','),
        }
    }
}

impl RowSink for RowWriter {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        if plan < self.first_shown {
            return;
        }
        self.out.extend(self.separator());
        match self.encoding {
            RowEncoding::SingleObject | RowEncoding::Array => self.shape.write_json(&mut self.out, row),
            RowEncoding::Ndjson => {
                self.shape.write_json(&mut self.out, row);
                self.out.push(b'\n');
            }
            RowEncoding::Csv => {
                if self.row_count == 0 && !self.is_continued {
                    self.shape.write_csv_header(&mut self.out);
                }
                self.shape.write_csv(&mut self.out, row);
            }
            RowEncoding::Events => {
                self.out.extend_from_slice(b"event: snapshot\ndata: ");
                self.shape.write_json(&mut self.out, row);
                self.out.extend_from_slice(b"\n\n");
            }
            RowEncoding::TextArray => self.shape.write_first_value(&mut self.out, row),
            RowEncoding::TextLines => {
                if let CellValue::Text(text) = row.cell(0) {
                    self.out.extend_from_slice(text.as_bytes());
                }
                self.out.push(b'\n');
            }
        }
        self.row_count += 1;
        self.version = self.shape.version(row);
        if let (Some(noted), Some(version)) = (&mut self.versions, self.version)
            && let CellValue::Int(id) = row.cell(self.shape.cell_count())
        {
            noted.push((id, version));
        }
        if let Some(format) = &self.cursor_order {
            self.last_cursor = Some(format.encode(row, self.shape.cell_count()));
        }
    }

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.outcomes.push((plan, outcome));
    }

    fn checkpoint(&mut self) {
        self.early_outcomes = self.outcomes.len();
    }

    /// Only when all was written.
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        let mut last = None;
        for (_, outcome) in &self.outcomes {
            last = Some(match outcome {
                Ok(Outcome::Created { id, version } | Outcome::Updated { id, version }) => (*id, *version),
                Ok(Outcome::Deleted { id }) => (*id, 0),
                Ok(
                    Outcome::Found | Outcome::NotFound | Outcome::Listed { .. } | Outcome::PlainList { .. },
                )
                | Err(_) => return None,
            });
        }
        let (id, version) = last?;
        Some([&id.to_be_bytes(), &version.to_be_bytes(), self.out.as_slice()].concat())
    }

    fn reset(&mut self) {
        self.out.clear();
        (self.row_count, self.version, self.last_cursor) = (0, None, None);
        self.versions.iter_mut().for_each(Vec::clear);
        self.outcomes.truncate(self.early_outcomes);
    }
}

/// A write that happened.
#[derive(Debug)]
pub struct WrittenRecord {
    pub id: i64,
    pub version: i64,
    /// The record, or the records.
    pub bytes: Vec<u8>,
}

impl WrittenRecord {
    /// What [`Answer::keep`] gave.
    pub fn from_replay(bytes: &[u8]) -> Result<WrittenRecord> {
        let cut_off = || Error::internal("a kept answer is cut off");
        let (id, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
        let (version, bytes) = rest.split_first_chunk().ok_or_else(cut_off)?;
        let (id, version) = (i64::from_be_bytes(*id), i64::from_be_bytes(*version));
        Ok(WrittenRecord { id, version, bytes: bytes.to_vec() })
    }
}
