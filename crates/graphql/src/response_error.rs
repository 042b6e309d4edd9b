//! One entry of a response's `errors`: what went wrong, where in the document and where in the answer.

use std::fmt::Write as _;

use trefoil_http::errors::error_log::LogScope;
use trefoil_model::error::{Cause, Error, Segment, Violation};

/// A place in the document's text, counting from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub places: Vec<Place>,
    /// Empty for errors of the request as a whole.
    pub path: Vec<Segment>,
    pub code: String,
    pub violations: Box<[Violation]>,
    /// For the log alone, where it is written by whoever knows the request.
    pub cause: Option<Cause>,
}

impl Failure {
    pub fn new(code: &str, message: impl Into<String>) -> Failure {
        Failure {
            message: message.into(),
            places: Vec::new(),
            path: Vec::new(),
            code: code.to_owned(),
            violations: Box::default(),
            cause: None,
        }
    }

    /// The safe words of an error, and its cause for the log.
    pub fn of(error: &Error) -> Failure {
        Failure {
            violations: error.violations().into(),
            cause: error.cause().cloned(),
            ..Failure::new(error.code(), error.to_string())
        }
    }

    pub fn at(mut self, places: &[Place]) -> Failure {
        self.places = places.to_vec();
        self
    }

    pub fn on(mut self, path: Vec<Segment>) -> Failure {
        self.path = path;
        self
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"message\":");
        text(out, &self.message);
        if !self.places.is_empty() {
            out.extend_from_slice(b",\"locations\":[");
            separated(out, &self.places, |out, place| {
                let Place { line, column } = place;
                push(out, format_args!("{{\"line\":{line},\"column\":{column}}}"));
            });
            out.push(b']');
        }
        if !self.path.is_empty() {
            out.extend_from_slice(b",\"path\":");
            path(out, &self.path);
        }
        out.extend_from_slice(b",\"extensions\":{\"code\":");
        text(out, &self.code);
        if !self.violations.is_empty() {
            out.extend_from_slice(b",\"violations\":[");
            separated(out, &*self.violations, violation);
            out.push(b']');
        }
        out.extend_from_slice(b"}}");
    }
}

/// What their causes leave in the log.
pub fn log_causes(failures: &[Failure], scope: LogScope<'_>) {
    failures.iter().filter_map(|failure| failure.cause.as_ref()).for_each(|cause| scope.cause(cause));
}

/// `[…]` of all of them.
pub fn write_all<'a>(out: &mut Vec<u8>, failures: impl IntoIterator<Item = &'a Failure>) {
    out.push(b'[');
    separated(out, failures, |out, failure| failure.write(out));
    out.push(b']');
}

fn violation(out: &mut Vec<u8>, violation: &Violation) {
    out.extend_from_slice(b"{\"path\":");
    path(out, &violation.path);
    out.extend_from_slice(b",\"code\":");
    text(out, violation.code);
    out.extend_from_slice(b",\"message\":");
    text(out, &violation.message);
    out.push(b'}');
}

fn path(out: &mut Vec<u8>, segments: &[Segment]) {
    out.push(b'[');
    separated(out, segments, |out, segment| match segment {
        Segment::Field(name) => text(out, name),
        Segment::Index(index) => push(out, format_args!("{index}")),
    });
    out.push(b']');
}

fn separated<'a, T: 'a>(
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

/// A JSON string.
pub fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("writing text into memory cannot fail");
}

fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    let mut text = String::new();
    text.write_fmt(arguments).expect("writing text into memory cannot fail");
    out.extend_from_slice(text.as_bytes());
}
