//! A long write on PostgreSQL: one transaction on a connection of its own, with references looked at in the end.
//!
//! A batch goes in a few statements, sent one behind the other. Only when the database refuses one of them is the batch
//! halved, again and again, to find out which plan it was.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};

use crate::migrate::postgres::SEEDED;
use crate::postgres::bulk_insert::{Together, shows_something};
use crate::postgres::error::Fault;
use crate::postgres::run_job::run_plan;
use crate::postgres::session::{Session, cell, internal};
use crate::postgres::{Own, PostgresStore, execute_write, plain_lists};
use crate::statements::compile::Program;
use crate::statements::dangling_references::questions;
use crate::statements::dialect::Dialect;
use crate::statements::select::Parameter;
use trefoil_engine::plan::Action;
use trefoil_engine::{Answer, Cancel, Job, ListAct, LongWrite, LooseEnd, OnList, Outcome, Plan};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::{Cell, Kind, Model, TypeId};

/// Whoever brings the batches may be slow: a pipe that waits for a person. Tables that were empty when the first batch
/// came are not when the last does, and no plan is made anew meanwhile: each has to look things up by their keys.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                     SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = off; \
                     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
                     SET CONSTRAINTS ALL DEFERRED";

/// PostgreSQL takes a table for as empty as it was when it was last cleaned up, after an import that was killed perhaps,
/// however much comes into it: any index is then as good as the right one, and is walked from end to end for each row.
const MISJUDGED: &str =
    "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1) AND reltuples >= 0 AND reltuples < relpages";

/// Dropped before its commit, its connection is closed and so nothing of it happened.
pub struct Long<'s> {
    store: &'s PostgresStore,
    model: Arc<Model>,
    /// `None` once it is over.
    own: Option<Own>,
    cancel: Cancel,
    /// How many batches of each type there were.
    batches: HashMap<TypeId, u32>,
}

impl PostgresStore {
    pub(crate) async fn begin_long(&self, model: Arc<Model>) -> Result<Box<dyn LongWrite + '_>> {
        let own = self.links.own().await?;
        let long =
            Long { store: self, model, own: Some(own), cancel: Cancel::default(), batches: HashMap::new() };
        long.session()?.control(BEGIN).await.map_err(Fault::into_error)?;
        Ok(Box::new(long))
    }
}

impl Long<'_> {
    fn session(&self) -> Result<Session<'_>> {
        let own = self.own.as_ref().ok_or_else(|| Error::internal("the long write is over"))?;
        Ok(self.store.session(own, &self.cancel))
    }

    async fn batch(&self, job: &mut Job) -> Result<(), Fault> {
        let session = self.session()?;
        let mut waiting = vec![Range { start: 0, end: job.plans.len() }];
        while let Some(some) = waiting.pop() {
            if let Some(outcomes) = self.at_once(session, &job.plans[some.clone()]).await? {
                for ((number, _), outcome) in job.plans[some].iter().zip(outcomes) {
                    job.answer.done(*number, Ok(outcome));
                }
            } else if some.len() > 1 {
                let middle = some.start + some.len() / 2;
                // The last comes first out.
                waiting.extend([middle..some.end, some.start..middle]);
            } else {
                let (number, plan) = &job.plans[some.start];
                let (number, program) = (*number, self.store.program(&job.model, plan)?);
                session.control("SAVEPOINT plan").await?;
                let outcome = run_plan(session, job, some.start, &program).await?;
                job.answer.done(number, outcome);
                session.control("RELEASE plan").await?;
            }
        }
        Ok(())
    }

    /// How each plan ended, where all of them go together and none was refused; otherwise nothing happened.
    async fn at_once(
        &self,
        session: Session<'_>,
        plans: &[(usize, Plan)],
    ) -> Result<Option<Vec<Outcome>>, Fault> {
        let plans: Vec<&Plan> = plans.iter().map(|(_, plan)| plan).collect();
        let Some(work) = Work::of(self.store, &self.model, &plans)? else { return Ok(None) };
        session.control("SAVEPOINT plan").await?;
        match work.run(session, &self.model, &plans).await {
            Ok(outcomes) => {
                session.control("RELEASE plan").await?;
                Ok(Some(outcomes))
            }
            Err(Fault::Plan(_) | Fault::Refused(_)) => {
                session.control("ROLLBACK TO plan; RELEASE plan").await?;
                Ok(None)
            }
            Err(fault @ (Fault::Again(_) | Fault::Lost(_) | Fault::Locked(_) | Fault::Store(_))) => {
                Err(fault)
            }
        }
    }

    /// Has the tables of what came looked at anew, as often as there is twice as much as before, where it is needed. Where
    /// somebody else is at it, the next time.
    async fn judge(&mut self, plans: &[(usize, Plan)]) -> Result<(), Fault> {
        let came: BTreeSet<TypeId> = plans.iter().filter_map(|(_, plan)| written(plan)).collect();
        for record in came {
            let batches = self.batches.entry(record).or_default();
            *batches += 1;
            if !batches.is_power_of_two() {
                continue;
            }
            let session = self.session()?;
            for table in tables(&self.model, record) {
                let name = Dialect::Postgres.quote(table);
                if session.number(MISJUDGED, &[Parameter::Cell(Cell::Text(&name))]).await? == Some(1) {
                    session.control(&format!("ANALYZE (SKIP_LOCKED) {name}")).await?;
                }
            }
        }
        Ok(())
    }

    async fn find_loose_ends(&self, record: TypeId, ids: &[i64]) -> Result<Vec<LooseEnd>, Fault> {
        let session = self.session()?;
        let mut found = Vec::new();
        for question in questions(Dialect::Postgres, &self.model, record) {
            let mut rows = session.rows(&question.sql, &[Parameter::Integers(ids)]).await?;
            while let Some(row) = rows.next().await? {
                if let (Some(id), Some(missing)) = (cell(&row, 0).to_i64(), cell(&row, 1).to_i64()) {
                    found.push(LooseEnd { id, field: question.field, missing });
                }
            }
        }
        Ok(found)
    }

    async fn end(&mut self) -> Result<(), Fault> {
        let session = self.session()?;
        session.control("SET CONSTRAINTS ALL IMMEDIATE").await.map_err(led_to_nothing)?;
        // What was brought in is not to be seeded into.
        session.control(SEEDED).await?;
        session.control("COMMIT").await.map_err(Fault::while_committing)?;
        if let Some(own) = self.own.take() {
            own.finished();
        }
        self.store.stir();
        Ok(())
    }
}

/// What goes in a few statements.
enum Work<'p> {
    Append(&'p str, Vec<&'p str>),
    Records { new: Option<Together<'p>>, known: Vec<(&'p Plan, Arc<Program>)> },
}

impl<'p> Work<'p> {
    /// `None` where the plans are of several kinds, need more than a statement each, or show what they wrote.
    fn of(store: &PostgresStore, model: &Arc<Model>, plans: &[&'p Plan]) -> Result<Option<Work<'p>>> {
        if let Some((list, values)) = appended(plans) {
            return Ok(Some(Work::Append(list, values)));
        }
        let (new, changed): (Vec<&Plan>, Vec<&Plan>) = plans.iter().partition(|plan| is_new(plan));
        let mut known = Vec::with_capacity(changed.len());
        for plan in changed {
            let program = store.program(model, plan)?;
            let shows_nothing =
                matches!(&plan.action, Action::Update { selection, .. } if !shows_something(selection));
            if !shows_nothing || execute_write::only_statement(&program).is_none() {
                return Ok(None);
            }
            known.push((plan, program));
        }
        let all = Together::of(&new);
        let fits = all.is_some() || (new.is_empty() && !known.is_empty());
        Ok(fits.then_some(Work::Records { new: all, known }))
    }

    /// New records first. What goes in this order goes in the order of the plans too: updates are of records that an
    /// import has just found (`upsert::By`), never of one that is new in the same batch, a record that comes early can
    /// take a unique value but free none, and references are looked at in the end. What does not go is halved until it is
    /// in the order of the plans.
    async fn run(&self, session: Session<'_>, model: &Model, plans: &[&Plan]) -> Result<Vec<Outcome>, Fault> {
        match self {
            Work::Append(list, values) => {
                let outcome = plain_lists::append_all(session, list, values).await?;
                Ok(vec![outcome; plans.len()])
            }
            Work::Records { new, known } => {
                let made = match new {
                    Some(all) => insert(session, model, all).await?,
                    None => Vec::new(),
                };
                let (mut made, mut changed) = (made.into_iter(), update(session, known).await?.into_iter());
                let ended = |plan: &&Plan| if is_new(plan) { made.next() } else { changed.next() };
                let outcomes: Option<Vec<Outcome>> = plans.iter().map(ended).collect();
                outcomes.ok_or_else(|| internal("the database told nothing of a plan"))
            }
        }
    }
}

/// The type of a record that is made or changed.
fn written(plan: &Plan) -> Option<TypeId> {
    let (Action::Create { record, .. } | Action::Update { record, .. }) = plan.action else { return None };
    Some(record)
}

/// What is written where a record of this type is.
fn tables(model: &Model, record: TypeId) -> impl Iterator<Item = &str> {
    let record = model.record(record);
    let links = record.fields.iter().filter_map(|field| {
        let Kind::Link { table, .. } = &field.kind else { return None };
        Some(table.as_str())
    });
    std::iter::once(record.table.as_str()).chain(links)
}

fn is_new(plan: &Plan) -> bool {
    matches!(plan.action, Action::Create { .. })
}

/// Each its own statement, sent without waiting for the one before.
async fn update(session: Session<'_>, known: &[(&Plan, Arc<Program>)]) -> Result<Vec<Outcome>, Fault> {
    for sql in known.iter().filter_map(|(_, program)| execute_write::only_statement(program)) {
        session.prepare(sql).await?;
    }
    let one = async |(plan, program): &(&Plan, Arc<Program>)| {
        execute_write::run(session, plan, program, &mut |_| ()).await
    };
    join_all(known.iter().map(one)).await.into_iter().collect()
}

/// The values, where nothing is asked but to append to one list.
fn appended<'p>(plans: &[&'p Plan]) -> Option<(&'p str, Vec<&'p str>)> {
    let mut lists = plans.iter().map(|plan| match &plan.action {
        Action::Plain(OnList { list, act: ListAct::Append { value, expected: None } }) => {
            Some((&**list, value.as_str()))
        }
        Action::Plain(_)
        | Action::Get { .. }
        | Action::List { .. }
        | Action::Create { .. }
        | Action::Update { .. }
        | Action::Delete { .. }
        | Action::Changed { .. } => None,
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

async fn insert(session: Session<'_>, model: &Model, all: &Together<'_>) -> Result<Vec<Outcome>, Fault> {
    let owner = model.record(all.record);
    if let Some((sql, greatest)) = all.pass(owner) {
        session.number(&sql, &[Parameter::integer(greatest)]).await?;
    }
    let mut made = Vec::with_capacity(all.rows.len());
    for part in all.parts() {
        let mut rows = session.rows(&all.insert(owner, part.len()), &Together::bound(part)).await?;
        while let Some(row) = rows.next().await? {
            let (Some(id), Some(version)) = (cell(&row, 0).to_i64(), cell(&row, 1).to_i64()) else {
                return Err(internal("a record has no readable id or version"));
            };
            made.push((id, version));
        }
    }
    if made.len() != all.rows.len() {
        return Err(internal("an insert returned another number of rows than it was given"));
    }
    let ids: Vec<i64> = made.iter().map(|(id, _)| *id).collect();
    for (sql, own, others) in all.links(model, &ids) {
        session.execute(&sql, &[Parameter::Integers(&own), Parameter::Integers(&others)]).await?;
    }
    Ok(made.into_iter().map(|(id, version)| Outcome::Created { id, version }).collect())
}

fn led_to_nothing(fault: Fault) -> Fault {
    match fault {
        Fault::Refused(error) if error.code().is_some_and(|code| code.code() == "23503") => {
            let message = "a reference leads to a record that is not there".to_owned();
            Fault::Plan(Error::Invalid(vec![Violation { path: Vec::new(), code: "REFERENCE", message }]))
        }
        fault @ (Fault::Plan(_)
        | Fault::Refused(_)
        | Fault::Again(_)
        | Fault::Lost(_)
        | Fault::Locked(_)
        | Fault::Store(_)) => fault,
    }
}

impl LongWrite for Long<'_> {
    fn run(&mut self, mut job: Job) -> BoxFuture<'_, Result<Box<dyn Answer>>> {
        Box::pin(async move {
            self.batch(&mut job).await.map_err(Fault::into_error)?;
            self.judge(&job.plans).await.map_err(Fault::into_error)?;
            Ok(job.answer)
        })
    }

    fn loose_ends(&mut self, record: TypeId, ids: Vec<i64>) -> BoxFuture<'_, Result<Vec<LooseEnd>>> {
        Box::pin(async move { self.find_loose_ends(record, &ids).await.map_err(Fault::into_error) })
    }

    fn commit(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { self.end().await.map_err(Fault::into_error) })
    }
}
