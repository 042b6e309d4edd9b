//! The names of operations in `@resolver(name: "User.list")`.

use crate::builtin_operation::OperationVerb;
use crate::changes::ChangeKind;

/// The words after the dot in `@resolver(name: "User.list")`.
pub(super) const VERB_NAMES: &[(OperationVerb, &str)] = &[
    (OperationVerb::List, "list"),
    (OperationVerb::Get, "get"),
    (OperationVerb::Count, "count"),
    (OperationVerb::Exists, "exists"),
    (OperationVerb::Aggregate, "aggregate"),
    (OperationVerb::Create, "create"),
    (OperationVerb::CreateMany, "createMany"),
    (OperationVerb::Update, "update"),
    (OperationVerb::UpdateMany, "updateMany"),
    (OperationVerb::Save, "save"),
    (OperationVerb::Upsert, "upsert"),
    (OperationVerb::Delete, "delete"),
    (OperationVerb::DeleteMany, "deleteMany"),
    (OperationVerb::Subscribe(ChangeKind::Created), "created"),
    (OperationVerb::Subscribe(ChangeKind::Updated), "updated"),
    (OperationVerb::Subscribe(ChangeKind::Deleted), "deleted"),
    (OperationVerb::SubscribeAll, "changed"),
];
