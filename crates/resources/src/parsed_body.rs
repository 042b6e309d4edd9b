//! Parses the body of a write as a record, records, a form or a text, by content type.

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};

use trefoil_http::errors::problem::{Problem, RequestPart};
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_model::error::{Error, PathSegment, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{RecordId, RecordType, Value};

use crate::body_text;

/// The fields of one record by name, before validation.
pub type RecordObject = Vec<(String, Value)>;

#[derive(Debug)]
pub enum ParsedBody {
    Record(RecordObject),
    /// Each record, or its error.
    Records(Vec<Result<RecordObject, Error>>),
    Form(FormPairs),
    Text(String),
}

/// The kind of write, which decides the accepted content types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// POST to a collection.
    Collection,
    /// POST to a collection with a text list.
    TextCollection,
    /// A whole record.
    Record,
    /// Changes to a record.
    Patch,
    /// One record or several, each whole.
    Upsert,
    /// The id of a record to link.
    Id,
}

impl BodyKind {
    fn accepted_types(self) -> &'static str {
        match self {
            BodyKind::Collection => {
                "application/json, application/x-ndjson, application/x-www-form-urlencoded, multipart/form-data"
            }
            BodyKind::TextCollection => {
                "application/json, application/x-ndjson, text/plain, application/x-www-form-urlencoded, \
                 multipart/form-data"
            }
            BodyKind::Record => "application/json, application/x-www-form-urlencoded, multipart/form-data",
            BodyKind::Patch => "application/merge-patch+json, application/json",
            BodyKind::Upsert => "application/json, application/x-ndjson",
            BodyKind::Id => "application/json",
        }
    }

    /// The header with the accepted content types.
    pub fn accept_header(self) -> (HeaderName, HeaderValue) {
        let name = match self {
            BodyKind::Collection
            | BodyKind::TextCollection
            | BodyKind::Record
            | BodyKind::Upsert
            | BodyKind::Id => HeaderName::from_static("accept-post"),
            BodyKind::Patch => HeaderName::from_static("accept-patch"),
        };
        (name, HeaderValue::from_static(self.accepted_types()))
    }

    fn unsupported(self, media_type: &str) -> Problem {
        let sent = match media_type {
            "" => "a body without a content type".to_owned(),
            named => format!("a body of type {named:?}"),
        };
        let detail = format!("{sent} is not supported here; send {}", self.accepted_types());
        let (name, value) = self.accept_header();
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
            .with_header(name, value)
    }

    /// `is_field` is true for names of form controls that belong to a field.
    pub fn parse(
        self,
        headers: &HeaderMap,
        bytes: &[u8],
        is_field: impl Fn(&str) -> bool,
    ) -> Result<ParsedBody, Problem> {
        let media_type = body_text::media_type(headers);
        match (media_type.as_str(), self) {
            ("application/json" | "text/json", _) | ("application/merge-patch+json", BodyKind::Patch) => {
                self.parse_json(headers, bytes)
            }
            (_, BodyKind::Patch) => Err(self.unsupported(&media_type)),
            (
                "application/x-ndjson" | "application/ndjson",
                BodyKind::Collection | BodyKind::TextCollection | BodyKind::Upsert,
            ) => Ok(ParsedBody::Records(parse_ndjson(&body_text::decode_body(headers, bytes)?))),
            (_, BodyKind::Upsert | BodyKind::Id) => Err(self.unsupported(&media_type)),
            ("multipart/form-data", _) => {
                form_pairs::parse_multipart(body_text::content_type(headers), bytes).map(ParsedBody::Form)
            }
            // An empty body is an empty form.
            (_, _) if bytes.is_empty() => Ok(ParsedBody::Form(FormPairs::new())),
            ("application/x-www-form-urlencoded", _) => self.parse_form(headers, bytes, is_field),
            ("" | "application/octet-stream", BodyKind::TextCollection) => {
                body_text::decode_body(headers, bytes).map(ParsedBody::Text)
            }
            (text, BodyKind::TextCollection) if text.starts_with("text/") => {
                body_text::decode_body(headers, bytes).map(ParsedBody::Text)
            }
            (_, BodyKind::Collection | BodyKind::TextCollection | BodyKind::Record) => {
                Err(self.unsupported(&media_type))
            }
        }
    }

    /// In a text list, a form without a field name is a text, as `curl -d milk` sends it. A form with one is a form even
    /// if it is malformed, so that it is not stored as a text.
    fn parse_form(
        self,
        headers: &HeaderMap,
        bytes: &[u8],
        is_field: impl Fn(&str) -> bool,
    ) -> Result<ParsedBody, Problem> {
        let text = body_text::decode_body(headers, bytes)?;
        if self == BodyKind::TextCollection && !form_pairs::readable_names(&text).any(|name| is_field(&name))
        {
            return Ok(ParsedBody::Text(text));
        }
        form_pairs::parse_urlencoded(&text, "the form").map(ParsedBody::Form)
    }

    fn parse_value(self, headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Problem> {
        let text = body_text::decode_body(headers, bytes)?;
        parse_json_value(&text).map_err(|why| {
            Problem::bad_request("MALFORMED_BODY", format!("the body is not valid JSON: {why}"))
        })
    }

    fn parse_json(self, headers: &HeaderMap, bytes: &[u8]) -> Result<ParsedBody, Problem> {
        match (self.parse_value(headers, bytes)?, self) {
            (Value::Object(fields), _) => Ok(ParsedBody::Record(fields)),
            (Value::List(items), BodyKind::Collection | BodyKind::TextCollection | BodyKind::Upsert) => {
                Ok(ParsedBody::Records(
                    items.into_iter().enumerate().map(|(i, item)| expect_object(i, item)).collect(),
                ))
            }
            (Value::String(text), BodyKind::TextCollection) => Ok(ParsedBody::Text(text)),
            (other, _) => {
                let many = match self {
                    BodyKind::Collection | BodyKind::TextCollection | BodyKind::Upsert => {
                        " or an array of objects"
                    }
                    BodyKind::Record | BodyKind::Patch | BodyKind::Id => "",
                };
                let detail = format!("the body must be an object{many}, not {}", other.type_noun());
                Err(Problem::bad_request("NOT_A_RECORD", detail))
            }
        }
    }
}

/// Numbers keep their digits; the last of duplicate keys counts.
/// The id of a record: a number, a text, or an object with nothing but the key.
pub fn parse_id(headers: &HeaderMap, bytes: &[u8], record: &RecordType) -> Result<RecordId, Problem> {
    let media_type = body_text::media_type(headers);
    if !matches!(media_type.as_str(), "application/json" | "text/json") {
        return Err(BodyKind::Id.unsupported(&media_type));
    }
    let value = BodyKind::Id.parse_value(headers, bytes)?;
    let key = &record.field(record.id_field()).name;
    let value = match value {
        Value::Object(members) => match <[_; 1]>::try_from(members) {
            Ok([(name, value)]) if name == *key => value,
            Ok(_) | Err(_) => {
                let detail =
                    format!("the body must be the id of a record, or an object with nothing but `{key}`");
                return Err(Problem::bad_request("NOT_AN_ID", detail));
            }
        },
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::List(_)) => value,
    };
    RecordId::from_value(record.key_form(), &value)
        .map_err(|help| Problem::bad_request("NOT_AN_ID", format!("the id of a {} {help}", record.name)))
}

fn parse_json_value(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// One record per line. Blank lines are skipped but counted.
fn parse_ndjson(text: &str) -> Vec<Result<RecordObject, Error>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(position, (number, line)): (usize, (usize, &str))| match parse_json_value(line) {
        Ok(value) => expect_object(position, value),
        Err(why) => {
            // The parser sees each line as line 1.
            let why = why.to_string().replace(" at line 1 column ", " at column ");
            let message = format!("line {} is not valid JSON: {why}", number + 1);
            Err(Error::Invalid(vec![Violation { path: Vec::new(), code: "MALFORMED", message }]))
        }
    };
    lines.enumerate().map(read).collect()
}

fn expect_object(position: usize, value: Value) -> Result<RecordObject, Error> {
    value.into_fields().map_err(|noun| {
        let message = format!("element {position} must be an object, not {noun}");
        Error::Invalid(vec![Violation { path: Vec::new(), code: "TYPE", message }])
    })
}

/// Violations name a reference by its input name, `userId`; renames them to `user` if the client sent that. They leave
/// `create` out of the paths of related records; adds it where the client sent it.
pub fn with_sent_names(record: &RecordType, bytes: &[u8], mut problem: Problem) -> Problem {
    if problem.violations.is_empty() || problem.request_part != RequestPart::Body {
        return problem;
    }
    let Ok(sent) = serde_json::from_slice::<Value>(bytes) else { return problem };
    for violation in &mut problem.violations {
        let (object, name) = match violation.path.as_mut_slice() {
            [PathSegment::Field(name), ..] => (&sent, name),
            [PathSegment::Index(number), PathSegment::Field(name), ..] => {
                let Some(element) = sent.as_list().and_then(|items| items.get(*number)) else { continue };
                (element, name)
            }
            [] | [PathSegment::Index(_), ..] => continue,
        };
        let field = record.fields.iter().find(|field| field.input_name == *name);
        if let Some(field) = field.filter(|field| object.get(&field.name).is_some())
            && object.get(&*name).is_none()
        {
            name.clone_from(&field.name);
        }
        add_create_members(&sent, &mut violation.path);
    }
    problem
}

/// Adds `create` to a path wherever the body has it between two members of the path.
fn add_create_members(sent: &Value, path: &mut Vec<PathSegment>) {
    let mut current = Some(sent);
    let mut position = 0;
    while position < path.len() {
        let found = match (&path[position], current) {
            (PathSegment::Field(name), Some(value)) => value.get(name),
            (PathSegment::Index(index), Some(value)) => value.as_list().and_then(|items| items.get(*index)),
            (_, None) => return,
        };
        let created = current.and_then(|value| value.get("create")).filter(|_| found.is_none());
        if created.is_some() {
            path.insert(position, PathSegment::Field("create".to_owned()));
        }
        current = found.or(created);
        position += 1;
    }
}

/// Merges the errors of several records; each violation gets the index of its record.
pub fn merge_errors(errors: Vec<(usize, Error)>) -> Error {
    let (mut invalid, mut conflicts, mut other) = (Vec::new(), Vec::new(), None);
    for (number, error) in errors {
        match error.of_item(number) {
            Error::Invalid(list) => invalid.extend(list),
            Error::Conflict(list) => conflicts.extend(list),
            Error::RolledBack | Error::Cancelled => {}
            error @ (Error::NotFound { .. }
            | Error::Unauthenticated { .. }
            | Error::Forbidden { .. }
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
    invalid.truncate(coerce::MAX_VIOLATIONS);
    match (other, invalid.is_empty(), conflicts.is_empty()) {
        (Some(error), ..) => error,
        (None, false, _) => Error::Invalid(invalid),
        (None, true, false) => Error::Conflict(conflicts),
        (None, true, true) => Error::Cancelled,
    }
}
