//! Where in the answer something is being written: a chain on the stack, spelled out only when an error needs it.

use crate::plan::shape::Label;
use trefoil_model::error::Segment;

#[derive(Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

/// A field's place: its name for messages and the way to it, list indexes included.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub label: &'a Label,
    pub path: &'a Path<'a>,
}

impl<'a> Path<'a> {
    pub fn root(response: &'a str) -> Path<'a> {
        Path { parent: None, step: Step::Field(response) }
    }

    pub fn field(&'a self, response: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(response) }
    }

    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    pub fn segments(&self) -> Vec<Segment> {
        let mut segments = self.parent.map(Path::segments).unwrap_or_default();
        segments.push(match self.step {
            Step::Field(name) => Segment::Field(name.to_owned()),
            Step::Index(index) => Segment::Index(index),
        });
        segments
    }
}

impl<'a> At<'a> {
    /// The same field, further down.
    pub fn down(self, path: &'a Path<'a>) -> At<'a> {
        At { path, ..self }
    }
}
