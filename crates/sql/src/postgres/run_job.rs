//! Carries out a job on PostgreSQL: on which kind of connection, in what kind of transaction, and how often.
//!
//! What one look-up or one statement does goes over a shared connection and is its own transaction; everything else
//! has a connection of its own. When the caller goes away, a statement on a shared connection comes to its end by
//! itself; a transaction is cancelled and rolled back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;

use crate::postgres::PostgresStore;
use crate::postgres::cancellation::while_wanted;
use crate::postgres::constraint_errors::blame;
use crate::postgres::error::{Fault, refusal};
use crate::postgres::session::Session;
use crate::postgres::{Link, Own, atomic_batch, execute_read, execute_write, idempotency_keys, short_reads};
use crate::sqlite::idempotency_keys::Known;
use crate::sqlite::queued_job::spoken;
use crate::statements::compile::{Program, Programs};
use crate::statements::dialect::Dialect;
use trefoil_engine::{Cancel, Done, Job, Key, Outcome, Plan};
use trefoil_model::Model;
use trefoil_model::error::{Error, Result};

/// How often a job is begun that only others, or a lost connection, kept from its end.
const ATTEMPTS: u32 = 5;

/// What running plans keeps between requests: programs by shape, and how many statements there were.
pub struct Runs {
    programs: Programs,
    statements: AtomicU64,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { programs: Programs::new(Dialect::Postgres), statements: AtomicU64::new(0) }
    }
}

impl Runs {
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }
}

/// How a job ended, before it is told to anyone.
enum Verdict {
    Answered,
    Replayed(Vec<u8>),
    Refused(Error),
}

impl PostgresStore {
    pub(crate) async fn carry_out(&self, mut job: Job) -> Result<Done> {
        job.cancel.check()?;
        let programs = job.plans.iter().map(|(_, plan)| self.program(&job.model, plan));
        let programs = programs.collect::<Result<Vec<_>>>()?;
        // Whoever takes the rows may panic. A connection left in the middle of something is closed.
        let run = AssertUnwindSafe(self.persist(&mut job, &programs)).catch_unwind().await;
        match run.unwrap_or_else(|panic| Err(Error::internal(spoken(panic.as_ref()))))? {
            Verdict::Answered => Ok(Done::Answered(job.answer)),
            Verdict::Replayed(bytes) => Ok(Done::Replayed(bytes)),
            Verdict::Refused(error) => Err(error),
        }
    }

    async fn persist(&self, job: &mut Job, programs: &[Arc<Program>]) -> Result<Verdict> {
        let writes = job.plans.iter().any(|(_, plan)| plan.writes());
        let mut attempt = 1;
        loop {
            let run = if writes { self.write(job, programs).await } else { self.read(job, programs).await };
            match run {
                Ok(verdict) => return Ok(verdict),
                Err(Fault::Again(_) | Fault::Lost(_)) if attempt < ATTEMPTS => {}
                Err(fault) => return Err(fault.into_error()),
            }
            job.answer.reset();
            tokio::time::sleep(pause(attempt)).await;
            attempt += 1;
        }
    }

    pub(crate) async fn kept_under(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let mut attempt = 1;
        loop {
            match self.look_under(key).await {
                Ok(known) => return known.into_replay(),
                Err(Fault::Again(_) | Fault::Lost(_)) if attempt < ATTEMPTS => {}
                Err(fault) => return Err(fault.into_error()),
            }
            tokio::time::sleep(pause(attempt)).await;
            attempt += 1;
        }
    }

    /// Whether it is in use is asked first: whoever had it before that has committed what the second statement sees.
    async fn look_under(&self, key: &Key) -> Result<Known, Fault> {
        let (cancel, link) = (Cancel::default(), self.links.shared().map_err(Fault::Store)?);
        let session = self.session(&link, &cancel);
        if !idempotency_keys::enter(session, key).await? {
            return Err(Fault::Plan(Error::KeyInUse));
        }
        idempotency_keys::look_up(session, key).await
    }

    pub(crate) fn program(&self, model: &Arc<Model>, plan: &Plan) -> Result<Arc<Program>> {
        self.runs.programs.of(model, plan)
    }

    pub(crate) fn session<'l>(&'l self, link: &'l Link, cancel: &'l Cancel) -> Session<'l> {
        Session { link, statements: &self.runs.statements, cancel }
    }

    async fn read(&self, job: &mut Job, programs: &[Arc<Program>]) -> Result<Verdict, Fault> {
        let cancel = job.cancel.clone();
        if let ([(number, plan)], [program]) = (job.plans.as_slice(), programs)
            && execute_read::from_image(plan, program, &mut |row| job.answer.row(*number, row))
        {
            job.answer.done(*number, Ok(Outcome::Found));
            return Ok(Verdict::Answered);
        }
        if short_reads::is_look_up(job, programs) {
            let link = self.links.shared().map_err(Fault::Store)?;
            return read_all(self.session(&link, &cancel), job, programs, Care::Little).await;
        }
        let own = self.own(&cancel).await?;
        let session = self.session(&own, &cancel);
        let mut run = while_wanted(&cancel, snapshot(session, job, programs, Care::Little)).await;
        if let (Err(Fault::Refused(_)), [_, _, ..]) = (&run, programs) {
            // Which of the plans it is, and what the others give, is only known with savepoints.
            session.control("ROLLBACK").await?;
            job.answer.reset();
            run = while_wanted(&cancel, snapshot(session, job, programs, Care::Much)).await;
        }
        give_back(session, &run).await.then(|| own.finished());
        run
    }

    async fn own(&self, cancel: &Cancel) -> Result<Own, Fault> {
        while_wanted(cancel, async { self.links.own().await.map_err(Fault::Store) }).await
    }

    async fn write(&self, job: &mut Job, programs: &[Arc<Program>]) -> Result<Verdict, Fault> {
        let verdict = match programs {
            [program] if job.key.is_none() && execute_write::only_statement(program).is_some() => {
                match self.write_one(job, program).await {
                    // Whoever waits long does so where nobody waits behind.
                    Err(Fault::Locked(_)) => self.write_all(job, programs).await,
                    run => run,
                }
            }
            _ => self.write_all(job, programs).await,
        }?;
        if let Verdict::Answered = verdict {
            self.stir();
        }
        Ok(verdict)
    }

    /// One statement, which is its own transaction.
    async fn write_one(&self, job: &mut Job, program: &Program) -> Result<Verdict, Fault> {
        // Once sent it cannot be taken back.
        let sent = Cancel::default();
        let link = self.links.shared().map_err(Fault::Store)?;
        let session = self.session(&link, &sent);
        session.prepare(execute_write::only_statement(program).unwrap_or_default()).await?;
        let (number, plan) = &job.plans[0];
        let run = execute_write::run(session, plan, program, &mut |row| job.answer.row(*number, row)).await;
        let outcome = match run.map_err(Fault::while_committing) {
            Ok(outcome) => Ok(outcome),
            Err(Fault::Plan(error)) => Err(error),
            Err(Fault::Refused(error)) => Err(blame(session, &job.model, &plan.action, &error).await?),
            Err(fault @ (Fault::Again(_) | Fault::Lost(_) | Fault::Locked(_) | Fault::Store(_))) => {
                return Err(fault);
            }
        };
        job.answer.done(*number, outcome);
        Ok(Verdict::Answered)
    }

    async fn write_all(&self, job: &mut Job, programs: &[Arc<Program>]) -> Result<Verdict, Fault> {
        let cancel = job.cancel.clone();
        let own = self.own(&cancel).await?;
        let session = self.session(&own, &cancel);
        let mut run = while_wanted(&cancel, transaction(session, job, programs)).await;
        if let Ok(verdict) = &run {
            let end = match verdict {
                Verdict::Answered => session.control("COMMIT").await.map_err(Fault::while_committing),
                Verdict::Replayed(_) | Verdict::Refused(_) => session.control("ROLLBACK").await,
            };
            run = end.and(run);
        }
        give_back(session, &run).await.then(|| own.finished());
        run
    }
}

/// Whether the connection can serve others: nothing runs on it any more, and no transaction is open.
async fn give_back(session: Session<'_>, run: &Result<Verdict, Fault>) -> bool {
    match run {
        Ok(_) => true,
        Err(Fault::Lost(_) | Fault::Store(Error::Cancelled)) => false,
        Err(Fault::Plan(_) | Fault::Refused(_) | Fault::Again(_) | Fault::Locked(_) | Fault::Store(_)) => {
            session.control("ROLLBACK").await.is_ok()
        }
    }
}

/// What a plan that the database refuses may cost the others of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// The transaction: everything is to be run again.
    Little,
    Much,
}

/// Some milliseconds, more each time and never the same for two that met.
fn pause(attempt: u32) -> Duration {
    let chance = uuid::Uuid::new_v4().as_u64_pair().0 % 1_000;
    Duration::from_micros((1_000 << attempt) * (500 + chance) / 1_000)
}

/// Reads in one snapshot, which a single statement is by itself.
async fn snapshot(
    session: Session<'_>,
    job: &mut Job,
    programs: &[Arc<Program>],
    care: Care,
) -> Result<Verdict, Fault> {
    if let [program] = programs
        && program.is_one_statement()
    {
        return read_all(session, job, programs, care).await;
    }
    let begin = session.control("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    // Sent together: the one is before the other on the way, and nothing is written that its failure could spoil.
    let (begun, verdict) = join(begin, read_all(session, job, programs, care)).await;
    begun?;
    let verdict = verdict?;
    // Nobody needs its answer. Whoever has the connection next sends behind it.
    let _ = session.control("COMMIT").now_or_never();
    Ok(verdict)
}

async fn read_all(
    session: Session<'_>,
    job: &mut Job,
    programs: &[Arc<Program>],
    care: Care,
) -> Result<Verdict, Fault> {
    for ((number, plan), program) in job.plans.iter().zip(programs) {
        if care == Care::Much {
            session.control("SAVEPOINT plan").await?;
        }
        let run = execute_read::run(session, plan, program, &mut |row| job.answer.row(*number, row)).await;
        let outcome = match run {
            Ok(outcome) => Ok(outcome),
            Err(Fault::Plan(error)) => Err(error),
            Err(Fault::Refused(error)) if care == Care::Much => {
                session.control("ROLLBACK TO plan").await?;
                Err(refusal(&error))
            }
            // Its transaction is over, and nothing else is in it.
            Err(Fault::Refused(error)) if programs.len() == 1 => Err(refusal(&error)),
            Err(fault) => return Err(fault),
        };
        job.answer.done(*number, outcome);
    }
    Ok(Verdict::Answered)
}

/// Everything up to the commit, under the idempotency key where there is one.
async fn transaction(
    session: Session<'_>,
    job: &mut Job,
    programs: &[Arc<Program>],
) -> Result<Verdict, Fault> {
    match job.key.clone() {
        None => session.control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SAVEPOINT plan").await?,
        Some(key) => {
            session.control("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
            if !idempotency_keys::enter(session, &key).await? {
                return Ok(Verdict::Refused(Error::KeyInUse));
            }
            match idempotency_keys::look_up(session, &key).await? {
                Known::New => {}
                Known::Answered(bytes) => return Ok(Verdict::Replayed(bytes)),
                Known::Taken => return Ok(Verdict::Refused(Error::KeyReused)),
            }
            // Not before: going back to it would give the key free.
            session.control("SAVEPOINT plan").await?;
        }
    }
    if job.atomic {
        run_as_one(session, job, programs).await?;
    } else {
        run_each(session, job, programs).await?;
    }
    if let Some(key) = &job.key
        && let Some(bytes) = job.answer.keep()
    {
        idempotency_keys::keep(session, key, &bytes).await?;
    }
    Ok(Verdict::Answered)
}

/// Each plan its own unit: one that fails leaves the others standing. The savepoint of the first is there already.
async fn run_each(session: Session<'_>, job: &mut Job, programs: &[Arc<Program>]) -> Result<(), Fault> {
    for (i, program) in programs.iter().enumerate() {
        if i > 0 {
            session.control("RELEASE plan; SAVEPOINT plan").await?;
        }
        let outcome = run_plan(session, job, i, program).await?;
        job.answer.done(job.plans[i].0, outcome);
    }
    Ok(())
}

/// All plans one unit. When one fails, the answer forgets the others and is told of each; which it was is only known when
/// they run one by one.
async fn run_as_one(session: Session<'_>, job: &mut Job, programs: &[Arc<Program>]) -> Result<(), Fault> {
    if programs.len() > 1 {
        match atomic_batch::run(session, job, programs).await {
            Err(Fault::Plan(_) | Fault::Refused(_)) => session.control("ROLLBACK TO plan").await?,
            end @ (Ok(()) | Err(Fault::Again(_) | Fault::Lost(_) | Fault::Locked(_) | Fault::Store(_))) => {
                return end;
            }
        }
        job.answer.reset();
    }
    for (i, program) in programs.iter().enumerate() {
        match run_plan(session, job, i, program).await? {
            Ok(outcome) => job.answer.done(job.plans[i].0, Ok(outcome)),
            Err(error) => {
                job.tell_undone(i, error);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The outer failure is the store's, the inner one the plan's own: then the savepoint was gone back to.
pub(crate) async fn run_plan(
    session: Session<'_>,
    job: &mut Job,
    i: usize,
    program: &Program,
) -> Result<Result<Outcome>, Fault> {
    let (number, plan) = &job.plans[i];
    match execute_write::run(session, plan, program, &mut |row| job.answer.row(*number, row)).await {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(Fault::Plan(error)) => {
            session.control("ROLLBACK TO plan").await?;
            Ok(Err(error))
        }
        Err(Fault::Refused(error)) => {
            session.control("ROLLBACK TO plan").await?;
            blame(session, &job.model, &plan.action, &error).await.map(Err)
        }
        Err(fault @ (Fault::Again(_) | Fault::Lost(_) | Fault::Locked(_) | Fault::Store(_))) => Err(fault),
    }
}
