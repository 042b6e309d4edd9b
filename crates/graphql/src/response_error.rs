//! Entries of the `errors` list of a response, and how they are written as JSON.

use std::fmt::Write as _;

use trefoil_engine::Engine;
use trefoil_http::errors::error_log::LogScope;
use trefoil_http::monitoring::refusals::RequestRefusals;
use trefoil_model::SourceLocation;
use trefoil_model::error::{Error, ErrorSource, PathSegment, Violation};
use trefoil_model::values::json_text;

use crate::document::suggest::UnknownName;

/// A position in the document, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLocation {
    pub line: usize,
    pub column: usize,
}

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseError {
    pub message: String,
    pub locations: Box<[DocumentLocation]>,
    /// Empty for errors of the request as a whole.
    pub path: Box<[PathSegment]>,
    pub code: Box<str>,
    pub violations: Box<[Violation]>,
    pub subject: Option<Box<ErrorSubject>>,
    /// For the log only: see [`ErrorNotes`].
    pub cause: Option<ErrorSource>,
    /// The rule that refused, for the log only.
    pub refused_by: Option<Box<SourceLocation>>,
    /// Refused by an estimate, which may be less once the lengths of lists are measured again.
    pub is_estimate: bool,
}

/// What an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorSubject {
    /// A field that may not be read: `User.email`.
    HiddenField(String),
    /// A name for which another one is suggested to the actor who gets the error.
    UnknownName(UnknownName),
}

/// True if a request may be refused only because of how long lists are estimated to be.
pub fn is_estimate(errors: &[ResponseError]) -> bool {
    errors.iter().any(|error| error.is_estimate)
}

impl ResponseError {
    pub fn new(code: &str, message: impl Into<String>) -> ResponseError {
        ResponseError {
            message: message.into(),
            locations: Box::default(),
            path: Box::default(),
            code: code.into(),
            violations: Box::default(),
            subject: None,
            cause: None,
            refused_by: None,
            is_estimate: false,
        }
    }

    /// The public message of an error, and its cause for the log.
    pub fn from_error(error: &Error) -> ResponseError {
        ResponseError {
            violations: error.violations().into(),
            cause: error.cause().cloned(),
            refused_by: error.refused_by().cloned().map(Box::new),
            ..ResponseError::new(error.code(), error.to_string())
        }
    }

    /// Suggests the nearest name: here if everybody is told the same, else when it is known who gets the error.
    pub fn with_unknown_name(mut self, engine: &Engine, unknown: UnknownName) -> ResponseError {
        match engine.model().access {
            None => self.message.extend(unknown.hint(&engine.model().schema)),
            Some(_) => self.subject = Some(Box::new(ErrorSubject::UnknownName(unknown))),
        }
        self
    }

    /// The name that another one is to be suggested for.
    pub fn unknown_name(&self) -> Option<&UnknownName> {
        match self.subject.as_deref() {
            Some(ErrorSubject::UnknownName(unknown)) => Some(unknown),
            Some(ErrorSubject::HiddenField(_)) | None => None,
        }
    }

    pub fn with_locations(mut self, locations: &[DocumentLocation]) -> ResponseError {
        self.locations = locations.into();
        self
    }

    pub fn with_path(mut self, path: Vec<PathSegment>) -> ResponseError {
        self.path = path.into();
        self
    }

    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"message\":");
        json_text::write_text(out, &self.message);
        if !self.locations.is_empty() {
            out.extend_from_slice(b",\"locations\":[");
            write_separated(out, &*self.locations, |out, location| {
                let DocumentLocation { line, column } = location;
                write_formatted(out, format_args!("{{\"line\":{line},\"column\":{column}}}"));
            });
            out.push(b']');
        }
        if !self.path.is_empty() {
            out.extend_from_slice(b",\"path\":");
            write_path(out, &self.path);
        }
        out.extend_from_slice(b",\"extensions\":{\"code\":");
        json_text::write_text(out, &self.code);
        if let Some(ErrorSubject::HiddenField(field)) = self.subject.as_deref() {
            out.extend_from_slice(b",\"field\":");
            json_text::write_text(out, field);
        }
        if !self.violations.is_empty() {
            out.extend_from_slice(b",\"violations\":[");
            write_separated(out, &*self.violations, write_violation);
            out.push(b']');
        }
        out.extend_from_slice(b"}}");
    }
}

/// What the log is told of the errors of a response.
#[derive(Debug, Default)]
pub struct ErrorNotes {
    pub causes: Vec<ErrorSource>,
    pub refusals: RequestRefusals,
}

impl ErrorNotes {
    pub fn of<'a>(failures: impl IntoIterator<Item = &'a ResponseError>) -> ErrorNotes {
        let mut notes = ErrorNotes::default();
        for failure in failures {
            notes.causes.extend(failure.cause.clone());
            notes.refusals.add(&failure.code, failure.refused_by.as_deref());
        }
        notes
    }

    /// Logs the causes under the request of `scope`.
    pub fn log_causes(&self, scope: LogScope<'_>) {
        self.causes.iter().for_each(|cause| scope.cause(cause));
    }
}

/// Writes a JSON array of errors.
pub fn write_errors<'a>(out: &mut Vec<u8>, failures: impl IntoIterator<Item = &'a ResponseError>) {
    out.push(b'[');
    write_separated(out, failures, |out, failure| failure.write_json(out));
    out.push(b']');
}

/// The body of a response without `data`.
pub fn rejection_body(failures: &[ResponseError]) -> Vec<u8> {
    let mut out = b"{\"errors\":".to_vec();
    write_errors(&mut out, failures);
    out.push(b'}');
    out
}

fn write_violation(out: &mut Vec<u8>, violation: &Violation) {
    out.extend_from_slice(b"{\"path\":");
    write_path(out, &violation.path);
    out.extend_from_slice(b",\"code\":");
    json_text::write_text(out, violation.code);
    out.extend_from_slice(b",\"message\":");
    json_text::write_text(out, &violation.message);
    out.push(b'}');
}

fn write_path(out: &mut Vec<u8>, segments: &[PathSegment]) {
    out.push(b'[');
    write_separated(out, segments, |out, segment| match segment {
        PathSegment::Field(name) => json_text::write_text(out, name),
        PathSegment::Index(index) => write_formatted(out, format_args!("{index}")),
    });
    out.push(b']');
}

fn write_separated<'a, T: 'a>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = &'a T>,
    mut write: impl FnMut(&mut Vec<u8>, &T),
) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, item);
    }
}

fn write_formatted(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let mut text = String::new();
    text.write_fmt(arguments).expect("writing text into memory cannot fail");
    out.extend_from_slice(text.as_bytes());
}
