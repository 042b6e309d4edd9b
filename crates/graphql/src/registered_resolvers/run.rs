//! Runs registered resolvers level by level, those of one level concurrently, and loads records in batches.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use apollo_compiler::executable::OperationType;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::sync::Semaphore;

use trefoil_engine::{
    Condition, EngineRequest, Listing, Operation, Outcome, OwnedRow, PreparedSelection, ResolverCall,
    ResolverFn, ResolverResult, Row, RowSink,
};
use trefoil_model::error::{Error, Result, panic_text};
use trefoil_model::values::json_text;
use trefoil_model::{RecordId, Value};

use crate::execute::abstract_results::AbstractResults;
use crate::execute::execution::{OperationExecution, StoreOperations};
use crate::execute::pending_root::PendingRoot;
use crate::execute::response::ResponseBuilder;
use crate::plan::groups::related_count;
use crate::plan::input::FieldArguments;
use crate::plan::roots::{RootAction, RootShape, root_kind};
use crate::plan::shape::{FieldShape, FieldSource, ObjectShape, ValueSlot};
use crate::registered_resolvers::deferred::{DeferredValue, ObjectBatch, PendingObject};
use crate::registered_resolvers::resolved_tree::{NodeSource, ResolvedNode, ResolvedTree};
use crate::registered_resolvers::rows::RootRowCollector;

/// Maximum number of resolvers of one request that run concurrently.
const MAX_CONCURRENT_RESOLVERS: usize = 32;

/// The execution of an operation that uses registered resolvers.
pub struct ResolverExecution<'a> {
    execution: &'a OperationExecution<'a>,
    permits: Semaphore,
}

impl<'a> ResolverExecution<'a> {
    pub fn new(execution: &'a OperationExecution<'a>) -> ResolverExecution<'a> {
        ResolverExecution { execution, permits: Semaphore::new(MAX_CONCURRENT_RESOLVERS) }
    }

    /// Runs the root fields of a query concurrently, those of a mutation in order; adjacent store operations of a
    /// mutation are one call to the engine.
    pub async fn run(&self, mut builder: ResponseBuilder) -> Result<ResponseBuilder> {
        let count = self.execution.plan.roots.len();
        if self.execution.plan.kind != OperationType::Mutation {
            self.run_group(&mut builder, &(0..count).collect::<Vec<_>>()).await?;
            return Ok(builder);
        }
        let mut next = 0;
        while next < count {
            let mut end = next + 1;
            while !self.is_registered(next) && end < count && !self.is_registered(end) {
                end += 1;
            }
            self.run_group(&mut builder, &(next..end).collect::<Vec<_>>()).await?;
            next = end;
        }
        Ok(builder)
    }

    fn is_registered(&self, position: usize) -> bool {
        matches!(self.execution.plan.roots[position].action, RootAction::Registered { .. })
    }

    async fn run_group(&self, builder: &mut ResponseBuilder, positions: &[usize]) -> Result<()> {
        let (records, resolved) = futures_util::join!(
            self.read_records(positions),
            join_all(positions.iter().map(|i| self.run_root_resolver(*i)))
        );
        let (pending, abstracts, records) = records?;
        for (pending, (rows, outcome)) in pending.iter().zip(&records) {
            // Without a record there is no payload, so its resolvers have nothing to say.
            if outcome.as_ref().is_ok_and(|outcome| !outcome.is_missing()) {
                self.resolve_wrapper(builder, pending.root_position, rows).await;
            }
        }
        builder.set_pending(pending, abstracts);
        for (number, (rows, outcome)) in records.into_iter().enumerate() {
            for (row, nodes) in rows {
                if builder.is_abstract(number) {
                    builder.add_abstract(number, row, nodes);
                    continue;
                }
                builder.write_record(number, &row, &mut |writer, object, path| match nodes
                    .iter()
                    .find(|node| Arc::ptr_eq(&node.shape, object))
                {
                    Some(node) => writer.write_node(node, path),
                    None => writer.write_row(object, &row, path),
                });
            }
            builder.finish_plan(number, outcome);
        }
        for (position, tree) in positions.iter().zip(resolved) {
            if let (Some(tree), RootAction::Registered { slot, .. }) =
                (tree, &self.execution.plan.roots[*position].action)
            {
                builder.write_root(*position, |writer, _, at| writer.write_tree(slot, &tree, at));
            }
        }
        Ok(())
    }

    async fn run_root_resolver(&self, position: usize) -> Option<ResolvedTree> {
        let RootAction::Registered { resolver, arguments, slot } =
            &self.execution.plan.roots[position].action
        else {
            return None;
        };
        let OperationExecution { engine, plan, .. } = self.execution;
        let name = &plan.roots[position].label.name;
        let resolved = match engine.check_call(root_kind(plan.kind), name) {
            Ok(()) => self.call_resolver(resolver, Value::Null, arguments).await,
            Err(error) => Err(error),
        };
        self.complete_values(slot, vec![resolved]).await.pop()
    }

    /// Runs the store operations. Each record is returned with a node for each shape in which it is written.
    async fn read_records(
        &self,
        positions: &[usize],
    ) -> Result<(Vec<PendingRoot>, Vec<AbstractResults>, Vec<ResolvedRecords>)> {
        let StoreOperations { operations, pending, abstracts } =
            self.execution.store_operations(|position| positions.contains(&position));
        if operations.is_empty() {
            return Ok((pending, abstracts, Vec::new()));
        }
        let sink = Box::new(RootRowCollector::new(&operations));
        let finished = self.execution.engine.run(operations, EngineRequest::new(sink)).await?;
        let collector = finished.into_sink::<RootRowCollector>()?;
        let mut all = Vec::new();
        for (pending, collected) in pending.iter().zip(collector.operations) {
            let shapes = self.record_shapes(pending);
            let columns = shapes.iter().map(|shape| {
                self.resolve_objects(shape, collected.rows.iter().cloned().map(NodeSource::Row).collect())
            });
            let mut columns: Vec<_> = join_all(columns).await.into_iter().map(Vec::into_iter).collect();
            let rows = collected.rows.into_iter().map(|row| {
                let nodes = columns.iter_mut().filter_map(Iterator::next).collect();
                (row, nodes)
            });
            let rows = rows.collect();
            all.push((
                rows,
                collected.outcome.unwrap_or_else(|| Err(Error::internal("the store returned no outcome"))),
            ));
        }
        Ok((pending, abstracts, all))
    }

    /// Calls the resolvers of the type around the records of a root field. Those of edges and payloads get the record as
    /// their parent.
    async fn resolve_wrapper(
        &self,
        builder: &mut ResponseBuilder,
        position: usize,
        rows: &[(OwnedRow, Vec<ResolvedNode>)],
    ) {
        let RootAction::Builtin(root) = &self.execution.plan.roots[position].action else { return };
        let (once, for_each, parent) = match &root.shape {
            RootShape::Connection(connection) => {
                let (of_connection, of_edges) = connection.resolver_fields();
                (of_connection, of_edges, &connection.parent)
            }
            RootShape::Payload(payload) => (Vec::new(), payload.resolver_fields(), &payload.parent),
            RootShape::Record(_)
            | RootShape::List(..)
            | RootShape::Id { .. }
            | RootShape::Boolean
            | RootShape::Nothing
            | RootShape::Count { .. }
            | RootShape::Groups(_) => return,
        };
        let sources = || rows.iter().map(|(row, _)| NodeSource::Row(row.clone()));
        let parents: Vec<Value> = match parent {
            // A write to many records has a payload, but no record of its own.
            Some(_) if rows.is_empty() && matches!(root.shape, RootShape::Payload(_)) => vec![Value::Null],
            Some(shape) => sources().map(|source| self.parent_value(shape, &source)).collect(),
            None => Vec::new(),
        };
        let fields = once.into_iter().map(|field| (field, vec![Value::Null]));
        for (field, parents) in fields.chain(for_each.into_iter().map(|field| (field, parents.clone()))) {
            let trees = self.call_for_each(&field, parents).await;
            builder.add_resolved(field, trees);
        }
    }

    /// The shapes in which the records of a root field are written.
    fn record_shapes(&self, pending: &PendingRoot) -> Vec<Arc<ObjectShape>> {
        let root = match &self.execution.plan.roots[pending.root_position].action {
            RootAction::Builtin(root) => root,
            RootAction::Abstract(root) => return root.members[pending.member].record_shapes(),
            RootAction::Typename(_)
            | RootAction::Introspection { .. }
            | RootAction::Registered { .. }
            | RootAction::Missing(_) => return Vec::new(),
        };
        match &root.shape {
            RootShape::Record(object) | RootShape::List(_, object) => vec![object.clone()],
            RootShape::Connection(connection) => connection.node_shapes(),
            RootShape::Payload(payload) => payload.record_shapes(),
            RootShape::Id { .. }
            | RootShape::Boolean
            | RootShape::Nothing
            | RootShape::Count { .. }
            | RootShape::Groups(_) => Vec::new(),
        }
    }

    /// Calls the resolver of a field once for each parent.
    pub(super) async fn call_for_each(&self, field: &FieldShape, parents: Vec<Value>) -> Vec<ResolvedTree> {
        let FieldSource::Resolver { resolver, arguments } = &field.source else { return Vec::new() };
        let calls = parents.into_iter().map(|parent| self.call_resolver(resolver, parent, arguments));
        self.complete_values(&field.slot, join_all(calls).await).await
    }

    async fn call_resolver(
        &self,
        resolver: &ResolverFn,
        parent: Value,
        arguments: &FieldArguments,
    ) -> Result<ResolverResult> {
        let OperationExecution { engine, actor, variables, .. } = self.execution;
        let arguments = Value::Object(arguments.values_by_name(variables)?);
        engine.confirm_actor().await?;
        let _permit = self.permits.acquire().await.map_err(Error::internal)?;
        let call = ResolverCall { parent, arguments, actor: actor.clone(), engine: (*engine).clone() };
        let resolver = resolver.clone();
        let resolving = async move { resolver(call).await };
        match AssertUnwindSafe(resolving).catch_unwind().await {
            Ok(resolved) => resolved,
            Err(panic) => Err(Error::internal(format!("a resolver panicked: {}", panic_text(&panic)))),
        }
    }

    /// Resolves the fields of many objects of one shape.
    pub(super) fn resolve_objects<'s>(
        &'s self,
        shape: &'s Arc<ObjectShape>,
        sources: Vec<NodeSource>,
    ) -> BoxFuture<'s, Vec<ResolvedNode>> {
        Box::pin(async move {
            let with_resolvers = shape
                .fields
                .iter()
                .enumerate()
                .filter(|(_, field)| shape.uses_resolvers && field.uses_resolvers());
            let columns = with_resolvers.map(|(position, field)| {
                let sources = &sources;
                async move { (position, self.resolve_field(shape, field, sources).await) }
            });
            let columns = join_all(columns).await;
            let mut nodes: Vec<ResolvedNode> = sources
                .into_iter()
                .map(|source| ResolvedNode { shape: shape.clone(), source, resolved: Vec::new() })
                .collect();
            for (position, trees) in columns {
                for (node, tree) in nodes.iter_mut().zip(trees) {
                    node.resolved.push((position, tree));
                }
            }
            nodes
        })
    }

    /// Resolves one field of many objects.
    async fn resolve_field(
        &self,
        shape: &ObjectShape,
        field: &FieldShape,
        sources: &[NodeSource],
    ) -> Vec<ResolvedTree> {
        let resolved = match &field.source {
            FieldSource::Resolver { resolver, arguments } => {
                let calls = sources.iter().map(|source| {
                    let parent = self.parent_value(shape, source);
                    self.call_resolver(resolver, parent, arguments)
                });
                join_all(calls).await
            }
            FieldSource::Relation(position) => return self.resolve_children(field, *position, sources).await,
            FieldSource::Connection(related) => {
                return self.resolve_connections(field, related, sources).await;
            }
            FieldSource::Column { position, value_type } => {
                let values = sources.iter().map(|source| match source {
                    NodeSource::Row(row) => json_text::cell_to_value(value_type, row.cell(*position)),
                    NodeSource::Value(value) => property_value(value, &field.label.name),
                });
                values.map(|value| Ok(ResolverResult::Value(value))).collect()
            }
            FieldSource::RelatedCount(position) => {
                let values = sources.iter().map(|source| match source {
                    NodeSource::Row(row) => related_count(row, *position),
                    NodeSource::Value(value) => property_value(value, &field.label.name),
                });
                values.map(|value| Ok(ResolverResult::Value(value))).collect()
            }
            FieldSource::RelatedGroups { position, groups, keys } => {
                let values = sources.iter().map(|source| match source {
                    NodeSource::Row(row) => groups.related_value(keys, row, *position),
                    NodeSource::Value(value) => property_value(value, &field.label.name),
                });
                values.map(|value| Ok(ResolverResult::Value(value))).collect()
            }
            FieldSource::Property
            | FieldSource::GlobalId { .. }
            | FieldSource::Typename(_)
            | FieldSource::Introspection(_)
            | FieldSource::Missing(_)
            | FieldSource::Invalid(_) => {
                let values = sources.iter().map(|source| match source {
                    NodeSource::Row(_) => Value::Null,
                    NodeSource::Value(value) => property_value(value, &field.label.name),
                });
                values.map(|value| Ok(ResolverResult::Value(value))).collect()
            }
        };
        self.complete_values(&field.slot, resolved).await
    }

    pub(super) fn parent_value(&self, shape: &ObjectShape, source: &NodeSource) -> Value {
        match (source, shape.record) {
            (NodeSource::Value(value), _) => value.clone(),
            (NodeSource::Row(_), None) => Value::Null,
            (NodeSource::Row(row), Some(record)) => {
                let record = self.execution.engine.model().record(record);
                let fields = shape.parent_columns.iter().map(|(position, id)| {
                    let field = record.field(*id);
                    (field.input_name.clone(), field.cell_value(row.cell(*position)))
                });
                Value::Object(fields.collect())
            }
        }
    }

    /// Resolves related records, which were read together with their parents.
    async fn resolve_children(
        &self,
        field: &FieldShape,
        position: usize,
        sources: &[NodeSource],
    ) -> Vec<ResolvedTree> {
        let mut batch = ObjectBatch::default();
        let values: Vec<DeferredValue> = sources
            .iter()
            .map(|source| match source {
                NodeSource::Value(value) => {
                    batch.add_value(&field.slot, property_value(value, &field.label.name))
                }
                NodeSource::Row(row) => batch.add_rows(&field.slot, &row.children[position]),
            })
            .collect();
        self.complete_deferred(batch, values).await
    }

    /// Completes resolver results for the type of `slot`.
    pub(super) async fn complete_values(
        &self,
        slot: &ValueSlot,
        resolved: Vec<Result<ResolverResult>>,
    ) -> Vec<ResolvedTree> {
        let mut batch = ObjectBatch::default();
        let values: Vec<DeferredValue> = resolved
            .into_iter()
            .map(|resolved| match resolved {
                Ok(resolved) => batch.add_resolved(slot, resolved),
                Err(error) => DeferredValue::Complete(ResolvedTree::Failed(error)),
            })
            .collect();
        self.complete_deferred(batch, values).await
    }

    /// Makes the objects of a batch, all of one shape together, and inserts them into the values.
    async fn complete_deferred(&self, batch: ObjectBatch, values: Vec<DeferredValue>) -> Vec<ResolvedTree> {
        let groups = batch.groups.into_iter().map(|(shape, objects)| self.resolve_pending(shape, objects));
        let mut objects: Vec<Vec<Option<ResolvedTree>>> = join_all(groups).await;
        values.into_iter().map(|value| value.into_tree(&mut objects)).collect()
    }

    async fn resolve_pending(
        &self,
        shape: Arc<ObjectShape>,
        objects: Vec<PendingObject>,
    ) -> Vec<Option<ResolvedTree>> {
        let ids: Vec<Value> =
            objects.iter().filter_map(PendingObject::record_id).map(RecordId::to_value).collect();
        let records = match self.load_records(&shape, ids).await {
            Ok(records) => records,
            Err(error) => {
                return objects.iter().map(|_| Some(ResolvedTree::Failed(copy_error(&error)))).collect();
            }
        };
        // A record that does not exist is null; the others are resolved together.
        let sources: Vec<Option<NodeSource>> = objects
            .into_iter()
            .map(|object| match object {
                PendingObject::Record(id) => records.get(&id).cloned().map(NodeSource::Row),
                PendingObject::Row(row) => Some(NodeSource::Row(row)),
                PendingObject::Value(value) => Some(NodeSource::Value(value)),
            })
            .collect();
        let found: Vec<bool> = sources.iter().map(Option::is_some).collect();
        let mut nodes =
            self.resolve_objects(&shape, sources.into_iter().flatten().collect()).await.into_iter();
        let trees = found.into_iter().map(|found| match found {
            true => nodes.next().map(|node| ResolvedTree::Node(Box::new(node))),
            false => Some(ResolvedTree::Value(Value::Null)),
        });
        trees.collect()
    }

    async fn load_records(
        &self,
        shape: &ObjectShape,
        ids: Vec<Value>,
    ) -> Result<HashMap<RecordId, OwnedRow>> {
        let (Some(record), false) = (shape.record, ids.is_empty()) else { return Ok(HashMap::new()) };
        let engine = self.execution.engine;
        let id = engine.model().record(record).id_field();
        let value = Value::List(ids);
        let listing = Listing { conditions: vec![Condition::one_of(id, value)], ..Listing::default() };
        let selection = PreparedSelection::new(shape.reads.selection());
        let operation = Operation::List { record, listing, selection: selection.clone() };
        let collected = engine.collect(operation, selection).await?;
        let position = shape.reads.columns.iter().position(|column| *column == id);
        let position = position.ok_or_else(|| Error::internal("the id is read with every record"))?;
        let mut rows = HashMap::with_capacity(collected.rows.len());
        for row in collected.rows {
            if let Some(id) = RecordId::from_cell(row.cell(position)) {
                rows.insert(id, row);
            }
        }
        Ok(rows)
    }
}

/// The records of one operation, each with its nodes, and the outcome of the operation.
type ResolvedRecords = (Vec<(OwnedRow, Vec<ResolvedNode>)>, Result<Outcome>);

pub(super) fn property_value(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or(Value::Null)
}

/// A copy of an error, for several fields that fail together.
fn copy_error(error: &Error) -> Error {
    if let Some(cause) = error.cause() {
        return Error::Internal { cause: cause.clone() };
    }
    Error::Resolver { message: error.to_string(), code: error.code().to_owned() }
}
