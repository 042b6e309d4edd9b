//! A long write on PostgreSQL: one transaction on a connection of its own, with references looked at in the end.
//!
//! A batch goes in a few statements, sent one behind the other. Only when the database refuses one of them is the batch
//! halved, again and again, to find out which plan it was.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};

use crate::migrate::postgres::MARK_SEEDED;
use crate::postgres::bulk_insert::{BulkInsert, selects_anything};
use crate::postgres::error::PostgresError;
use crate::postgres::run_job::run_plan;
use crate::postgres::session::{PostgresSession, internal_error, read_cell};
use crate::postgres::{PooledConnection, PostgresStore, execute_write, plain_lists};
use crate::statements::compile::Program;
use crate::statements::dangling_references::dangling_queries;
use crate::statements::dialect::Dialect;
use crate::statements::select::SqlParameter;
use trefoil_engine::plan::PlanAction;
use trefoil_engine::{
    BulkTransaction, CancelFlag, DanglingReference, Outcome, PlainListAction, PlainListOperation, Plan,
    RowSink, StoreJob,
};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::{CellValue, FieldKind, Model, RecordTypeId};

/// Whoever brings the batches may be slow: a pipe that waits for a person. Tables that were empty when the first batch
/// came are not when the last does, and no plan is made anew meanwhile: each has to look things up by their keys.
const BEGIN_BULK_TRANSACTION: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                     SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = off; \
                     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
                     SET CONSTRAINTS ALL DEFERRED";

/// PostgreSQL takes a table for as empty as it was when it was last cleaned up, after an import that was killed perhaps,
/// however much comes into it: any index is then as good as the right one, and is walked from end to end for each row.
const HAS_STALE_STATISTICS: &str =
    "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1) AND reltuples >= 0 AND reltuples < relpages";

/// Dropped before its commit, its connection is closed and so nothing of it happened.
pub struct PostgresBulkTransaction<'s> {
    store: &'s PostgresStore,
    model: Arc<Model>,
    /// `None` once it is over.
    connection: Option<PooledConnection>,
    cancel: CancelFlag,
    /// How many batches of each type there were.
    batch_counts: HashMap<RecordTypeId, u32>,
}

impl PostgresStore {
    pub(crate) async fn open_bulk_transaction(
        &self,
        model: Arc<Model>,
    ) -> Result<Box<dyn BulkTransaction + '_>> {
        let own = self.connections.acquire_pooled().await?;
        let long = PostgresBulkTransaction {
            store: self,
            model,
            connection: Some(own),
            cancel: CancelFlag::default(),
            batch_counts: HashMap::new(),
        };
        long.session()?.execute_control(BEGIN_BULK_TRANSACTION).await.map_err(PostgresError::into_error)?;
        Ok(Box::new(long))
    }
}

impl PostgresBulkTransaction<'_> {
    fn session(&self) -> Result<PostgresSession<'_>> {
        let own = self.connection.as_ref().ok_or_else(|| Error::internal("the long write is over"))?;
        Ok(self.store.session_on(own, &self.cancel))
    }

    async fn run_batch(&self, job: &mut StoreJob) -> Result<(), PostgresError> {
        let session = self.session()?;
        let mut waiting = vec![Range { start: 0, end: job.plans.len() }];
        while let Some(some) = waiting.pop() {
            if let Some(outcomes) = self.try_batch(session, &job.plans[some.clone()]).await? {
                for ((number, _), outcome) in job.plans[some].iter().zip(outcomes) {
                    job.sink.finish_plan(*number, Ok(outcome));
                }
            } else if some.len() > 1 {
                let middle = some.start + some.len() / 2;
                // The last comes first out.
                waiting.extend([middle..some.end, some.start..middle]);
            } else {
                let (number, plan) = &job.plans[some.start];
                let (number, program) = (*number, self.store.program_for(&job.model, plan)?);
                session.execute_control("SAVEPOINT plan").await?;
                let outcome = run_plan(session, job, some.start, &program).await?;
                job.sink.finish_plan(number, outcome);
                session.execute_control("RELEASE plan").await?;
            }
        }
        Ok(())
    }

    /// How each plan ended, where all of them go together and none was refused; otherwise nothing happened.
    async fn try_batch(
        &self,
        session: PostgresSession<'_>,
        plans: &[(usize, Plan)],
    ) -> Result<Option<Vec<Outcome>>, PostgresError> {
        let plans: Vec<&Plan> = plans.iter().map(|(_, plan)| plan).collect();
        let Some(work) = BatchWork::from_plans(self.store, &self.model, &plans)? else { return Ok(None) };
        session.execute_control("SAVEPOINT plan").await?;
        match work.run(session, &self.model, &plans).await {
            Ok(outcomes) => {
                session.execute_control("RELEASE plan").await?;
                Ok(Some(outcomes))
            }
            Err(PostgresError::Plan(_) | PostgresError::Refused(_)) => {
                session.execute_control("ROLLBACK TO plan; RELEASE plan").await?;
                Ok(None)
            }
            Err(
                fault @ (PostgresError::Retryable(_)
                | PostgresError::ConnectionLost(_)
                | PostgresError::Locked(_)
                | PostgresError::Store(_)),
            ) => Err(fault),
        }
    }

    /// Has the tables of what came looked at anew, as often as there is twice as much as before, where it is needed. Where
    /// somebody else is at it, the next time.
    async fn analyze_tables(&mut self, plans: &[(usize, Plan)]) -> Result<(), PostgresError> {
        let came: BTreeSet<RecordTypeId> = plans.iter().filter_map(|(_, plan)| written_type(plan)).collect();
        for record in came {
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
        ids: &[i64],
    ) -> Result<Vec<DanglingReference>, PostgresError> {
        let session = self.session()?;
        let mut found = Vec::new();
        for question in dangling_queries(Dialect::Postgres, &self.model, record) {
            let mut rows = session.query(&question.sql, &[SqlParameter::Integers(ids)]).await?;
            while let Some(row) = rows.next_row().await? {
                if let (Some(id), Some(missing)) = (read_cell(&row, 0).to_i64(), read_cell(&row, 1).to_i64())
                {
                    found.push(DanglingReference { id, field: question.field, missing_id: missing });
                }
            }
        }
        Ok(found)
    }

    async fn commit_transaction(&mut self) -> Result<(), PostgresError> {
        let session = self.session()?;
        session.execute_control("SET CONSTRAINTS ALL IMMEDIATE").await.map_err(dangling_reference_error)?;
        // What was brought in is not to be seeded into.
        session.execute_control(MARK_SEEDED).await?;
        session.execute_control("COMMIT").await.map_err(PostgresError::outcome_unknown_if_lost)?;
        if let Some(own) = self.connection.take() {
            own.release();
        }
        self.store.signal_commit();
        Ok(())
    }
}

/// What goes in a few statements.
enum BatchWork<'p> {
    Append(&'p str, Vec<&'p str>),
    Records { inserts: Option<BulkInsert<'p>>, updates: Vec<(&'p Plan, Arc<Program>)> },
}

impl<'p> BatchWork<'p> {
    /// `None` where the plans are of several kinds, need more than a statement each, or show what they wrote.
    fn from_plans(
        store: &PostgresStore,
        model: &Arc<Model>,
        plans: &[&'p Plan],
    ) -> Result<Option<BatchWork<'p>>> {
        if let Some((list, values)) = list_appends(plans) {
            return Ok(Some(BatchWork::Append(list, values)));
        }
        let (new, changed): (Vec<&Plan>, Vec<&Plan>) = plans.iter().partition(|plan| is_create(plan));
        let mut known = Vec::with_capacity(changed.len());
        for plan in changed {
            let program = store.program_for(model, plan)?;
            let shows_nothing =
                matches!(&plan.action, PlanAction::Update { selection, .. } if !selects_anything(selection));
            if !shows_nothing || execute_write::single_statement(&program).is_none() {
                return Ok(None);
            }
            known.push((plan, program));
        }
        let all = BulkInsert::from_plans(&new);
        let fits = all.is_some() || (new.is_empty() && !known.is_empty());
        Ok(fits.then_some(BatchWork::Records { inserts: all, updates: known }))
    }

    /// New records first. What goes in this order goes in the order of the plans too: updates are of records that an
    /// import has just found (`upsert::By`), never of one that is new in the same batch, a record that comes early can
    /// take a unique value but free none, and references are looked at in the end. What does not go is halved until it is
    /// in the order of the plans.
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
            BatchWork::Records { inserts: new, updates: known } => {
                let made = match new {
                    Some(all) => run_inserts(session, model, all).await?,
                    None => Vec::new(),
                };
                let (mut made, mut changed) =
                    (made.into_iter(), run_updates(session, known).await?.into_iter());
                let ended = |plan: &&Plan| if is_create(plan) { made.next() } else { changed.next() };
                let outcomes: Option<Vec<Outcome>> = plans.iter().map(ended).collect();
                outcomes.ok_or_else(|| internal_error("the database told nothing of a plan"))
            }
        }
    }
}

/// The type of a record that is made or changed.
fn written_type(plan: &Plan) -> Option<RecordTypeId> {
    let (PlanAction::Create { record, .. } | PlanAction::Update { record, .. }) = plan.action else {
        return None;
    };
    Some(record)
}

/// What is written where a record of this type is.
fn written_tables(model: &Model, record: RecordTypeId) -> impl Iterator<Item = &str> {
    let record = model.record(record);
    let links = record.fields.iter().filter_map(|field| {
        let FieldKind::Link { table, .. } = &field.kind else { return None };
        Some(table.as_str())
    });
    std::iter::once(record.table.as_str()).chain(links)
}

fn is_create(plan: &Plan) -> bool {
    matches!(plan.action, PlanAction::Create { .. })
}

/// Each its own statement, sent without waiting for the one before.
async fn run_updates(
    session: PostgresSession<'_>,
    known: &[(&Plan, Arc<Program>)],
) -> Result<Vec<Outcome>, PostgresError> {
    for sql in known.iter().filter_map(|(_, program)| execute_write::single_statement(program)) {
        session.prepare(sql).await?;
    }
    let one = async |(plan, program): &(&Plan, Arc<Program>)| {
        execute_write::execute_write(session, plan, program, &mut |_| ()).await
    };
    join_all(known.iter().map(one)).await.into_iter().collect()
}

/// The values, where nothing is asked but to append to one list.
fn list_appends<'p>(plans: &[&'p Plan]) -> Option<(&'p str, Vec<&'p str>)> {
    let mut lists = plans.iter().map(|plan| match &plan.action {
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
        | PlanAction::ReadImage { .. } => None,
    });
    let (list, first) = lists.next()??;
    let mut values = vec![first];
    for one in lists {
        let (other, value) = one?;
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
    all: &BulkInsert<'_>,
) -> Result<Vec<Outcome>, PostgresError> {
    let owner = model.record(all.record);
    if let Some((sql, greatest)) = all.sequence_statement(owner) {
        session.query_integer(&sql, &[SqlParameter::integer(greatest)]).await?;
    }
    let mut made = Vec::with_capacity(all.rows.len());
    for part in all.statement_rows() {
        let mut rows = session
            .query(&all.insert_statement(owner, part.len()), &BulkInsert::row_parameters(part))
            .await?;
        while let Some(row) = rows.next_row().await? {
            let (Some(id), Some(version)) = (read_cell(&row, 0).to_i64(), read_cell(&row, 1).to_i64()) else {
                return Err(internal_error("a record has no readable id or version"));
            };
            made.push((id, version));
        }
    }
    if made.len() != all.rows.len() {
        return Err(internal_error("an insert returned another number of rows than it was given"));
    }
    let ids: Vec<i64> = made.iter().map(|(id, _)| *id).collect();
    for (sql, own, others) in all.link_statements(model, &ids) {
        session.execute(&sql, &[SqlParameter::Integers(&own), SqlParameter::Integers(&others)]).await?;
    }
    Ok(made.into_iter().map(|(id, version)| Outcome::Created { id, version }).collect())
}

fn dangling_reference_error(fault: PostgresError) -> PostgresError {
    match fault {
        PostgresError::Refused(error) if error.code().is_some_and(|code| code.code() == "23503") => {
            let message = "a reference leads to a record that is not there".to_owned();
            PostgresError::Plan(Error::Invalid(vec![Violation {
                path: Vec::new(),
                code: "REFERENCE",
                message,
            }]))
        }
        fault @ (PostgresError::Plan(_)
        | PostgresError::Refused(_)
        | PostgresError::Retryable(_)
        | PostgresError::ConnectionLost(_)
        | PostgresError::Locked(_)
        | PostgresError::Store(_)) => fault,
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
        ids: Vec<i64>,
    ) -> BoxFuture<'_, Result<Vec<DanglingReference>>> {
        Box::pin(async move {
            self.find_dangling_references(record, &ids).await.map_err(PostgresError::into_error)
        })
    }

    fn commit(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { self.commit_transaction().await.map_err(PostgresError::into_error) })
    }
}
