//! What a plain list is read as: its values as JSON or lines.

use http::HeaderValue;

use crate::text_endpoints::TEXT;
use trefoil_engine::{Answer, Outcome, Row};
use trefoil_http::negotiation::accept::Accept;
use trefoil_http::negotiation::format::{Chosen, Offers, Wanted};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::json_text;
use trefoil_resources::plain_list;
use trefoil_resources::plain_list::shown;

/// The two forms of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Lines,
}

impl Form {
    /// Lines only where they are preferred; a list that has no page is never refused.
    pub fn of(offers: Offers, accept: &Accept<'_>) -> Form {
        match offers.choose(accept, Chosen::Nothing) {
            Some(Wanted::Lines) => Form::Lines,
            Some(Wanted::Json | Wanted::Page | Wanted::Ndjson | Wanted::Csv | Wanted::Events) | None => {
                Form::Json
            }
        }
    }

    pub fn media(self) -> HeaderValue {
        match self {
            Form::Json => HeaderValue::from_static("application/json; charset=utf-8"),
            Form::Lines => TEXT,
        }
    }

    pub fn tag(self, version: i64) -> String {
        match self {
            Form::Json => plain_list::tag(version),
            Form::Lines => plain_list::text_tag(version),
        }
    }
}

/// Writes values down while they are read.
pub struct Reading {
    form: Form,
    /// Nothing of the list was read before.
    first: bool,
    out: Vec<u8>,
    outcome: Option<Result<Outcome>>,
}

impl Reading {
    pub fn new(form: Form, first: bool) -> Reading {
        Reading { form, first, out: Vec::new(), outcome: None }
    }

    pub fn finish(self) -> Result<(Vec<u8>, Outcome)> {
        let outcome =
            self.outcome.unwrap_or_else(|| Err(Error::internal("a list was read without an end")))?;
        Ok((self.out, outcome))
    }
}

impl Answer for Reading {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        let value = shown(row.cell(0));
        match self.form {
            Form::Json => {
                self.out.push(if self.first && self.out.is_empty() { b'[' } else { b',' });
                json_text::write_text(&mut self.out, value);
            }
            Form::Lines => {
                self.out.extend_from_slice(value.as_bytes());
                self.out.push(b'\n');
            }
        }
    }

    fn done(&mut self, _plan: usize, outcome: Result<Outcome>) {
        if let (Form::Json, Ok(Outcome::Plain { rest: None, .. })) = (self.form, &outcome) {
            if self.first && self.out.is_empty() {
                self.out.push(b'[');
            }
            self.out.push(b']');
        }
        self.outcome = Some(outcome);
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn reset(&mut self) {
        self.out.clear();
        self.outcome = None;
    }
}
