//! Runs operations on records, without HTTP and without SQL.
//!
//! GraphQL, REST and the HTML pages build an [`Operation`]; [`Plan::prove`] validates it against the model, and a
//! [`Store`] runs the plan and passes rows to the caller's [`RowSink`]. The SQL crate implements the store for both
//! databases. The crate also binds root fields to operations and follows the log of changes for subscriptions.

// The engine, its input and its result.
mod engine;
mod operation;
pub mod plain_list;

// On whose behalf.
mod access;

// What of the schema is not told to an actor.
mod closed_schema;

// Validation: an operation becomes a plan.
pub mod cursor;
pub mod plan;

// The interface to the databases.
mod row;
mod store;

// Longer writes, and reads into owned values.
mod bulk_write;
mod owned_records;
mod transaction;

// What lists cost.
mod measure_relation_lengths;

// Root fields of the schema and their arguments.
mod abstract_operation;
pub mod arguments;
pub mod binding;
mod builtin_operation;
pub mod global_id;
pub mod list_window;
mod record_merge;

// Operations written as GraphQL documents.
pub mod abstract_query_text;
pub mod graphql_document;

// The change log, for subscriptions.
pub mod changes;

// Reloading the schema while requests run.
mod schema_swap_gate;

pub use crate::abstract_operation::{AbstractOperation, AbstractRequest};
pub use crate::access::{
    AccessExplanation, AccessQuestion, AccessView, AccountChange, AccountFacts, AccountStore, Actor,
    ActorIdentity, ActorPath, ActorRules, AllowedRecords, ApiKeyRecord, AskedWrites, AuditAction,
    AuditAuthor, AuditEntry, AuditFilter, AuditNote, AuditOrigin, AuditPosition, AuditStore, Authority,
    CredentialStore, CredentialUse, FieldView, FoldedRule, IdentityChanges, IdentityCheck, KeyAccount,
    KnownNetwork, LinkRecord, LoginColumns, OPERATOR_NAME, PartExplanation, PresumedIdentity,
    ProviderIdentity, RequestId, RuleExplainer, RuleExplanation, SessionRecord, StoredPassword, TypeView,
    account_actor, rule_values,
};
pub use crate::builtin_operation::{ArgumentRole, BuiltinOperation, OperationVerb, ResultShape};
pub use crate::bulk_write::{BulkStep, BulkWrite};
pub use crate::changes::{
    ChangeBatch, ChangeFeed, ChangeFilter, ChangeKind, ChangeLog, LogEpoch, RecordChange, RecordImage,
};
pub use crate::closed_schema::ClosedNames;
pub use crate::engine::{
    Engine, EngineRequest, ResolverBinding, ResolverCall, ResolverFn, ResolverRegistry, ResolverResult,
};
pub use crate::operation::{
    AggregateQuery, ChildSelection, Condition, CountMode, FieldComparison, FillValue, FilledField,
    GroupCondition, GroupKey, GroupMeasure, GroupOrder, ListSearch, ListSlice, Listing, MAX_CONDITION_DEPTH,
    MAX_WRITE_DEPTH, MeasureFunction, MissingFields, NestedWrite, Operation, OrderTarget, Outcome, RANK_NAME,
    RecordInput, ReferencePath, RelatedInput, Selection, SortKey, SortValue, ValuePath,
};
pub use crate::owned_records::OwnedRow;
pub use crate::plain_list::{PlainListAction, PlainListOperation, PlainListPosition};
pub use crate::plan::{ImportedRecord, Plan, PlanLimits, PreparedSelection, RelationLengths, RequestTime};
pub use crate::record_merge::{MergedCells, MergedOrder, RecordMerge};
pub use crate::row::{Row, RowSink};
pub use crate::schema_swap_gate::{ClosedGate, SchemaGate, SchemaLease};
pub use crate::store::{
    BegunTransaction, BulkTransaction, CancelFlag, DanglingReference, DataVersion, IdempotencyKey, JobResult,
    LogReadLimits, Store, StoreJob, StoreTransaction, downcast_sink,
};
pub use crate::transaction::{TransactionEnd, TransactionResult};
