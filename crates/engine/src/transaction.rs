//! Operations that depend on each other's results, in one transaction: an engine whose store is an open transaction.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use tokio::sync::{mpsc, oneshot, watch};

use trefoil_model::Model;
use trefoil_model::error::{Error, Result};

use crate::access::{AccountChange, AuditOrigin, CredentialStore};
use crate::changes::{ChangeLog, RecordChange};
use crate::engine::Engine;
use crate::plan::TouchedAccounts;
use crate::row::RowSink;
use crate::store::{
    BegunTransaction, BulkTransaction, DataVersion, IdempotencyKey, JobResult, LogReadLimits, Store, StoreJob,
};

/// How the work in a transaction ended.
pub enum TransactionEnd<T> {
    /// The writes are kept, and the answer is stored under the idempotency key, if there is one.
    Commit { result: T, answer: Vec<u8> },
    /// Nothing is kept.
    RollBack(T),
}

pub enum TransactionResult<T> {
    Ended(T),
    /// The answer to an earlier request with the same idempotency key.
    Replayed(Vec<u8>),
}

impl Engine {
    /// Runs `work` with an engine whose operations are one transaction. Other writes may have to wait until it ends.
    pub async fn run_in_transaction<T>(
        &self,
        key: Option<IdempotencyKey>,
        work: impl AsyncFnOnce(Engine) -> TransactionEnd<T>,
    ) -> Result<TransactionResult<T>> {
        self.require_writing()?;
        self.confirm_actor().await?;
        self.check_tables()?;
        let key = key.map(|key| self.actor_key(key));
        let mut transaction = match self.store().begin_transaction(key, self.audited_origin()).await? {
            BegunTransaction::Open(transaction) => transaction,
            BegunTransaction::Replayed(answer) => return Ok(TransactionResult::Replayed(answer)),
        };
        let (work_queue, mut queue) = mpsc::channel::<TransactionWork>(1);
        let engine = self.with_store(Arc::new(TransactionStore { queue: work_queue }));
        let mut touched = TouchedAccounts::Nobody;
        let end = {
            let drive = async {
                while let Some(work) = queue.recv().await {
                    // If the caller is gone, so is its wish to commit.
                    match work {
                        TransactionWork::Job(job, reply) => {
                            touched.add(self.touched_accounts(&job.plans));
                            drop(reply.send(transaction.run(*job).await));
                        }
                        TransactionWork::Accounts(changes, reply) => {
                            drop(reply.send(transaction.change_accounts(changes).await));
                        }
                    }
                }
                // All senders are gone; the work ends without the store.
                std::future::pending::<()>().await;
            };
            match select(std::pin::pin!(work(engine)), std::pin::pin!(drive)).await {
                Either::Left((end, _)) => end,
                Either::Right(((), _)) => return Err(Error::internal("the driver of a transaction ended")),
            }
        };
        match end {
            TransactionEnd::Commit { result, answer } => {
                transaction.commit(answer).await?;
                self.end_unusable(touched).await;
                Ok(TransactionResult::Ended(result))
            }
            TransactionEnd::RollBack(result) => Ok(TransactionResult::Ended(result)),
        }
    }
}

/// What an open transaction is asked to do, with the channel for the reply.
enum TransactionWork {
    Job(Box<StoreJob>, oneshot::Sender<Result<Box<dyn RowSink>>>),
    Accounts(Vec<AccountChange>, oneshot::Sender<Result<bool>>),
}

/// Passes work to an open transaction.
struct TransactionStore {
    queue: mpsc::Sender<TransactionWork>,
}

impl TransactionStore {
    async fn send<T>(&self, work: impl FnOnce(oneshot::Sender<Result<T>>) -> TransactionWork) -> Result<T> {
        let ended = || Error::internal("the transaction has ended");
        let (reply, result) = oneshot::channel();
        self.queue.send(work(reply)).await.map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::internal("an open transaction only runs jobs"))
}

impl Store for TransactionStore {
    fn run(&self, job: StoreJob) -> BoxFuture<'_, Result<JobResult>> {
        Box::pin(async move {
            // The transaction would run it like any other.
            if job.asks_again {
                return Err(Error::internal("a transaction runs no job that is asked about again"));
            }
            let ran = self.send(|reply| TransactionWork::Job(Box::new(job), reply)).await;
            ran.map(JobResult::Completed)
        })
    }

    fn replay<'s>(&'s self, _: &'s IdempotencyKey) -> BoxFuture<'s, Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }

    fn begin_bulk_write(
        &self,
        _: &Arc<Model>,
        _: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<Box<dyn BulkTransaction + '_>>> {
        Box::pin(async { unsupported() })
    }

    fn begin_transaction(
        &self,
        _: Option<IdempotencyKey>,
        _: Option<AuditOrigin>,
    ) -> BoxFuture<'_, Result<BegunTransaction<'_>>> {
        Box::pin(async { unsupported() })
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// None: what it reads may never be committed.
    fn data_version(&self) -> Option<DataVersion> {
        None
    }

    fn change_log(&self) -> BoxFuture<'_, Result<ChangeLog>> {
        Box::pin(async { unsupported() })
    }

    fn read_changes(&self, _: i64, _: i64, _: LogReadLimits) -> BoxFuture<'_, Result<Vec<RecordChange>>> {
        Box::pin(async { unsupported() })
    }

    fn commits(&self) -> watch::Receiver<()> {
        watch::Sender::new(()).subscribe()
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn credentials(&self) -> Option<&dyn CredentialStore> {
        None
    }

    fn change_accounts(&self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.send(|reply| TransactionWork::Accounts(changes, reply)))
    }
}
