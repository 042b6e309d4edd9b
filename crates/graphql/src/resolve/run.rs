//! Answers fields through registered resolvers: level by level, those of one level together, records loaded in batches.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use apollo_compiler::executable::OperationType;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::sync::Semaphore;

use crate::execute::response::{Answering, Running};
use crate::execute::run::Execution;
use crate::plan::input::Arguments;
use crate::plan::roots::{Does, Shape};
use crate::plan::shape::{Field, From, Object, Slot};
use crate::resolve::deferred::{Batch, Draft, Wanted};
use crate::resolve::rows::Gather;
use crate::resolve::tree::{Node, Source, Tree};
use trefoil_engine::{
    Answer, Call, Condition, Done, Listing, Op, Operation, OwnedRow, Request, Resolved, Resolver, Row,
    answer_as,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::values::json_text;
use trefoil_model::{Cell, Value};

/// Resolvers of one request that run at the same time.
const TOGETHER: usize = 32;

/// An execution that registered resolvers have a part in.
pub struct Resolving<'a> {
    execution: &'a Execution<'a>,
    permits: Semaphore,
}

impl<'a> Resolving<'a> {
    pub fn new(execution: &'a Execution<'a>) -> Resolving<'a> {
        Resolving { execution, permits: Semaphore::new(TOGETHER) }
    }

    /// Queries are answered at once; the root fields of a mutation one after the other, the store's
    /// neighbours in one call.
    pub async fn run(&self, mut answering: Answering) -> Result<Answering> {
        let count = self.execution.plan.roots.len();
        if self.execution.plan.kind != OperationType::Mutation {
            self.group(&mut answering, &(0..count).collect::<Vec<_>>()).await?;
            return Ok(answering);
        }
        let mut next = 0;
        while next < count {
            let mut end = next + 1;
            while !self.is_registered(next) && end < count && !self.is_registered(end) {
                end += 1;
            }
            self.group(&mut answering, &(next..end).collect::<Vec<_>>()).await?;
            next = end;
        }
        Ok(answering)
    }

    fn is_registered(&self, position: usize) -> bool {
        matches!(self.execution.plan.roots[position].does, Does::Registered { .. })
    }

    async fn group(&self, answering: &mut Answering, positions: &[usize]) -> Result<()> {
        let (gathered, resolved) = futures_util::join!(
            self.gather(positions),
            join_all(positions.iter().map(|i| self.registered(*i)))
        );
        let (running, gathered) = gathered?;
        answering.expect(running);
        for (number, (rows, outcome)) in gathered.into_iter().enumerate() {
            for (row, nodes) in rows {
                answering.record(number, &row, &mut |writer, object, path| match nodes
                    .iter()
                    .find(|node| Arc::ptr_eq(&node.shape, object))
                {
                    Some(node) => writer.node(node, path),
                    None => writer.row(object, &row, path),
                });
            }
            answering.done(number, outcome);
        }
        for (position, tree) in positions.iter().zip(resolved) {
            if let (Some(tree), Does::Registered { slot, .. }) =
                (tree, &self.execution.plan.roots[*position].does)
            {
                answering.root(*position, |writer, _, at| writer.tree(slot, &tree, at));
            }
        }
        Ok(())
    }

    async fn registered(&self, position: usize) -> Option<Tree> {
        let Does::Registered { resolver, arguments, slot } = &self.execution.plan.roots[position].does else {
            return None;
        };
        let resolved = self.call(resolver, Value::Null, arguments).await;
        self.complete(slot, vec![resolved]).await.pop()
    }

    /// Runs the store's part; each record comes with a node for each shape it is shown in.
    async fn gather(&self, positions: &[usize]) -> Result<(Vec<Running>, Vec<Gathered>)> {
        let (operations, running) = self.execution.operations(|position| positions.contains(&position));
        if operations.is_empty() {
            return Ok((running, Vec::new()));
        }
        let answer = Box::new(Gather::new(&operations));
        let done = match self.execution.engine.run(operations, Request::new(answer)).await? {
            Done::Answered(answer) => answer_as::<Gather>(answer)?,
            Done::Replayed(_) => return Err(Error::internal("a request without a key was replayed")),
        };
        let mut all = Vec::new();
        for (running, collected) in running.iter().zip(done.operations) {
            let shapes = self.shapes(running.root());
            let columns = shapes
                .iter()
                .map(|shape| self.objects(shape, collected.rows.iter().cloned().map(Source::Row).collect()));
            let mut columns: Vec<_> = join_all(columns).await.into_iter().map(Vec::into_iter).collect();
            let rows = collected.rows.into_iter().map(|row| {
                let nodes = columns.iter_mut().filter_map(Iterator::next).collect();
                (row, nodes)
            });
            let rows = rows.collect();
            all.push((
                rows,
                collected.outcome.unwrap_or_else(|| Err(Error::internal("no outcome was told"))),
            ));
        }
        Ok((running, all))
    }

    /// The shapes that the records of a root field are written in.
    fn shapes(&self, position: usize) -> Vec<Arc<Object>> {
        let Does::Builtin(root) = &self.execution.plan.roots[position].does else { return Vec::new() };
        match &root.gives {
            Shape::Record(object) | Shape::List(_, object) => vec![object.clone()],
            Shape::Connection(connection) => connection.node_shapes(),
            Shape::Id | Shape::Boolean => Vec::new(),
        }
    }

    async fn call(&self, resolver: &Resolver, parent: Value, arguments: &Arguments) -> Result<Resolved> {
        let Execution { engine, actor, variables, .. } = self.execution;
        let arguments = Value::Object(arguments.by_name(variables)?);
        let _permit = self.permits.acquire().await.map_err(Error::internal)?;
        let call = Call { parent, arguments, actor: actor.clone(), engine: (*engine).clone() };
        let resolver = resolver.clone();
        let running = async move { resolver(call).await };
        match AssertUnwindSafe(running).catch_unwind().await {
            Ok(resolved) => resolved,
            Err(panic) => Err(Error::internal(format!("a resolver panicked: {}", words(&panic)))),
        }
    }

    /// Nodes for many objects of one shape.
    fn objects<'s>(&'s self, shape: &'s Arc<Object>, sources: Vec<Source>) -> BoxFuture<'s, Vec<Node>> {
        Box::pin(async move {
            let live = shape.fields.iter().enumerate().filter(|(_, field)| shape.live && field.is_live());
            let columns = live.map(|(position, field)| {
                let sources = &sources;
                async move { (position, self.field(shape, field, sources).await) }
            });
            let columns = join_all(columns).await;
            let mut nodes: Vec<Node> = sources
                .into_iter()
                .map(|source| Node { shape: shape.clone(), source, resolved: Vec::new() })
                .collect();
            for (position, trees) in columns {
                for (node, tree) in nodes.iter_mut().zip(trees) {
                    node.resolved.push((position, tree));
                }
            }
            nodes
        })
    }

    /// One field of many objects.
    async fn field(&self, shape: &Object, field: &Field, sources: &[Source]) -> Vec<Tree> {
        let resolved = match &field.from {
            From::Resolver { resolver, arguments } => {
                let calls = sources.iter().map(|source| {
                    let parent = self.parent(shape, source);
                    self.call(resolver, parent, arguments)
                });
                join_all(calls).await
            }
            From::Child(position) => return self.children(field, *position, sources).await,
            From::Column { position, kind } => {
                let values = sources.iter().map(|source| match source {
                    Source::Row(row) => json_text::value_of(kind, row.cell(*position)),
                    Source::Value(value) => property(value, &field.label.name),
                });
                values.map(|value| Ok(Resolved::Value(value))).collect()
            }
            From::Property
            | From::Typename(_)
            | From::Introspection(_)
            | From::Missing(_)
            | From::Refused(_) => {
                let values = sources.iter().map(|source| match source {
                    Source::Row(_) => Value::Null,
                    Source::Value(value) => property(value, &field.label.name),
                });
                values.map(|value| Ok(Resolved::Value(value))).collect()
            }
        };
        self.complete(&field.slot, resolved).await
    }

    fn parent(&self, shape: &Object, source: &Source) -> Value {
        match (source, shape.record) {
            (Source::Value(value), _) => value.clone(),
            (Source::Row(_), None) => Value::Null,
            (Source::Row(row), Some(record)) => {
                let record = self.execution.engine.model().record(record);
                let fields = shape.whole.iter().map(|(position, id)| {
                    let field = record.field(*id);
                    (field.input_name.clone(), json_text::value_of(&field.kind, row.cell(*position)))
                });
                Value::Object(fields.collect())
            }
        }
    }

    /// Related records that came with their parents.
    async fn children(&self, field: &Field, position: usize, sources: &[Source]) -> Vec<Tree> {
        let mut batch = Batch::default();
        let drafts: Vec<Draft> = sources
            .iter()
            .map(|source| match source {
                Source::Value(value) => batch.value(&field.slot, property(value, &field.label.name)),
                Source::Row(row) => batch.rows(&field.slot, &row.children[position]),
            })
            .collect();
        self.fill(batch, drafts).await
    }

    /// What resolvers gave, held against the place it is for.
    async fn complete(&self, slot: &Slot, resolved: Vec<Result<Resolved>>) -> Vec<Tree> {
        let mut batch = Batch::default();
        let drafts: Vec<Draft> = resolved
            .into_iter()
            .map(|resolved| match resolved {
                Ok(resolved) => batch.resolved(slot, resolved),
                Err(error) => Draft::Done(Tree::Failed(error)),
            })
            .collect();
        self.fill(batch, drafts).await
    }

    /// Makes the objects that drafts wait for, all of one shape at once.
    async fn fill(&self, batch: Batch, drafts: Vec<Draft>) -> Vec<Tree> {
        let groups = batch.groups.into_iter().map(|(shape, wanted)| self.wanted(shape, wanted));
        let mut made: Vec<Vec<Option<Tree>>> = join_all(groups).await;
        drafts.into_iter().map(|draft| draft.tree(&mut made)).collect()
    }

    async fn wanted(&self, shape: Arc<Object>, wanted: Vec<Wanted>) -> Vec<Option<Tree>> {
        let ids: Vec<i64> = wanted.iter().filter_map(Wanted::id).collect();
        let records = match self.load(&shape, ids).await {
            Ok(records) => records,
            Err(error) => return wanted.iter().map(|_| Some(Tree::Failed(again(&error)))).collect(),
        };
        // A record that does not exist is null; the others are resolved together.
        let sources: Vec<Option<Source>> = wanted
            .into_iter()
            .map(|wanted| match wanted {
                Wanted::Record(id) => records.get(&id).cloned().map(Source::Row),
                Wanted::Row(row) => Some(Source::Row(row)),
                Wanted::Value(value) => Some(Source::Value(value)),
            })
            .collect();
        let found: Vec<bool> = sources.iter().map(Option::is_some).collect();
        let mut nodes = self.objects(&shape, sources.into_iter().flatten().collect()).await.into_iter();
        let trees = found.into_iter().map(|found| match found {
            true => nodes.next().map(|node| Tree::Node(Box::new(node))),
            false => Some(Tree::Value(Value::Null)),
        });
        trees.collect()
    }

    async fn load(&self, shape: &Object, ids: Vec<i64>) -> Result<HashMap<i64, OwnedRow>> {
        let (Some(record), false) = (shape.record, ids.is_empty()) else { return Ok(HashMap::new()) };
        let engine = self.execution.engine;
        let id = engine.model().record(record).id_field();
        let value = Value::List(ids.into_iter().map(Value::Int).collect());
        let listing =
            Listing { conditions: vec![Condition { field: id, op: Op::In, value }], ..Listing::default() };
        let selection = Arc::new(shape.reads.selection());
        let operation = Operation::List { record, listing, selection: selection.clone() };
        let collected = engine.collect(operation, selection).await?;
        let position = shape.reads.columns.iter().position(|column| *column == id);
        let position = position.ok_or_else(|| Error::internal("the id is read with every record"))?;
        let mut rows = HashMap::with_capacity(collected.rows.len());
        for row in collected.rows {
            if let Cell::Int(id) = row.cell(position) {
                rows.insert(id, row);
            }
        }
        Ok(rows)
    }
}

/// The records of one operation, each with its nodes, and how it ended.
type Gathered = (Vec<(OwnedRow, Vec<Node>)>, Result<trefoil_engine::Outcome>);

fn property(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or(Value::Null)
}

/// One failure that several places share.
fn again(error: &Error) -> Error {
    if let Some(cause) = error.cause() {
        return Error::Internal { cause: cause.clone() };
    }
    Error::Resolver { message: error.to_string(), code: error.code().to_owned() }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
