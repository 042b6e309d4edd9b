//! What a plain list is answered with: its values as JSON or lines, or a sentence that confirms a write.

use http::HeaderValue;

use super::text::TEXT;
use crate::engine::{Answer, Outcome, Row};
use crate::error::{Error, Result};
use crate::faces::accept::Accept;
use crate::faces::resources::negotiate::{Fields, Offers, Wanted};
use crate::model::{Cell, json};

/// The two forms of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Lines,
}

impl Form {
    /// Lines only where they are preferred; a list that has no page is never refused.
    pub fn of(offers: Offers, accept: &Accept<'_>) -> Form {
        match offers.choose(accept, Fields::Unsaid) {
            Some(Wanted::Lines) => Form::Lines,
            Some(Wanted::Json | Wanted::Page | Wanted::Ndjson | Wanted::Events) | None => Form::Json,
        }
    }

    pub fn media(self) -> HeaderValue {
        match self {
            Form::Json => HeaderValue::from_static("application/json; charset=utf-8"),
            Form::Lines => TEXT,
        }
    }

    /// Two forms of one version are different bytes, so they have different tags.
    pub fn tag(self, version: i64) -> String {
        match self {
            Form::Json => format!("\"{version:x}\""),
            Form::Lines => format!("\"{version:x}-text\""),
        }
    }

    /// The version in a tag of either form, without its quotes.
    pub fn version(tag: &str) -> Option<i64> {
        i64::from_str_radix(tag.strip_suffix("-text").unwrap_or(tag), 16).ok()
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
                json::write_text(&mut self.out, value);
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

/// What another program put into a list and is no text.
fn shown(cell: Cell<'_>) -> &str {
    match cell {
        Cell::Text(text) => text,
        Cell::Null | Cell::Int(_) | Cell::Real(_) | Cell::Unreadable => "\u{fffd}",
    }
}

/// Says what was done: what is known of it beforehand, then the value that was removed, if any.
pub struct Confirming {
    said: String,
    removed: String,
    outcome: Option<Result<Outcome>>,
}

/// A write that happened.
pub struct Confirmed {
    pub version: i64,
    pub text: String,
}

impl Confirming {
    pub fn new(said: String) -> Confirming {
        Confirming { said, removed: String::new(), outcome: None }
    }

    pub fn finish(mut self) -> Result<Confirmed> {
        match self.outcome.take() {
            Some(Err(error)) => Err(error),
            Some(Ok(Outcome::Plain { version, .. })) => {
                Ok(Confirmed { version, text: self.said + &self.removed })
            }
            other => Err(Error::internal(format!("a write to a list ended as {other:?}"))),
        }
    }

    /// What [`Answer::keep`] gave.
    pub fn kept(bytes: &[u8]) -> Result<Confirmed> {
        let parts = bytes.split_first_chunk().map(|(version, text)| (i64::from_be_bytes(*version), text));
        let (version, text) = parts.ok_or_else(|| Error::internal("a kept answer is cut off"))?;
        Ok(Confirmed { version, text: String::from_utf8_lossy(text).into_owned() })
    }
}

impl Answer for Confirming {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        self.removed = format!("{}\n", shown(row.cell(0)));
    }

    fn done(&mut self, _plan: usize, outcome: Result<Outcome>) {
        self.outcome = Some(outcome);
    }

    /// Only a write that happened is kept.
    fn keep(&mut self) -> Option<Vec<u8>> {
        match &self.outcome {
            Some(Ok(Outcome::Plain { version, .. })) => {
                let mut bytes = version.to_be_bytes().to_vec();
                bytes.extend_from_slice(self.said.as_bytes());
                bytes.extend_from_slice(self.removed.as_bytes());
                Some(bytes)
            }
            Some(_) | None => None,
        }
    }

    fn reset(&mut self) {
        self.removed.clear();
        self.outcome = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_either_form_names_its_version() {
        for form in [Form::Json, Form::Lines] {
            let tag = form.tag(1_760_000_000_000_123);
            assert_eq!(Form::version(tag.trim_matches('"')), Some(1_760_000_000_000_123), "{tag}");
        }
        assert_ne!(Form::Json.tag(5), Form::Lines.tag(5));
        assert_eq!(Form::version("xyz"), None);
    }
}
