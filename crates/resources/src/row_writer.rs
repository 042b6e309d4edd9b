//! Writes records down while the store hands them out, and remembers how each operation ended.

use std::sync::Arc;

use crate::record_shape::Shape;
use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{Answer, Outcome, Row};
use trefoil_model::Cell;
use trefoil_model::error::{Error, Result};

/// How rows stand beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One object.
    One,
    /// An array of objects.
    Array,
    /// An object a line.
    Ndjson,
    /// A line of cells each, below one that names them.
    Csv,
    /// An array of the first field's values.
    Texts,
    /// The first field's values, one a line.
    Lines,
    /// An event of a stream each.
    Events,
}

/// What is done with the rows of one request.
pub struct Rows {
    shape: Arc<Shape>,
    form: Form,
    /// Rows of earlier operations only prove that something is there.
    from: usize,
    /// Where the last row's cursor is wanted.
    cursors: Option<CursorFormat>,
    /// There is a part before this one.
    continued: bool,
    out: Vec<u8>,
    rows: usize,
    version: Option<i64>,
    last: Option<String>,
    /// The id and version of each row, where they are wanted.
    noted: Option<Vec<(i64, i64)>>,
    outcomes: Vec<(usize, Result<Outcome>)>,
    /// How many outcomes were told before the store began.
    refused: usize,
}

/// What was written down.
pub struct Read {
    pub bytes: Vec<u8>,
    pub rows: usize,
    /// Of the last row.
    pub version: Option<i64>,
    pub last: Option<String>,
    /// Ids and versions, where they were wanted.
    pub noted: Vec<(i64, i64)>,
}

impl Rows {
    pub fn new(shape: &Arc<Shape>, form: Form) -> Rows {
        Rows {
            shape: shape.clone(),
            form,
            from: 0,
            cursors: None,
            continued: false,
            out: Vec::new(),
            rows: 0,
            version: None,
            last: None,
            noted: None,
            outcomes: Vec::new(),
            refused: 0,
        }
    }

    /// Shows only what operations from this number on give.
    pub fn from(self, from: usize) -> Rows {
        Rows { from, ..self }
    }

    /// Each row has what a cursor is made of.
    pub fn cursors(self, format: CursorFormat) -> Rows {
        Rows { cursors: Some(format), ..self }
    }

    /// Remembers the id and version of each row of a list that has cursors and no order but that of ids.
    pub fn noting(self) -> Rows {
        Rows { noted: Some(Vec::new()), ..self }
    }

    pub fn continued(self, continued: bool) -> Rows {
        Rows { continued, ..self }
    }

    /// What was read and how it ended, by operation; in order.
    pub fn finish(mut self) -> (Read, Vec<(usize, Result<Outcome>)>) {
        self.outcomes.sort_by_key(|(number, _)| *number);
        let noted = self.noted.unwrap_or_default();
        let read = Read { bytes: self.out, rows: self.rows, version: self.version, last: self.last, noted };
        (read, self.outcomes)
    }

    fn separator(&self) -> Option<u8> {
        match (self.form, self.rows == 0 && !self.continued) {
            (Form::One | Form::Ndjson | Form::Csv | Form::Lines | Form::Events, _) => None,
            (Form::Array | Form::Texts, true) => Some(b'['),
            (Form::Array | Form::Texts, false) => Some(b','),
        }
    }
}

impl Answer for Rows {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        if plan < self.from {
            return;
        }
        self.out.extend(self.separator());
        match self.form {
            Form::One | Form::Array => self.shape.write(&mut self.out, row),
            Form::Ndjson => {
                self.shape.write(&mut self.out, row);
                self.out.push(b'\n');
            }
            Form::Csv => {
                if self.rows == 0 && !self.continued {
                    self.shape.write_names(&mut self.out);
                }
                self.shape.write_csv(&mut self.out, row);
            }
            Form::Events => {
                self.out.extend_from_slice(b"event: snapshot\ndata: ");
                self.shape.write(&mut self.out, row);
                self.out.extend_from_slice(b"\n\n");
            }
            Form::Texts => self.shape.write_first(&mut self.out, row),
            Form::Lines => {
                if let Cell::Text(text) = row.cell(0) {
                    self.out.extend_from_slice(text.as_bytes());
                }
                self.out.push(b'\n');
            }
        }
        self.rows += 1;
        self.version = self.shape.version(row);
        if let (Some(noted), Some(version)) = (&mut self.noted, self.version)
            && let Cell::Int(id) = row.cell(self.shape.width())
        {
            noted.push((id, version));
        }
        if let Some(format) = &self.cursors {
            self.last = Some(format.encode(row, self.shape.width()));
        }
    }

    fn done(&mut self, plan: usize, outcome: Result<Outcome>) {
        self.outcomes.push((plan, outcome));
    }

    fn begin(&mut self) {
        self.refused = self.outcomes.len();
    }

    /// Only when all was written.
    fn keep(&mut self) -> Option<Vec<u8>> {
        let mut last = None;
        for (_, outcome) in &self.outcomes {
            last = Some(match outcome {
                Ok(Outcome::Created { id, version } | Outcome::Updated { id, version }) => (*id, *version),
                Ok(Outcome::Deleted { id }) => (*id, 0),
                Ok(Outcome::Found | Outcome::Missing | Outcome::Listed { .. } | Outcome::Plain { .. })
                | Err(_) => return None,
            });
        }
        let (id, version) = last?;
        Some([&id.to_be_bytes(), &version.to_be_bytes(), self.out.as_slice()].concat())
    }

    fn reset(&mut self) {
        self.out.clear();
        (self.rows, self.version, self.last) = (0, None, None);
        self.noted.iter_mut().for_each(Vec::clear);
        self.outcomes.truncate(self.refused);
    }
}

/// A write that happened.
#[derive(Debug)]
pub struct Written {
    pub id: i64,
    pub version: i64,
    /// The record, or the records.
    pub bytes: Vec<u8>,
}

impl Written {
    /// What [`Answer::keep`] gave.
    pub fn kept(bytes: &[u8]) -> Result<Written> {
        let cut_off = || Error::internal("a kept answer is cut off");
        let (id, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
        let (version, bytes) = rest.split_first_chunk().ok_or_else(cut_off)?;
        let (id, version) = (i64::from_be_bytes(*id), i64::from_be_bytes(*version));
        Ok(Written { id, version, bytes: bytes.to_vec() })
    }
}
