//! A long write on SQLite: one transaction on the writer's thread, which takes batch after batch until its commit.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::sqlite::error::to_error;
use crate::sqlite::session::{Session, bind, cell};
use crate::sqlite::writer::run_each;
use crate::sqlite::{Shared, SqliteStore, closed, message};
use crate::statements::compile::Program;
use crate::statements::dangling_references::questions;
use crate::statements::dialect::Dialect;
use crate::statements::select::Parameter;
use trefoil_engine::{Answer, Job, LongWrite, LooseEnd};
use trefoil_model::error::Result;
use trefoil_model::{Model, TypeId};

/// What the transaction is asked to do next.
enum Next {
    Run(Box<Job>, Vec<Arc<Program>>, Reply<Box<dyn Answer>>),
    LooseEnds(TypeId, Vec<i64>, Reply<Vec<LooseEnd>>),
    Commit(Reply<()>),
}

type Reply<T> = oneshot::Sender<Result<T>>;

/// Holds the transaction open; without it nobody can ask any more, and the transaction is rolled back.
pub struct Long<'s> {
    store: &'s SqliteStore,
    next: mpsc::Sender<Next>,
}

impl SqliteStore {
    pub(crate) async fn begin_long(&self, model: &Arc<Model>) -> Result<Box<dyn LongWrite + '_>> {
        let (next, asked) = mpsc::channel(1);
        let (begun, begins) = oneshot::channel();
        let (shared, model) = (self.shared.clone(), model.clone());
        let work = move |connection: &mut rusqlite::Connection| {
            serve(&shared, shared.session(connection), &model, begun, asked);
        };
        // The answer to the message is that all is over; nobody waits for it.
        self.send(message(work).0).await?;
        begins.await.map_err(|_| closed())??;
        Ok(Box::new(Long { store: self, next }))
    }
}

/// Works until the commit, a failure of the store, or until nobody can ask any more. What is then open is rolled back.
fn serve(
    shared: &Shared,
    session: Session<'_>,
    model: &Model,
    begun: Reply<()>,
    mut asked: mpsc::Receiver<Next>,
) {
    // Nothing of value is then in the journal: when the disk fills up, all of it goes with what was not committed.
    let _ = session.connection.query_row("PRAGMA wal_checkpoint", [], |_| Ok(()));
    let begin = session
        .control("BEGIN IMMEDIATE")
        .and_then(|()| session.connection.execute_batch("PRAGMA defer_foreign_keys = ON"));
    let is_open = begin.is_ok();
    // Nobody waits any more: then nobody asks either.
    let _ = begun.send(begin.map_err(|error| to_error(&error)));
    while is_open && let Some(next) = asked.blocking_recv() {
        let goes_on = match next {
            Next::Run(mut job, programs, reply) => {
                let run = run_each(session, &mut job, &programs);
                tell(reply, run.map(|()| job.answer))
            }
            Next::LooseEnds(record, ids, reply) => tell(reply, loose_ends(session, model, record, &ids)),
            Next::Commit(reply) => {
                let committed = session.control("COMMIT");
                if committed.is_ok() {
                    shared.stirred.send_replace(());
                }
                tell(reply, committed);
                false
            }
        };
        if !goes_on {
            return;
        }
    }
}

/// Says whether the transaction is still of use.
fn tell<T>(reply: Reply<T>, done: rusqlite::Result<T>) -> bool {
    let is_sound = done.is_ok();
    reply.send(done.map_err(|error| to_error(&error))).is_ok() && is_sound
}

fn loose_ends(
    session: Session<'_>,
    model: &Model,
    record: TypeId,
    ids: &[i64],
) -> rusqlite::Result<Vec<LooseEnd>> {
    let mut found = Vec::new();
    for question in questions(Dialect::Sqlite, model, record) {
        let mut statement = session.prepare(&question.sql)?;
        bind(&mut statement, &[Parameter::Integers(ids)])?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if let (Some(id), Some(missing)) = (cell(row, 0).to_i64(), cell(row, 1).to_i64()) {
                found.push(LooseEnd { id, field: question.field, missing });
            }
        }
    }
    Ok(found)
}

impl Long<'_> {
    async fn ask<T>(&self, next: impl FnOnce(Reply<T>) -> Next) -> Result<T> {
        let (reply, answered) = oneshot::channel();
        self.next.send(next(reply)).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

impl LongWrite for Long<'_> {
    fn run(&mut self, job: Job) -> BoxFuture<'_, Result<Box<dyn Answer>>> {
        Box::pin(async move {
            let programs = job.plans.iter().map(|(_, plan)| self.store.shared.programs.of(&job.model, plan));
            let programs = programs.collect::<Result<Vec<_>>>()?;
            self.ask(|reply| Next::Run(Box::new(job), programs, reply)).await
        })
    }

    fn loose_ends(&mut self, record: TypeId, ids: Vec<i64>) -> BoxFuture<'_, Result<Vec<LooseEnd>>> {
        Box::pin(self.ask(move |reply| Next::LooseEnds(record, ids, reply)))
    }

    fn commit(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.ask(Next::Commit))
    }
}
