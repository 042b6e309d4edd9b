//! A bulk write on SQLite: one transaction on the writer's thread that runs batch after batch until its commit.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use trefoil_engine::{AuditOrigin, BulkTransaction, DanglingReference, RowSink, StoreJob};
use trefoil_model::error::Result;
use trefoil_model::{Model, RecordId, RecordTypeId};

use crate::migrate::MARK_SEEDED;
use crate::sqlite::error::store_error;
use crate::sqlite::session::SharedState;
use crate::sqlite::session::{SqliteSession, bind_parameters, read_cell};
use crate::sqlite::writer::run_each;
use crate::sqlite::{SqliteStore, call_message, closed_error};
use crate::statements::compile::Program;
use crate::statements::dangling_references::dangling_queries;
use crate::statements::dialect::Dialect;
use crate::statements::sql_parameter::SqlParameter;

/// A command to the transaction, with the channel for its reply.
enum BulkCommand {
    Run(Box<StoreJob>, Vec<Arc<Program>>, ReplySender<Box<dyn RowSink>>),
    FindDangling(RecordTypeId, Vec<RecordId>, ReplySender<Vec<DanglingReference>>),
    Commit(ReplySender<()>),
}

type ReplySender<T> = oneshot::Sender<Result<T>>;

/// Holds the transaction open; dropping it closes the channel, and the transaction is rolled back.
pub struct SqliteBulkTransaction<'s> {
    store: &'s SqliteStore,
    commands: mpsc::Sender<BulkCommand>,
}

impl SqliteStore {
    pub(crate) async fn open_bulk_transaction(
        &self,
        model: &Arc<Model>,
        origin: Option<AuditOrigin>,
    ) -> Result<Box<dyn BulkTransaction + '_>> {
        let (commands, command_queue) = mpsc::channel(1);
        let (begun, wait_begun) = oneshot::channel();
        let (shared, model) = (self.shared.clone(), model.clone());
        let work = move |connection: &mut rusqlite::Connection| {
            let _audited = shared.audit.begin(origin.as_ref());
            run_bulk_transaction(&shared, shared.session(connection), &model, begun, command_queue);
        };
        // The reply to this message comes at the end of the transaction and is not awaited.
        self.send_to_writer(call_message(work).0).await?;
        wait_begun.await.map_err(|_| closed_error())??;
        Ok(Box::new(SqliteBulkTransaction { store: self, commands }))
    }
}

/// Runs commands until the commit, an error of the store, or the end of the channel. An open transaction is rolled back.
fn run_bulk_transaction(
    shared: &SharedState,
    session: SqliteSession<'_>,
    model: &Model,
    begun: ReplySender<()>,
    mut commands: mpsc::Receiver<BulkCommand>,
) {
    // Empties the WAL first: if the disk fills up, it then holds nothing but the uncommitted transaction.
    let _ = session.connection.query_row("PRAGMA wal_checkpoint", [], |_| Ok(()));
    let begin = shared.check_file().and_then(|()| {
        let begun = session
            .execute_control("BEGIN IMMEDIATE")
            .and_then(|()| session.connection.execute_batch("PRAGMA defer_foreign_keys = ON"));
        begun.map_err(|error| store_error(&error))
    });
    let is_open = begin.is_ok();
    // If the receiver is gone, so is the sender of commands, and the loop ends.
    let _ = begun.send(begin);
    while is_open && let Some(command) = commands.blocking_recv() {
        let is_usable = match command {
            BulkCommand::Run(mut job, programs, reply) => {
                let prepared = shared.audit.prepare(session.connection, &job);
                let run = prepared.and_then(|()| run_each(session, &mut job, &programs));
                send_reply(reply, run.map(|()| job.sink))
            }
            BulkCommand::FindDangling(record, ids, reply) => {
                send_reply(reply, find_dangling_references(session, model, record, &ids))
            }
            BulkCommand::Commit(reply) => {
                let marked = session.connection.execute_batch(MARK_SEEDED);
                let committed = marked.and_then(|()| session.execute_control("COMMIT"));
                if committed.is_ok() {
                    shared.commits.send_replace(());
                }
                send_reply(reply, committed);
                false
            }
        };
        if !is_usable {
            return;
        }
    }
}

/// Returns whether the transaction is still usable.
fn send_reply<T>(reply: ReplySender<T>, result: rusqlite::Result<T>) -> bool {
    let is_ok = result.is_ok();
    reply.send(result.map_err(|error| store_error(&error))).is_ok() && is_ok
}

fn find_dangling_references(
    session: SqliteSession<'_>,
    model: &Model,
    record: RecordTypeId,
    ids: &[RecordId],
) -> rusqlite::Result<Vec<DanglingReference>> {
    let mut found = Vec::new();
    for query in dangling_queries(Dialect::Sqlite, model, record) {
        let mut statement = session.prepare(&query.sql)?;
        bind_parameters(&mut statement, &[SqlParameter::ids(ids)])?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let [id, missing_id] = [0, 1].map(|column| RecordId::from_cell(read_cell(row, column)));
            if let (Some(id), Some(missing_id)) = (id, missing_id) {
                found.push(DanglingReference { id, field: query.field, missing_id });
            }
        }
    }
    Ok(found)
}

impl SqliteBulkTransaction<'_> {
    async fn send_command<T>(&self, command: impl FnOnce(ReplySender<T>) -> BulkCommand) -> Result<T> {
        let (reply, response) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| closed_error())?;
        response.await.map_err(|_| closed_error())?
    }
}

impl BulkTransaction for SqliteBulkTransaction<'_> {
    fn run(&mut self, job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>> {
        Box::pin(async move {
            let programs =
                job.plans.iter().map(|(_, plan)| self.store.shared.programs.get_or_compile(&job.model, plan));
            let programs = programs.collect::<Result<Vec<_>>>()?;
            self.send_command(|reply| BulkCommand::Run(Box::new(job), programs, reply)).await
        })
    }

    fn dangling_references(
        &mut self,
        record: RecordTypeId,
        ids: Vec<RecordId>,
    ) -> BoxFuture<'_, Result<Vec<DanglingReference>>> {
        Box::pin(self.send_command(move |reply| BulkCommand::FindDangling(record, ids, reply)))
    }

    fn commit(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.send_command(BulkCommand::Commit))
    }
}
