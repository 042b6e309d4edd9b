//! Records that are written together with those that they are related to.

use trefoil_model::error::Violation;
use trefoil_model::{FieldId, RecordId, RecordType, Value};

use crate::operation::written_fields::{FilledField, MissingFields};

/// Related records are written at most this many levels below the record that an operation names.
pub const MAX_WRITE_DEPTH: usize = 10;

/// What a nested write does with the record that it begins with.
#[derive(Debug, Clone)]
pub enum NestedWrite {
    Create(RecordInput),
    CreateMany(Vec<RecordInput>),
    Update { id: RecordId, input: RecordInput, missing_fields: MissingFields, expected_version: Option<i64> },
}

/// The values of one record, and what is written along with it.
#[derive(Debug, Clone, Default)]
pub struct RecordInput {
    /// The id of a new record, if the client chooses it.
    pub id: Option<RecordId>,
    pub fields: Vec<(FieldId, Value)>,
    pub filled_fields: Vec<FilledField>,
    pub related: Vec<RelatedInput>,
}

/// What is done with the records that a relation leads to. A reference has one record to create and nothing else.
#[derive(Debug, Clone)]
pub struct RelatedInput {
    pub relation: FieldId,
    pub create: Vec<RecordInput>,
    pub update: Vec<(RecordId, RecordInput)>,
    pub delete: Vec<RecordId>,
    pub connect: Vec<RecordId>,
    pub disconnect: Vec<RecordId>,
    /// The related records are these and no others, besides those that are created or connected.
    pub set: Option<Vec<RecordId>>,
    /// Related records that must still be at these versions, or nothing is written.
    pub expected_versions: Vec<(RecordId, i64)>,
}

impl RelatedInput {
    pub fn new(relation: FieldId) -> RelatedInput {
        RelatedInput {
            relation,
            create: Vec::new(),
            update: Vec::new(),
            delete: Vec::new(),
            connect: Vec::new(),
            disconnect: Vec::new(),
            set: None,
            expected_versions: Vec::new(),
        }
    }

    /// Refuses related records where several records may be written, or one that may exist.
    pub fn unsupported(&self, record: &RecordType) -> Violation {
        let name = &record.field(self.relation).name;
        let message = format!(
            "`{name}`: related records can be written only with one record that is created or updated"
        );
        Violation::new(name, "UNSUPPORTED", message)
    }
}
