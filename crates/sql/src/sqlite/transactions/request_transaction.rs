//! A transaction of one request on SQLite, on the writer's thread: jobs run one after the other until its commit.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use trefoil_engine::{
    AccountChange, AuditOrigin, BegunTransaction, IdempotencyKey, RowSink, StoreJob, StoreTransaction,
};
use trefoil_model::error::{Error, Result};

use crate::accounts::sqlite::run_changes;
use crate::idempotency_key::IdempotencyKeyStatus;
use crate::sqlite::error::store_error;
use crate::sqlite::idempotency_keys::{self, KeyGuard};
use crate::sqlite::session::{SharedState, SqliteSession};
use crate::sqlite::writer::run_plans;
use crate::sqlite::{SqliteStore, call_message, closed_error};
use crate::statements::compile::Program;

enum TransactionCommand {
    Run(Box<StoreJob>, Vec<Arc<Program>>, TransactionReply<Box<dyn RowSink>>),
    Accounts(Vec<AccountChange>, TransactionReply<bool>),
    /// With the answer to store under the idempotency key.
    Commit(Vec<u8>, TransactionReply<()>),
}

type TransactionReply<T> = oneshot::Sender<Result<T>>;

/// Holds the transaction open; dropping it closes the channel, and the transaction is rolled back.
struct SqliteTransaction<'s> {
    store: &'s SqliteStore,
    commands: mpsc::Sender<TransactionCommand>,
    _key_guard: Option<KeyGuard>,
}

impl SqliteStore {
    pub(crate) async fn open_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> Result<BegunTransaction<'_>> {
        let key_guard = key.as_ref().map(|key| self.running_keys.try_enter(&key.key)).transpose()?;
        let (commands, command_queue) = mpsc::channel(1);
        let (begun, wait_begun) = oneshot::channel();
        let shared = self.shared.clone();
        let work = move |connection: &mut rusqlite::Connection| {
            // One request, hence one time in the audit.
            let _audited = shared.audit.begin(origin.as_ref());
            run_transaction(&shared, shared.session(connection), key.as_ref(), begun, command_queue);
        };
        // The reply to this message comes at the end of the transaction and is not awaited.
        self.send_to_writer(call_message(work).0).await?;
        match wait_begun.await.map_err(|_| closed_error())?? {
            Some(answer) => Ok(BegunTransaction::Replayed(answer)),
            None => Ok(BegunTransaction::Open(Box::new(SqliteTransaction {
                store: self,
                commands,
                _key_guard: key_guard,
            }))),
        }
    }
}

/// Runs commands until the commit, an error of the store, or the end of the channel. An open transaction is rolled back.
fn run_transaction(
    shared: &SharedState,
    session: SqliteSession<'_>,
    key: Option<&IdempotencyKey>,
    begun: TransactionReply<Option<Vec<u8>>>,
    mut commands: mpsc::Receiver<TransactionCommand>,
) {
    let begin = shared.check_file().and_then(|()| begin_transaction(session, key));
    let is_open = matches!(begin, Ok(None));
    // If the receiver is gone, so is the sender of commands, and the loop ends.
    let _ = begun.send(begin);
    while is_open && let Some(command) = commands.blocking_recv() {
        match command {
            TransactionCommand::Run(mut job, programs, reply) => {
                let prepared = shared.audit.prepare(session.connection, &job);
                let run = prepared.and_then(|()| run_plans(session, &mut job, &programs));
                let is_usable = run.is_ok();
                let sent = reply.send(run.map(|()| job.sink).map_err(|error| store_error(&error)));
                if sent.is_err() || !is_usable {
                    return;
                }
            }
            TransactionCommand::Accounts(changes, reply) => {
                let changed = run_changes(session.connection, changes);
                let is_usable = matches!(changed, Ok(true));
                let sent = reply.send(changed.map_err(|error| store_error(&error)));
                if sent.is_err() || !is_usable {
                    return;
                }
            }
            TransactionCommand::Commit(answer, reply) => {
                let stored = key.map_or(Ok(()), |key| idempotency_keys::store_answer(&session, key, &answer));
                let committed = stored.and_then(|()| session.execute_control("COMMIT"));
                if committed.is_ok() {
                    shared.commits.send_replace(());
                }
                let _ = reply.send(committed.map_err(|error| store_error(&error)));
                return;
            }
        }
    }
}

/// Begins the transaction; the stored answer if the key has one.
fn begin_transaction(session: SqliteSession<'_>, key: Option<&IdempotencyKey>) -> Result<Option<Vec<u8>>> {
    session.execute_control("BEGIN IMMEDIATE").map_err(|error| store_error(&error))?;
    let Some(key) = key else { return Ok(None) };
    match idempotency_keys::find_key(&session, key).map_err(|error| store_error(&error))? {
        IdempotencyKeyStatus::New => Ok(None),
        IdempotencyKeyStatus::Answered(answer) => Ok(Some(answer)),
        IdempotencyKeyStatus::UsedByOther => Err(Error::KeyReused),
    }
}

impl SqliteTransaction<'_> {
    async fn send_command<T>(
        &self,
        command: impl FnOnce(TransactionReply<T>) -> TransactionCommand,
    ) -> Result<T> {
        let (reply, response) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| closed_error())?;
        response.await.map_err(|_| closed_error())?
    }
}

impl StoreTransaction for SqliteTransaction<'_> {
    fn run(&mut self, job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>> {
        Box::pin(async move {
            let programs =
                job.plans.iter().map(|(_, plan)| self.store.shared.programs.get_or_compile(&job.model, plan));
            let programs = programs.collect::<Result<Vec<_>>>()?;
            self.send_command(|reply| TransactionCommand::Run(Box::new(job), programs, reply)).await
        })
    }

    fn change_accounts(&mut self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.send_command(|reply| TransactionCommand::Accounts(changes, reply)))
    }

    fn commit(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.send_command(|reply| TransactionCommand::Commit(answer, reply)))
    }
}
