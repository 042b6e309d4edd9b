//! What a plan writes, whatever its kind, and in which order its statements take it.

use trefoil_engine::Outcome;
use trefoil_engine::plan::PlanAction;
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, RecordTypeId, StoredValue};

use crate::statements::select::SqlParameter;

pub struct WriteParts<'a> {
    /// Absent where it is of a plain list.
    pub record: Option<RecordTypeId>,
    /// Absent where the store chooses it.
    pub id: Option<i64>,
    pub expected_version: Option<i64>,
    pub values: &'a [(FieldId, StoredValue)],
    pub links: &'a [(FieldId, Vec<i64>)],
}

impl WriteParts<'_> {
    /// What it means that a statement found no record, when its version is this: there is none, or it is at another.
    pub fn no_match_outcome(&self, found: Option<i64>) -> Result<Outcome> {
        match (found, self.expected_version) {
            (Some(found), Some(expected)) => Err(Error::Stale { expected, found }),
            (None, _) | (Some(_), None) => Ok(Outcome::NotFound),
        }
    }
}

pub fn write_parts(action: &PlanAction) -> WriteParts<'_> {
    let (record, id, expected) = match action {
        PlanAction::Create { record, id, .. } => (Some(*record), *id, None),
        PlanAction::Update { record, id, expected_version, .. }
        | PlanAction::Delete { record, id, expected_version, .. } => {
            (Some(*record), Some(*id), *expected_version)
        }
        PlanAction::Get { record, id, .. } => (Some(*record), Some(*id), None),
        PlanAction::List { record, .. } | PlanAction::ReadImage { record, .. } => (Some(*record), None, None),
        PlanAction::PlainList(_) => (None, None, None),
    };
    let (values, links) = match action {
        PlanAction::Create { values, links, .. } | PlanAction::Update { values, links, .. } => {
            (values.as_slice(), links.as_slice())
        }
        PlanAction::Get { .. }
        | PlanAction::List { .. }
        | PlanAction::Delete { .. }
        | PlanAction::ReadImage { .. }
        | PlanAction::PlainList(_) => (&[][..], &[][..]),
    };
    WriteParts { record, id, expected_version: expected, values, links }
}

impl<'a> WriteParts<'a> {
    /// The values.
    pub fn value_parameters(&self) -> impl Iterator<Item = SqlParameter<'a>> + use<'a> {
        self.values.iter().map(|(_, value)| SqlParameter::Cell(value.as_cell()))
    }

    /// The id, and the version where one is expected.
    pub fn identity_parameters(&self) -> impl Iterator<Item = SqlParameter<'a>> + use<'a> {
        self.id
            .into_iter()
            .chain(self.expected_version)
            .map(|number| -> SqlParameter<'a> { SqlParameter::integer(number) })
    }
}
