//! Imports on PostgreSQL: one transaction on a pooled connection, with references checked at its end.
//!
//! A batch runs as a few pipelined statements. Only if the database refuses one of them is the batch halved,
//! repeatedly, to find the plan at fault.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};

use trefoil_engine::plan::PlanAction;
use trefoil_engine::{
    AuditOrigin, BulkTransaction, CancelFlag, DanglingReference, Outcome, PlainListAction,
    PlainListOperation, Plan, RowSink, StoreJob,
};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::{CellValue, Model, RecordId, RecordTypeId};

use crate::audit::origin_setting::with_origin;
use crate::migrate::MARK_SEEDED;
use crate::postgres::bulk_insert::{BulkInsert, selects_anything};
use crate::postgres::error::PostgresError;
use crate::postgres::run_job::run_plan;
use crate::postgres::session::{PostgresSession, internal_error, read_cell};
use crate::postgres::{PooledConnection, PostgresStore, execute_write, plain_lists};
use crate::statements::compile::Program;
use crate::statements::dangling_references::dangling_queries;
use crate::statements::dialect::Dialect;
use crate::statements::sql_parameter::SqlParameter;

/// No idle timeout, since the source of the batches may be slow, such as a pipe. Query plans are made when the tables
/// are still empty and kept until the last batch, so they must use indexes.
const BEGIN_BULK_TRANSACTION: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                     SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = off; \
                     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
                     SET CONSTRAINTS ALL DEFERRED";

/// PostgreSQL plans by the row count of the last vacuum, however many rows are inserted since. If that was about none,
/// such as after a killed import, the planner may choose a wrong index and scan all of it for each row.
const HAS_STALE_STATISTICS: &str =
    "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1) AND reltuples >= 0 AND reltuples < relpages";

/// An open import. Dropping it before the commit closes its connection and so rolls back.
pub struct PostgresBulkTransaction<'s> {
    store: &'s PostgresStore,
    model: Arc<Model>,
    /// `None` after the commit.
    connection: Option<PooledConnection>,
    cancel: CancelFlag,
    /// The number of batches of each record type so far.
    batch_counts: HashMap<RecordTypeId, u32>,
}

impl PostgresStore {
    pub(crate) async fn open_bulk_transaction(
        &self,
        model: Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> Result<Box<dyn BulkTransaction + '_>> {
        let connection = self.connections.acquire_pooled().await?;
        let transaction = PostgresBulkTransaction {
            store: self,
            model,
            connection: Some(connection),
            cancel: CancelFlag::default(),
            batch_counts: HashMap::new(),
        };
        transaction
            .session()?
            .execute_control(&with_origin(BEGIN_BULK_TRANSACTION, origin.as_ref()))
            .await
            .map_err(PostgresError::into_error)?;
        Ok(Box::new(transaction))
    }
}

impl PostgresBulkTransaction<'_> {
    fn session(&self) -> Result<PostgresSession<'_>> {
        let connection =
            self.connection.as_ref().ok_or_else(|| Error::internal("the bulk write has ended"))?;
        Ok(self.store.session_on(connection, &self.cancel))
    }

    async fn run_batch(&self, job: &mut StoreJob) -> Result<(), PostgresError> {
        let session = self.session()?;
        let mut pending = vec![Range { start: 0, end: job.plans.len() }];
        while let Some(range) = pending.pop() {
            if let Some(outcomes) = self.try_batch(session, &job.plans[range.clone()]).await? {
                for ((number, _), outcome) in job.plans[range].iter().zip(outcomes) {
                    job.sink.finish_plan(*number, Ok(outcome));
                }
            } else if range.len() > 1 {
                let middle = range.start + range.len() / 2;
                // A stack: the first half is pushed last.
                pending.extend([middle..range.end, range.start..middle]);
            } else {
                let (number, plan) = &job.plans[range.start];
                let (number, program) = (*number, self.store.program_for(&job.model, plan)?);
                session.execute_control("SAVEPOINT plan").await?;
                let outcome = run_plan(session, job, range.start, &program).await?;
                job.sink.finish_plan(number, outcome);
                session.execute_control("RELEASE plan").await?;
            }
        }
        Ok(())
    }

    /// The outcome of each plan if all of them ran as one batch; `None`, with nothing changed, if that is not possible.
    async fn try_batch(
        &self,
        session: PostgresSession<'_>,
        plans: &[(usize, Plan)],
    ) -> Result<Option<Vec<Outcome>>, PostgresError> {
        let plans: Vec<&Plan> = plans.iter().map(|(_, plan)| plan).collect();
        let Some(batch) = BatchWork::from_plans(self.store, &self.model, &plans)? else { return Ok(None) };
        session.execute_control("SAVEPOINT plan").await?;
        match batch.run(session, &self.model, &plans).await {
            Ok(outcomes) => {
                session.execute_control("RELEASE plan").await?;
                Ok(Some(outcomes))
            }
            Err(PostgresError::Plan(_) | PostgresError::Refused(_)) => {
                session.execute_control("ROLLBACK TO plan; RELEASE plan").await?;
                Ok(None)
            }
            Err(
                error @ (PostgresError::Retryable(_)
                | PostgresError::ConnectionLost(_)
                | PostgresError::Locked(_)
                | PostgresError::Store(_)),
            ) => Err(error),
        }
    }

    /// Analyzes the written tables with stale statistics each time their number of batches has doubled. Tables that are
    /// locked are left for the next time.
    async fn analyze_tables(&mut self, plans: &[(usize, Plan)]) -> Result<(), PostgresError> {
        let written: BTreeSet<RecordTypeId> =
            plans.iter().filter_map(|(_, plan)| written_type(plan)).collect();
        for record in written {
            let batches = self.batch_counts.entry(record).or_default();
            *batches += 1;
            if !batches.is_power_of_two() {
                continue;
            }
            let session = self.session()?;
            for table in written_tables(&self.model, record) {
                let name = Dialect::Postgres.quote_name(table);
                if session
                    .query_integer(HAS_STALE_STATISTICS, &[SqlParameter::Cell(CellValue::Text(&name))])
                    .await?
                    == Some(1)
                {
                    session.execute_control(&format!("ANALYZE (SKIP_LOCKED) {name}")).await?;
                }
            }
        }
        Ok(())
    }

    async fn find_dangling_references(
        &self,
        record: RecordTypeId,
        ids: &[RecordId],
    ) -> Result<Vec<DanglingReference>, PostgresError> {
        let session = self.session()?;
        let mut found = Vec::new();
        for query in dangling_queries(Dialect::Postgres, &self.model, record) {
            let mut rows = session.query(&query.sql, &[SqlParameter::ids(ids)]).await?;
            while let Some(row) = rows.next_row().await? {
                let [id, missing_id] = [0, 1].map(|column| RecordId::from_cell(read_cell(&row, column)));
                if let (Some(id), Some(missing_id)) = (id, missing_id) {
                    found.push(DanglingReference { id, field: query.field, missing_id });
                }
            }
        }
        Ok(found)
    }

    async fn commit_transaction(&mut self) -> Result<(), PostgresError> {
        let session = self.session()?;
        session.execute_control("SET CONSTRAINTS ALL IMMEDIATE").await.map_err(dangling_reference_error)?;
        // A store with imported records must not be seeded.
        session.execute_control(MARK_SEEDED).await?;
        session.execute_control("COMMIT").await.map_err(PostgresError::outcome_unknown_if_lost)?;
        if let Some(connection) = self.connection.take() {
            connection.release();
        }
        self.store.signal_commit();
        Ok(())
    }
}

/// A batch that runs as a few statements.
enum BatchWork<'p> {
    Append(&'p str, Vec<&'p str>),
    Records { inserts: Option<BulkInsert<'p>>, updates: Vec<(&'p Plan, Arc<Program>)> },
}

impl<'p> BatchWork<'p> {
    /// `None` if the plans are of several kinds, need more than one statement each, or select what they wrote.
    fn from_plans(
        store: &PostgresStore,
        model: &Arc<Model>,
        plans: &[&'p Plan],
    ) -> Result<Option<BatchWork<'p>>> {
        if let Some((list, values)) = list_appends(plans) {
            return Ok(Some(BatchWork::Append(list, values)));
        }
        let (creates, updates): (Vec<&Plan>, Vec<&Plan>) = plans.iter().partition(|plan| is_create(plan));
        let mut compiled = Vec::with_capacity(updates.len());
        for plan in updates {
            let program = store.program_for(model, plan)?;
            let selects_nothing =
                matches!(&plan.action, PlanAction::Update { selection, .. } if !selects_anything(selection));
            if !selects_nothing || execute_write::single_statement(&program).is_none() {
                return Ok(None);
            }
            compiled.push((plan, program));
        }
        let inserts = BulkInsert::from_plans(&creates);
        let is_batch = inserts.is_some() || (creates.is_empty() && !compiled.is_empty());
        Ok(is_batch.then_some(BatchWork::Records { inserts, updates: compiled }))
    }

    /// Inserts first, then updates. If that succeeds, the order of the plans would too: an import updates only records
    /// that existed before the batch, an early insert can take a unique value but not free one, and references are
    /// checked at the end. If it fails, the batch is halved until it runs in the order of the plans.
    async fn run(
        &self,
        session: PostgresSession<'_>,
        model: &Model,
        plans: &[&Plan],
    ) -> Result<Vec<Outcome>, PostgresError> {
        match self {
            BatchWork::Append(list, values) => {
                let outcome = plain_lists::append_values(session, list, values).await?;
                Ok(vec![outcome; plans.len()])
            }
            BatchWork::Records { inserts, updates } => {
                let created = match inserts {
                    Some(inserts) => run_inserts(session, model, inserts).await?,
                    None => Vec::new(),
                };
                let (mut created, mut updated) =
                    (created.into_iter(), run_updates(session, updates).await?.into_iter());
                let outcome = |plan: &&Plan| if is_create(plan) { created.next() } else { updated.next() };
                let outcomes: Option<Vec<Outcome>> = plans.iter().map(outcome).collect();
                outcomes.ok_or_else(|| internal_error("the database returned no outcome for a plan"))
            }
        }
    }
}

/// The record type that a plan creates or updates.
fn written_type(plan: &Plan) -> Option<RecordTypeId> {
    let (PlanAction::Create { record, .. } | PlanAction::Update { record, .. }) = plan.action else {
        return None;
    };
    Some(record)
}

/// The tables that are written with a record of this type.
fn written_tables(model: &Model, record: RecordTypeId) -> impl Iterator<Item = &str> {
    let record = model.record(record);
    let links = record.fields.iter().filter_map(|field| Some(field.kind.link()?.table.as_str()));
    std::iter::once(record.table.as_str()).chain(links)
}

fn is_create(plan: &Plan) -> bool {
    matches!(plan.action, PlanAction::Create { .. })
}

/// Runs the updates as pipelined statements, one each.
async fn run_updates(
    session: PostgresSession<'_>,
    updates: &[(&Plan, Arc<Program>)],
) -> Result<Vec<Outcome>, PostgresError> {
    for sql in updates.iter().filter_map(|(_, program)| execute_write::single_statement(program)) {
        session.prepare(sql).await?;
    }
    let run_update = async |(plan, program): &(&Plan, Arc<Program>)| {
        execute_write::execute_write(session, plan, program, &mut |_| ()).await
    };
    join_all(updates.iter().map(run_update)).await.into_iter().collect()
}

/// The list and the values if all plans append to the same plain list.
fn list_appends<'p>(plans: &[&'p Plan]) -> Option<(&'p str, Vec<&'p str>)> {
    let mut appends = plans.iter().map(|plan| match &plan.action {
        PlanAction::PlainList(PlainListOperation {
            list,
            action: PlainListAction::Append { value, expected: None },
        }) => Some((&**list, value.as_str())),
        PlanAction::PlainList(_)
        | PlanAction::Get { .. }
        | PlanAction::List { .. }
        | PlanAction::Create { .. }
        | PlanAction::Update { .. }
        | PlanAction::Delete { .. }
        | PlanAction::CreateMany(_)
        | PlanAction::UpdateMany { .. }
        | PlanAction::DeleteMany { .. }
        | PlanAction::Upsert { .. }
        | PlanAction::Nested(_)
        | PlanAction::ReadImage { .. }
        | PlanAction::SeeImages { .. }
        | PlanAction::Aggregate(_) => None,
    });
    let (list, first) = appends.next()??;
    let mut values = vec![first];
    for append in appends {
        let (other, value) = append?;
        if other != list {
            return None;
        }
        values.push(value);
    }
    Some((list, values))
}

async fn run_inserts(
    session: PostgresSession<'_>,
    model: &Model,
    inserts: &BulkInsert<'_>,
) -> Result<Vec<Outcome>, PostgresError> {
    let owner = model.record(inserts.record);
    if let Some((sql, greatest)) = inserts.sequence_statement(owner) {
        session.query_integer(&sql, &[SqlParameter::integer(greatest)]).await?;
    }
    let mut created = Vec::with_capacity(inserts.rows.len());
    for chunk in inserts.statement_rows() {
        let mut rows = session
            .query(&inserts.insert_statement(owner, chunk.len()), &BulkInsert::row_parameters(chunk))
            .await?;
        while let Some(row) = rows.next_row().await? {
            let (id, version) = (RecordId::from_cell(read_cell(&row, 0)), read_cell(&row, 1).to_i64());
            let (Some(id), Some(version)) = (id, version) else {
                return Err(internal_error("a record has no readable id or version"));
            };
            created.push((id, version));
        }
    }
    if created.len() != inserts.rows.len() {
        return Err(internal_error("an insert returned a different number of rows than expected"));
    }
    for (sql, own, others) in inserts.link_statements(model, created.iter().map(|(id, _)| id)) {
        session.execute(&sql, &[SqlParameter::Keys(own), SqlParameter::Keys(others)]).await?;
    }
    Ok(created.into_iter().map(|(id, version)| Outcome::Created { id, version }).collect())
}

fn dangling_reference_error(error: PostgresError) -> PostgresError {
    match error {
        PostgresError::Refused(error) if error.code().is_some_and(|code| code.code() == "23503") => {
            let message = "a reference refers to a record that does not exist".to_owned();
            PostgresError::Plan(Error::Invalid(vec![Violation {
                path: Vec::new(),
                code: "REFERENCE",
                message,
            }]))
        }
        error @ (PostgresError::Plan(_)
        | PostgresError::Refused(_)
        | PostgresError::Retryable(_)
        | PostgresError::ConnectionLost(_)
        | PostgresError::Locked(_)
        | PostgresError::Store(_)) => error,
    }
}

impl BulkTransaction for PostgresBulkTransaction<'_> {
    fn run(&mut self, mut job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>> {
        Box::pin(async move {
            self.run_batch(&mut job).await.map_err(PostgresError::into_error)?;
            self.analyze_tables(&job.plans).await.map_err(PostgresError::into_error)?;
            Ok(job.sink)
        })
    }

    fn dangling_references(
        &mut self,
        record: RecordTypeId,
        ids: Vec<RecordId>,
    ) -> BoxFuture<'_, Result<Vec<DanglingReference>>> {
        Box::pin(async move {
            self.find_dangling_references(record, &ids).await.map_err(PostgresError::into_error)
        })
    }

    fn commit(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { self.commit_transaction().await.map_err(PostgresError::into_error) })
    }
}
