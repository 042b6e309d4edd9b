//! The path to the current field of a response: a linked list on the stack, collected only for an error.

use trefoil_model::error::PathSegment;

use crate::plan::shape::ResponseLabel;

#[derive(Clone, Copy)]
pub struct ResponsePath<'a> {
    parent: Option<&'a ResponsePath<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Field(&'a str),
    Index(usize),
}

/// A field in the response: its label for messages, and its path with list indexes.
#[derive(Clone, Copy)]
pub struct FieldPosition<'a> {
    pub label: &'a ResponseLabel,
    pub path: &'a ResponsePath<'a>,
}

impl<'a> ResponsePath<'a> {
    pub fn root(response_key: &'a str) -> ResponsePath<'a> {
        ResponsePath { parent: None, step: PathStep::Field(response_key) }
    }

    pub fn field(&'a self, response_key: &'a str) -> ResponsePath<'a> {
        ResponsePath { parent: Some(self), step: PathStep::Field(response_key) }
    }

    pub fn index(&'a self, index: usize) -> ResponsePath<'a> {
        ResponsePath { parent: Some(self), step: PathStep::Index(index) }
    }

    pub fn segments(&self) -> Vec<PathSegment> {
        let mut segments = self.parent.map(ResponsePath::segments).unwrap_or_default();
        segments.push(match self.step {
            PathStep::Field(name) => PathSegment::Field(name.to_owned()),
            PathStep::Index(index) => PathSegment::Index(index),
        });
        segments
    }
}

impl<'a> FieldPosition<'a> {
    /// The same field with a longer path.
    pub fn with_path(self, path: &'a ResponsePath<'a>) -> FieldPosition<'a> {
        FieldPosition { path, ..self }
    }
}
