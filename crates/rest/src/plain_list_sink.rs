//! `ListSink`, which encodes the values of a plain list as JSON or lines while they are read.

use http::HeaderValue;

use trefoil_engine::{Outcome, Row, RowSink};
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::negotiation::format::{FormatChoice, OfferedFormats, ResponseFormat};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::json_text;
use trefoil_resources::plain_list::{self, cell_text};

use crate::text_endpoints::TEXT_PLAIN;

/// The formats of a plain list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListFormat {
    Json,
    Lines,
}

impl ListFormat {
    /// Lines only where `Accept` prefers them, JSON otherwise: a list without a page never responds 406.
    pub fn negotiate(offers: OfferedFormats, accept: &AcceptHeader<'_>) -> ListFormat {
        match offers.choose(accept, FormatChoice::Unspecified) {
            Some(ResponseFormat::TextLines) => ListFormat::Lines,
            Some(
                ResponseFormat::Json
                | ResponseFormat::Html
                | ResponseFormat::Ndjson
                | ResponseFormat::Csv
                | ResponseFormat::EventStream,
            )
            | None => ListFormat::Json,
        }
    }

    pub fn content_type(self) -> HeaderValue {
        match self {
            ListFormat::Json => HeaderValue::from_static("application/json; charset=utf-8"),
            ListFormat::Lines => TEXT_PLAIN,
        }
    }

    pub fn etag(self, version: i64) -> String {
        match self {
            ListFormat::Json => plain_list::json_etag(version),
            ListFormat::Lines => plain_list::text_etag(version),
        }
    }
}

/// Encodes values while they are read.
pub struct ListSink {
    format: ListFormat,
    /// True for the part that begins the list.
    is_first_part: bool,
    out: Vec<u8>,
    outcome: Option<Result<Outcome>>,
}

impl ListSink {
    pub fn new(format: ListFormat, is_first_part: bool) -> ListSink {
        ListSink { format, is_first_part, out: Vec::new(), outcome: None }
    }

    pub fn finish(self) -> Result<(Vec<u8>, Outcome)> {
        let outcome =
            self.outcome.unwrap_or_else(|| Err(Error::internal("a list was read without an end")))?;
        Ok((self.out, outcome))
    }
}

impl RowSink for ListSink {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        let value = cell_text(row.cell(0));
        match self.format {
            ListFormat::Json => {
                self.out.push(if self.is_first_part && self.out.is_empty() { b'[' } else { b',' });
                json_text::write_text(&mut self.out, value);
            }
            ListFormat::Lines => {
                self.out.extend_from_slice(value.as_bytes());
                self.out.push(b'\n');
            }
        }
    }

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        if let (ListFormat::Json, Ok(Outcome::PlainList { remaining: None, .. })) = (self.format, &outcome) {
            if self.is_first_part && self.out.is_empty() {
                self.out.push(b'[');
            }
            self.out.push(b']');
        }
        self.outcome = Some(outcome);
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.out.clear();
        self.outcome = None;
    }
}
