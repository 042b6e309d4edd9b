//! What a plan writes, whatever its kind, and in which order its statements take it.

use crate::statements::select::Parameter;
use trefoil_engine::Outcome;
use trefoil_engine::plan::Action;
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, Stored, TypeId};

pub struct Parts<'a> {
    /// Absent where it is of a plain list.
    pub record: Option<TypeId>,
    /// Absent where the store chooses it.
    pub id: Option<i64>,
    pub expected: Option<i64>,
    pub values: &'a [(FieldId, Stored)],
    pub links: &'a [(FieldId, Vec<i64>)],
}

impl Parts<'_> {
    /// What it means that a statement found no record, when its version is this: there is none, or it is at another.
    pub fn unmatched(&self, found: Option<i64>) -> Result<Outcome> {
        match (found, self.expected) {
            (Some(found), Some(expected)) => Err(Error::Stale { expected, found }),
            (None, _) | (Some(_), None) => Ok(Outcome::Missing),
        }
    }
}

pub fn parts(action: &Action) -> Parts<'_> {
    let (record, id, expected) = match action {
        Action::Create { record, id, .. } => (Some(*record), *id, None),
        Action::Update { record, id, expected_version, .. }
        | Action::Delete { record, id, expected_version, .. } => {
            (Some(*record), Some(*id), *expected_version)
        }
        Action::Get { record, id, .. } => (Some(*record), Some(*id), None),
        Action::List { record, .. } | Action::Changed { record, .. } => (Some(*record), None, None),
        Action::Plain(_) => (None, None, None),
    };
    let (values, links) = match action {
        Action::Create { values, links, .. } | Action::Update { values, links, .. } => {
            (values.as_slice(), links.as_slice())
        }
        Action::Get { .. }
        | Action::List { .. }
        | Action::Delete { .. }
        | Action::Changed { .. }
        | Action::Plain(_) => (&[][..], &[][..]),
    };
    Parts { record, id, expected, values, links }
}

impl<'a> Parts<'a> {
    /// The values.
    pub fn bound(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        self.values.iter().map(|(_, value)| Parameter::Cell(value.as_cell()))
    }

    /// The id, and the version where one is expected.
    pub fn identity(&self) -> impl Iterator<Item = Parameter<'a>> + use<'a> {
        self.id.into_iter().chain(self.expected).map(|number| -> Parameter<'a> { Parameter::integer(number) })
    }
}
