//! What a body at a record path means: a record, several, a form or a text. The content type decides.

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::body_text;
use trefoil_http::errors::problem::{About, Problem};
use trefoil_http::form_pairs;
use trefoil_http::form_pairs::Pairs;
use trefoil_model::error::{Error, Segment, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{RecordType, Value};

/// The fields of one record by name, as they were sent.
pub type Object = Vec<(String, Value)>;

#[derive(Debug)]
pub enum Sent {
    Record(Object),
    /// Each, or what is wrong with it.
    Records(Vec<Result<Object, Error>>),
    Form(Pairs),
    Text(String),
}

/// Who reads: what is taken differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// POST to a collection.
    Collection,
    /// POST to a collection that is a list of texts to plain clients.
    Texts,
    /// The whole of a record.
    Record,
    /// Changes to a record.
    Patch,
}

impl Place {
    fn taken(self) -> &'static str {
        match self {
            Place::Collection => {
                "application/json, application/x-ndjson, application/x-www-form-urlencoded, multipart/form-data"
            }
            Place::Texts => {
                "application/json, application/x-ndjson, text/plain, application/x-www-form-urlencoded, \
                 multipart/form-data"
            }
            Place::Record => "application/json, application/x-www-form-urlencoded, multipart/form-data",
            Place::Patch => "application/merge-patch+json, application/json",
        }
    }

    /// The header that names what is taken.
    pub fn header(self) -> (HeaderName, HeaderValue) {
        let name = match self {
            Place::Collection | Place::Texts | Place::Record => HeaderName::from_static("accept-post"),
            Place::Patch => HeaderName::from_static("accept-patch"),
        };
        (name, HeaderValue::from_static(self.taken()))
    }

    fn unsupported(self, essence: &str) -> Problem {
        let sent = match essence {
            "" => "a body without a content type".to_owned(),
            named => format!("a body of the type {named:?}"),
        };
        let detail = format!("{sent} cannot be read here; send {}", self.taken());
        let (name, value) = self.header();
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail).header(name, value)
    }

    /// `is_field` tells whether the name of a control means something.
    pub fn read(
        self,
        headers: &HeaderMap,
        bytes: &[u8],
        is_field: impl Fn(&str) -> bool,
    ) -> Result<Sent, Problem> {
        let essence = body_text::essence(headers);
        match (essence.as_str(), self) {
            ("application/json" | "text/json", _) | ("application/merge-patch+json", Place::Patch) => {
                self.json(headers, bytes)
            }
            (_, Place::Patch) => Err(self.unsupported(&essence)),
            ("application/x-ndjson" | "application/ndjson", Place::Collection | Place::Texts) => {
                Ok(Sent::Records(lines(&body_text::decoded(headers, bytes)?)))
            }
            ("multipart/form-data", _) => {
                form_pairs::multipart(body_text::media(headers), bytes).map(Sent::Form)
            }
            // Nothing at all is an empty form.
            (_, _) if bytes.is_empty() => Ok(Sent::Form(Pairs::new())),
            ("application/x-www-form-urlencoded", _) => self.form(headers, bytes, is_field),
            ("" | "application/octet-stream", Place::Texts) => {
                body_text::decoded(headers, bytes).map(Sent::Text)
            }
            (text, Place::Texts) if text.starts_with("text/") => {
                body_text::decoded(headers, bytes).map(Sent::Text)
            }
            (_, Place::Collection | Place::Texts | Place::Record) => Err(self.unsupported(&essence)),
        }
    }

    /// A form that names no field is a text to a list of texts: what `curl -d milk` sends. One that does is a form, even
    /// if it cannot be read: nobody means to store what is left of it.
    fn form(
        self,
        headers: &HeaderMap,
        bytes: &[u8],
        is_field: impl Fn(&str) -> bool,
    ) -> Result<Sent, Problem> {
        let text = body_text::decoded(headers, bytes)?;
        if self == Place::Texts && !form_pairs::names(&text).any(|name| is_field(&name)) {
            return Ok(Sent::Text(text));
        }
        form_pairs::urlencoded(&text, "the form").map(Sent::Form)
    }

    fn json(self, headers: &HeaderMap, bytes: &[u8]) -> Result<Sent, Problem> {
        let text = body_text::decoded(headers, bytes)?;
        let value = parsed(&text).map_err(|why| {
            Problem::bad_request("MALFORMED_BODY", format!("the body cannot be read as JSON: {why}"))
        })?;
        match (value, self) {
            (Value::Object(fields), _) => Ok(Sent::Record(fields)),
            (Value::List(items), Place::Collection | Place::Texts) => {
                Ok(Sent::Records(items.into_iter().enumerate().map(|(i, item)| object(i, item)).collect()))
            }
            (Value::String(text), Place::Texts) => Ok(Sent::Text(text)),
            (other, _) => {
                let many = match self {
                    Place::Collection | Place::Texts => " or an array of objects",
                    Place::Record | Place::Patch => "",
                };
                let detail = format!("the body must be an object{many}, not {}", other.noun());
                Err(Problem::bad_request("NOT_A_RECORD", detail))
            }
        }
    }
}

/// Digits of numbers survive as they were written; of a key that is given twice, the last one counts.
fn parsed(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// One record a line; blank lines count but say nothing.
fn lines(text: &str) -> Vec<Result<Object, Error>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(position, (number, line)): (usize, (usize, &str))| match parsed(line) {
        Ok(value) => object(position, value),
        Err(why) => {
            // To the parser every line is the first.
            let why = why.to_string().replace(" at line 1 column ", " at column ");
            let message = format!("line {} cannot be read as JSON: {why}", number + 1);
            Err(Error::Invalid(vec![Violation { path: Vec::new(), code: "MALFORMED", message }]))
        }
    };
    lines.enumerate().map(read).collect()
}

fn object(position: usize, value: Value) -> Result<Object, Error> {
    value.into_fields().map_err(|noun| {
        let message = format!("element {position} must be an object, not {noun}");
        Error::Invalid(vec![Violation { path: Vec::new(), code: "TYPE", message }])
    })
}

/// Complaints name a reference as it is written, `userId`. To whoever sent `user`, they are about that.
pub fn as_sent(record: &RecordType, bytes: &[u8], mut problem: Problem) -> Problem {
    if problem.violations.is_empty() || problem.about != About::Body {
        return problem;
    }
    let Ok(sent) = serde_json::from_slice::<Value>(bytes) else { return problem };
    for violation in &mut problem.violations {
        let (object, name) = match violation.path.as_mut_slice() {
            [Segment::Field(name), ..] => (&sent, name),
            [Segment::Index(number), Segment::Field(name), ..] => {
                let Some(element) = sent.as_list().and_then(|items| items.get(*number)) else { continue };
                (element, name)
            }
            [] | [Segment::Index(_), ..] => continue,
        };
        let field = record.fields.iter().find(|field| field.input_name == *name);
        if let Some(field) = field.filter(|field| object.get(&field.name).is_some())
            && object.get(&*name).is_none()
        {
            name.clone_from(&field.name);
        }
    }
    problem
}

/// The failures of several records as one, each with the number of its element.
pub fn numbered(failures: Vec<(usize, Error)>) -> Error {
    let (mut invalid, mut conflicts, mut other) = (Vec::new(), Vec::new(), None);
    for (number, error) in failures {
        let at = |violation: Violation| violation.under(Segment::Index(number));
        match error {
            Error::Invalid(list) => invalid.extend(list.into_iter().map(at)),
            Error::Conflict(list) => conflicts.extend(list.into_iter().map(at)),
            // Undone or never begun because of another.
            Error::Cancelled => {}
            error @ (Error::NotFound { .. }
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::OutcomeUnknown
            | Error::Internal { .. }
            | Error::EventId { .. }
            | Error::Resolver { .. }) => other = other.or(Some(error)),
        }
    }
    invalid.truncate(coerce::MOST);
    match (other, invalid.is_empty(), conflicts.is_empty()) {
        (Some(error), ..) => error,
        (None, false, _) => Error::Invalid(invalid),
        (None, true, false) => Error::Conflict(conflicts),
        (None, true, true) => Error::Cancelled,
    }
}
