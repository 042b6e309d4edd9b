//! The parts of a plan that its write statements bind as parameters, for any kind of plan.

use trefoil_engine::Outcome;
use trefoil_engine::plan::PlanAction;
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, RecordId, RecordTypeId, StoredValue};

use crate::statements::sql_parameter::SqlParameter;

#[derive(Clone, Copy)]
pub struct WriteParts<'a> {
    pub kind: WriteKind,
    /// `None` for an action on a plain list and for many new records.
    pub record: Option<RecordTypeId>,
    /// `None` if the store assigns it.
    pub id: Option<&'a RecordId>,
    pub expected_version: Option<i64>,
    pub values: &'a [(FieldId, StoredValue)],
    pub links: &'a [(FieldId, Vec<RecordId>)],
}

/// What is done to records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    Create,
    Update,
    UpdateMany,
    Delete,
    DeleteMany,
    /// A read, or a plan that consists of other plans.
    Other,
}

impl WriteParts<'_> {
    /// The outcome if a statement matched no record: not found, or `found` is another version than expected.
    pub fn no_match_outcome(&self, found: Option<i64>) -> Result<Outcome> {
        match (found, self.expected_version) {
            (Some(found), Some(expected)) => Err(Error::Stale { expected, found }),
            (None, _) | (Some(_), None) => Ok(Outcome::NotFound),
        }
    }
}

pub fn write_parts(action: &PlanAction) -> WriteParts<'_> {
    let (record, id, expected_version) = match action {
        PlanAction::Create { record, id, .. } => (Some(*record), id.as_ref(), None),
        PlanAction::Update { record, id, expected_version, .. }
        | PlanAction::Delete { record, id, expected_version, .. } => {
            (Some(*record), Some(id), *expected_version)
        }
        PlanAction::Get { record, id, .. } => (Some(*record), Some(id), None),
        PlanAction::List { record, .. }
        | PlanAction::ReadImage { record, .. }
        | PlanAction::SeeImages { record, .. } => (Some(*record), None, None),
        PlanAction::UpdateMany { record, .. }
        | PlanAction::DeleteMany { record, .. }
        | PlanAction::Upsert { record, .. } => (Some(*record), None, None),
        // Each of its plans has parts of its own.
        PlanAction::CreateMany(_)
        | PlanAction::Nested(_)
        | PlanAction::Aggregate(_)
        | PlanAction::PlainList(_) => (None, None, None),
    };
    let (values, links) = match action {
        PlanAction::Create { values, links, .. }
        | PlanAction::Update { values, links, .. }
        | PlanAction::UpdateMany { values, links, .. } => (values.as_slice(), links.as_slice()),
        PlanAction::CreateMany(_)
        | PlanAction::DeleteMany { .. }
        | PlanAction::Upsert { .. }
        | PlanAction::Nested(_)
        | PlanAction::Get { .. }
        | PlanAction::List { .. }
        | PlanAction::Delete { .. }
        | PlanAction::ReadImage { .. }
        | PlanAction::SeeImages { .. }
        | PlanAction::Aggregate(_)
        | PlanAction::PlainList(_) => (&[][..], &[][..]),
    };
    let kind = match action {
        PlanAction::Create { .. } => WriteKind::Create,
        PlanAction::Update { .. } => WriteKind::Update,
        PlanAction::UpdateMany { .. } => WriteKind::UpdateMany,
        PlanAction::Delete { .. } => WriteKind::Delete,
        PlanAction::DeleteMany { .. } => WriteKind::DeleteMany,
        PlanAction::Get { .. }
        | PlanAction::List { .. }
        | PlanAction::ReadImage { .. }
        | PlanAction::SeeImages { .. }
        | PlanAction::Aggregate(_)
        | PlanAction::CreateMany(_)
        | PlanAction::Upsert { .. }
        | PlanAction::Nested(_)
        | PlanAction::PlainList(_) => WriteKind::Other,
    };
    WriteParts { kind, record, id, expected_version, values, links }
}

impl<'a> WriteParts<'a> {
    /// Those of an update of the record that an upsert found.
    pub fn of_found_record(
        record: RecordTypeId,
        id: &'a RecordId,
        values: &'a [(FieldId, StoredValue)],
        links: &'a [(FieldId, Vec<RecordId>)],
    ) -> WriteParts<'a> {
        let (kind, record) = (WriteKind::Update, Some(record));
        WriteParts { kind, record, id: Some(id), expected_version: None, values, links }
    }

    pub fn value_parameters(&self) -> impl Iterator<Item = SqlParameter<'a>> + use<'a> {
        self.values.iter().map(|(_, value)| SqlParameter::Cell(value.as_cell()))
    }

    /// The id, if there is one, and the values.
    pub fn create_parameters(&self) -> impl Iterator<Item = SqlParameter<'a>> + use<'a> {
        self.id.map(SqlParameter::id).into_iter().chain(self.value_parameters())
    }

    /// The number of parameters of a statement that writes one record.
    pub fn parameter_count(&self) -> usize {
        self.values.len() + usize::from(self.id.is_some()) + usize::from(self.expected_version.is_some())
    }

    /// The id, and the expected version if there is one.
    pub fn identity_parameters(&self) -> impl Iterator<Item = SqlParameter<'a>> + use<'a> {
        let version =
            self.expected_version.map(|version| -> SqlParameter<'a> { SqlParameter::integer(version) });
        self.id.map(SqlParameter::id).into_iter().chain(version)
    }
}
