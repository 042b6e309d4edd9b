//! An operation that root fields are bound to: what it does, the role of each argument, and the shape of its result.

use trefoil_model::access::AccessAction;
use trefoil_model::error::Error;
use trefoil_model::{FieldId, FilterOperator, RecordType, RecordTypeId, RootType};

use crate::changes::ChangeKind;
use crate::operation::FilledField;

/// A root field that the naming rules bind to an operation on a record type.
#[derive(Debug)]
pub struct BuiltinOperation {
    pub record: RecordTypeId,
    pub verb: OperationVerb,
    /// Name and role of each argument, in schema order.
    pub argument_roles: Vec<(String, ArgumentRole)>,
    pub result_shape: ResultShape,
    /// The number that an argument gives the first page, 1 or 0, if there is one.
    pub first_page: Option<i64>,
    /// A get operation without arguments, of a type that has one record: `shop: Shop!`.
    pub is_singleton: bool,
    /// `me: User`: the account of the actor.
    pub is_own_account: bool,
    /// Required fields that the operation fills, because no argument can set them.
    pub filled_fields: Vec<FilledField>,
}

impl BuiltinOperation {
    /// The error if no argument says which record is meant.
    pub(crate) fn missing_key_error(&self, record: &RecordType) -> Error {
        let is_get = self.verb == OperationVerb::Get;
        let names_record = |role: &ArgumentRole| {
            matches!(role, ArgumentRole::Field(_) | ArgumentRole::Where | ArgumentRole::Input)
        };
        let is_key = |role: &ArgumentRole| *role == ArgumentRole::Id || (is_get && names_record(role));
        let names = self.argument_roles.iter().filter(|(_, role)| is_key(role)).map(|(name, _)| name);
        let names: Vec<&str> = names.map(String::as_str).collect();
        match names.as_slice() {
            [first, _, ..] => {
                let message = format!("one of the arguments `{}` is required", names.join("`, `"));
                Error::invalid(first, "REQUIRED", &message)
            }
            // Without such an argument, an object holds the key.
            [] | [_] => {
                let key = &record.field(record.id_field()).input_name;
                let name = names.first().copied().unwrap_or(key);
                Error::invalid(name, "REQUIRED", format!("argument `{name}` is required"))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationVerb {
    List,
    Get,
    /// The number of records in a list.
    Count,
    /// Whether a list has any record.
    Exists,
    /// Groups of records and what is computed of each.
    Aggregate,
    Create,
    CreateMany,
    Update,
    /// Changes all records that match.
    UpdateMany,
    /// Updates the record whose id is given, else creates one.
    Save,
    /// Updates the record with the same unique values, else creates one.
    Upsert,
    Delete,
    /// Deletes all records that match.
    DeleteMany,
    Subscribe(ChangeKind),
    /// Changes of every kind.
    SubscribeAll,
}

impl OperationVerb {
    /// What it does with records, each of which the actor must be allowed to do.
    pub fn actions(self) -> &'static [AccessAction] {
        match self {
            OperationVerb::List
            | OperationVerb::Get
            | OperationVerb::Count
            | OperationVerb::Exists
            | OperationVerb::Aggregate
            | OperationVerb::Subscribe(_)
            | OperationVerb::SubscribeAll => &[AccessAction::Read],
            OperationVerb::Create | OperationVerb::CreateMany => &[AccessAction::Create],
            OperationVerb::Update => &[AccessAction::Update, AccessAction::UpdateTo],
            OperationVerb::UpdateMany => &[AccessAction::Read, AccessAction::Update, AccessAction::UpdateTo],
            OperationVerb::Save | OperationVerb::Upsert => {
                &[AccessAction::Read, AccessAction::Create, AccessAction::Update, AccessAction::UpdateTo]
            }
            OperationVerb::Delete => &[AccessAction::Delete],
            OperationVerb::DeleteMany => &[AccessAction::Read, AccessAction::Delete],
        }
    }
}

/// The verbs that take the same arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerbGroup {
    /// Any number of records, filtered.
    ReadMany,
    ReadOne,
    /// The values of fields are written.
    WriteFields,
    Delete,
    Subscribe,
}

/// The shape of the result, read from the declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultShape {
    Record,
    List,
    Connection,
    /// A type that wraps the record of a write or of a change, or says that a write was done.
    Payload,
    Id,
    Boolean,
    /// Null, whatever was done: `deleteUser(id: ID!): Void`.
    Nothing,
    /// A number of records: how many there are, or how many were changed.
    Count,
    /// A list of groups, each with its key and measures.
    Groups,
}

/// The role of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentRole {
    Id,
    /// The ids of the records of a list.
    Ids,
    /// Filters by equality in reads and subscriptions, sets the field in writes.
    Field(FieldId),
    /// Filters by another comparison: `minPrice`, `titleContains`.
    Compare(FieldId, FilterOperator),
    /// Filters by a relation, and a field of the records that it leads to: `employeesByDepartment(code)`. Queries only.
    RelatedField(FieldId, FieldId),
    /// An object with what could also be separate arguments; a list of them where many records are created.
    Input,
    /// An object with the key of the record that is written: `where: { id: 1 }`.
    KeyObject,
    /// The unique fields by which the record to update is found.
    UniqueFields,
    ExpectedVersion,
    /// A text that the payload repeats, as Relay has it.
    ClientMutationId,
    /// Counts from 1.
    Page,
    /// A page that counts from 0, as `page: Int = 0` says.
    PageFromZero,
    Size,
    Limit,
    Offset,
    First,
    After,
    Last,
    Before,
    OrderBy,
    /// Ascending or descending, for what `OrderBy` names.
    SortDirection,
    Where,
    /// The values that records are grouped by.
    GroupBy,
    /// The conditions on groups.
    Having,
    /// Text that records contain.
    Search,
    /// No role: `check` warns about it and a request that uses it is refused.
    Unknown,
}

impl OperationVerb {
    /// True if it delivers changes of this kind.
    pub fn follows(self, kind: ChangeKind) -> bool {
        self == OperationVerb::SubscribeAll || self == OperationVerb::Subscribe(kind)
    }

    pub fn group(self) -> VerbGroup {
        match self {
            OperationVerb::List | OperationVerb::Count | OperationVerb::Exists | OperationVerb::Aggregate => {
                VerbGroup::ReadMany
            }
            OperationVerb::Get => VerbGroup::ReadOne,
            OperationVerb::Create
            | OperationVerb::CreateMany
            | OperationVerb::Update
            | OperationVerb::UpdateMany
            | OperationVerb::Save
            | OperationVerb::Upsert => VerbGroup::WriteFields,
            OperationVerb::Delete | OperationVerb::DeleteMany => VerbGroup::Delete,
            OperationVerb::Subscribe(_) | OperationVerb::SubscribeAll => VerbGroup::Subscribe,
        }
    }

    pub fn root_kind(self) -> RootType {
        match self.group() {
            VerbGroup::ReadMany | VerbGroup::ReadOne => RootType::Query,
            VerbGroup::WriteFields | VerbGroup::Delete => RootType::Mutation,
            VerbGroup::Subscribe => RootType::Subscription,
        }
    }

    /// True if an id names the record that it is about.
    pub fn names_record(self) -> bool {
        matches!(
            self,
            OperationVerb::Get | OperationVerb::Update | OperationVerb::Save | OperationVerb::Delete
        )
    }

    /// True for writes of one record, whose result may be a payload.
    pub fn writes_one(self) -> bool {
        matches!(
            self,
            OperationVerb::Create
                | OperationVerb::Update
                | OperationVerb::Save
                | OperationVerb::Upsert
                | OperationVerb::Delete
        )
    }

    pub fn may_create(self) -> bool {
        matches!(
            self,
            OperationVerb::Create | OperationVerb::CreateMany | OperationVerb::Save | OperationVerb::Upsert
        )
    }
}
