//! Encodes rows as the store reads them, and collects the outcomes of the operations.

use std::sync::Arc;

use trefoil_engine::cursor::{CursorFormat, RowPosition};
use trefoil_engine::{Outcome, Row, RowSink};
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, KeyForm, RecordId};

use crate::record_shape::RecordShape;

/// The encoding of a sequence of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEncoding {
    /// One JSON object.
    SingleObject,
    /// A JSON array of objects.
    Array,
    /// One JSON object per line.
    Ndjson,
    /// CSV with a header line.
    Csv,
    /// A JSON array of the first field's values.
    TextArray,
    /// The first field's values, one per line.
    TextLines,
    /// One snapshot event of an event stream per row.
    Events,
}

/// Encodes the rows of one request.
pub struct RowWriter {
    shape: Arc<RecordShape>,
    encoding: RowEncoding,
    /// The first operation whose rows are written; rows of earlier ones only prove that a record exists.
    first_shown: usize,
    /// Set if the cursor of the last row is needed.
    cursor_order: Option<CursorFormat>,
    /// An earlier part of the list was written before.
    is_continued: bool,
    out: Vec<u8>,
    row_count: usize,
    version: Option<i64>,
    last_position: Option<RowPosition>,
    /// The last record was written by somebody who may not read it.
    is_unreadable: bool,
    /// The id and version of each row, if needed.
    versions: Option<Vec<(RecordId, i64)>>,
    outcomes: Vec<(usize, Result<Outcome>)>,
    /// Number of outcomes from before the store started, which `reset` keeps.
    early_outcomes: usize,
}

/// The encoded rows.
pub struct EncodedRows {
    pub bytes: Vec<u8>,
    pub row_count: usize,
    /// The version of the last row.
    pub version: Option<i64>,
    pub last_cursor: Option<String>,
    /// The last record was written by somebody who may not read it, and has its id alone.
    pub is_unreadable: bool,
    /// Ids and versions of the rows, see [`RowWriter::with_versions`].
    pub versions: Vec<(RecordId, i64)>,
}

impl RowWriter {
    pub fn new(shape: &Arc<RecordShape>, encoding: RowEncoding) -> RowWriter {
        RowWriter {
            shape: shape.clone(),
            encoding,
            first_shown: 0,
            cursor_order: None,
            is_continued: false,
            out: Vec::new(),
            row_count: 0,
            version: None,
            last_position: None,
            is_unreadable: false,
            versions: None,
            outcomes: Vec::new(),
            early_outcomes: 0,
        }
    }

    /// Writes only the rows of operations from this number on.
    pub fn skip_operations_before(self, first_shown: usize) -> RowWriter {
        RowWriter { first_shown, ..self }
    }

    /// Makes cursors from additional cells of each row.
    pub fn with_cursors(self, format: CursorFormat) -> RowWriter {
        RowWriter { cursor_order: Some(format), ..self }
    }

    /// Collects the id and version of each row. Requires cursors and the order of ids.
    pub fn with_versions(self) -> RowWriter {
        RowWriter { versions: Some(Vec::new()), ..self }
    }

    pub fn continued(self, continued: bool) -> RowWriter {
        RowWriter { is_continued: continued, ..self }
    }

    /// The encoded rows, and the outcomes in the order of the operations.
    pub fn finish(mut self) -> (EncodedRows, Vec<(usize, Result<Outcome>)>) {
        self.outcomes.sort_by_key(|(number, _)| *number);
        let encoded = EncodedRows {
            bytes: self.out,
            row_count: self.row_count,
            version: self.version,
            is_unreadable: self.is_unreadable,
            last_cursor: self.cursor_order.zip(self.last_position).map(|(format, last)| format.encode(last)),
            versions: self.versions.unwrap_or_default(),
        };
        (encoded, self.outcomes)
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
        let unreadable = row.unreadable_id();
        self.is_unreadable = unreadable.is_some();
        match self.encoding {
            RowEncoding::SingleObject | RowEncoding::Array => match unreadable {
                None => self.shape.write_json(&mut self.out, row),
                Some(id) => self.shape.write_id_object(&mut self.out, id),
            },
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
        if let (Some(versions), Some(version)) = (&mut self.versions, self.version)
            && let Some(id) = RecordId::from_cell(row.cell(self.shape.cell_count()))
        {
            versions.push((id, version));
        }
        if let Some(format) = &self.cursor_order {
            self.last_position = Some(format.read(row, self.shape.cell_count()));
        }
    }

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.outcomes.push((plan, outcome));
    }

    fn checkpoint(&mut self) {
        self.early_outcomes = self.outcomes.len();
    }

    /// `None` unless all operations are successful writes.
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        let mut last = None;
        for (_, outcome) in &self.outcomes {
            last = Some(match outcome {
                Ok(Outcome::Created { id, version } | Outcome::Updated { id, version }) => {
                    (id.clone(), *version)
                }
                Ok(Outcome::Deleted { id }) => (id.clone(), 0),
                Ok(Outcome::ChangedMany { count }) => (RecordId::Number(count.cast_signed()), 0),
                Ok(
                    Outcome::Found
                    | Outcome::NotFound
                    | Outcome::OutOfSight(_)
                    | Outcome::Listed { .. }
                    | Outcome::PlainList { .. },
                )
                | Err(_) => return None,
            });
        }
        let (id, version) = last?;
        Some(WrittenRecord::to_replay(&id, version, self.is_unreadable, &self.out))
    }

    fn reset(&mut self) {
        self.out.clear();
        (self.row_count, self.version, self.last_position) = (0, None, None);
        self.is_unreadable = false;
        self.versions.iter_mut().for_each(Vec::clear);
        self.outcomes.truncate(self.early_outcomes);
    }
}

/// The result of a successful write.
#[derive(Debug)]
pub struct WrittenRecord {
    pub id: RecordId,
    pub version: i64,
    /// Its actor may not read it: `bytes` have its id alone.
    pub is_unreadable: bool,
    /// The encoded record or records.
    pub bytes: Vec<u8>,
}

impl WrittenRecord {
    /// The bytes that a later request with the same idempotency key is answered from: the id (a number, or the length of
    /// a text and the text), the version and the encoded records. Versions are no negative numbers: with all bits turned
    /// over, the version is one of a record that may not be read.
    pub fn to_replay(id: &RecordId, version: i64, is_unreadable: bool, encoded: &[u8]) -> Vec<u8> {
        let version = if is_unreadable { !version } else { version };
        let (number, text) = match id {
            RecordId::Number(number) => (*number, ""),
            RecordId::Text(text) => (text.len() as i64, &**text),
        };
        [&number.to_be_bytes(), text.as_bytes(), &version.to_be_bytes(), encoded].concat()
    }

    /// Decodes the bytes of [`RowSink::bytes_to_replay`].
    pub fn from_replay(form: KeyForm, bytes: &[u8]) -> Result<WrittenRecord> {
        let cut_off = || Error::internal("a kept answer is cut off");
        let (number, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
        let number = i64::from_be_bytes(*number);
        let (id, rest) = if form.is_integer() {
            (RecordId::Number(number), rest)
        } else {
            let length = usize::try_from(number).map_err(|_| cut_off())?;
            let (text, rest) = rest.split_at_checked(length).ok_or_else(cut_off)?;
            (RecordId::from(std::str::from_utf8(text).map_err(Error::internal)?), rest)
        };
        let (version, bytes) = rest.split_first_chunk().ok_or_else(cut_off)?;
        let version = i64::from_be_bytes(*version);
        let is_unreadable = version < 0;
        let version = if is_unreadable { !version } else { version };
        Ok(WrittenRecord { id, version, is_unreadable, bytes: bytes.to_vec() })
    }
}
