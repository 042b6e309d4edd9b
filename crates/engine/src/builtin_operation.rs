//! A root field that stands for an operation on records, with the role of each of its arguments.

use trefoil_model::{FieldId, RecordTypeId};

use crate::changes::ChangeKind;

/// A root field that the naming rules bind to an operation on a record type.
#[derive(Debug)]
pub struct BuiltinOperation {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    /// Name and role of each argument, in schema order.
    pub argument_roles: Vec<(String, ArgumentRole)>,
    pub result_shape: ResultShape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationVerb {
    List,
    Get,
    Create,
    Update,
    Delete,
    Subscribe(ChangeKind),
}

/// The shape of the result, read from the declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultShape {
    Record,
    List,
    Connection,
    Id,
    Boolean,
}

/// The role of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentRole {
    Id,
    /// Filters by equality in lists and subscriptions, sets the field in writes.
    Field(FieldId),
    /// An object with the fields to set.
    Input,
    ExpectedVersion,
    Page,
    Size,
    First,
    After,
    OrderBy,
    Where,
    /// No role: `check` warns about it and a request that uses it is refused.
    Unknown,
}
