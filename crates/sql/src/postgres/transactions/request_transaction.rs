//! A transaction of one request on PostgreSQL, on a pooled connection: jobs run one after the other until its commit.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use trefoil_engine::{
    AccountChange, AuditOrigin, BegunTransaction, CancelFlag, IdempotencyKey, RowSink, StoreJob,
    StoreTransaction,
};
use trefoil_model::error::{Error, Result};

use crate::accounts::postgres::run_changes;
use crate::audit::origin_setting::with_origin;
use crate::idempotency_key::IdempotencyKeyStatus;
use crate::postgres::error::PostgresError;
use crate::postgres::run_job::run_plans;
use crate::postgres::session::PostgresSession;
use crate::postgres::{PooledConnection, PostgresStore, idempotency_keys};
use crate::statements::compile::Program;

/// An open transaction. Dropping it before the commit closes its connection and so rolls back.
struct PostgresTransaction<'s> {
    store: &'s PostgresStore,
    /// `None` after the end.
    connection: Option<PooledConnection>,
    key: Option<IdempotencyKey>,
    origin: Option<AuditOrigin>,
    cancel: CancelFlag,
}

impl PostgresStore {
    pub(crate) async fn open_transaction(
        &self,
        key: Option<IdempotencyKey>,
        origin: Option<AuditOrigin>,
    ) -> Result<BegunTransaction<'_>> {
        let connection = Some(self.connections.acquire_pooled().await?);
        let mut transaction =
            PostgresTransaction { store: self, connection, key, origin, cancel: CancelFlag::default() };
        match transaction.begin().await.map_err(PostgresError::into_error)? {
            IdempotencyKeyStatus::New => Ok(BegunTransaction::Open(Box::new(transaction))),
            IdempotencyKeyStatus::Answered(answer) => {
                transaction.roll_back().await;
                Ok(BegunTransaction::Replayed(answer))
            }
            IdempotencyKeyStatus::UsedByOther => {
                transaction.roll_back().await;
                Err(Error::KeyReused)
            }
        }
    }
}

impl PostgresTransaction<'_> {
    fn session(&self) -> Result<PostgresSession<'_>> {
        let ended = || Error::internal("the transaction has ended");
        Ok(self.store.session_on(self.connection.as_ref().ok_or_else(ended)?, &self.cancel))
    }

    /// Begins the transaction and locks the key.
    async fn begin(&self) -> Result<IdempotencyKeyStatus, PostgresError> {
        let session = self.session()?;
        let begin = with_origin("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", self.origin.as_ref());
        session.execute_control(&begin).await?;
        let Some(key) = &self.key else { return Ok(IdempotencyKeyStatus::New) };
        if !idempotency_keys::try_lock_key(session, key).await? {
            return Err(PostgresError::Plan(Error::KeyInUse));
        }
        idempotency_keys::find_key(session, key).await
    }

    async fn roll_back(&mut self) {
        if let Ok(session) = self.session()
            && session.execute_control("ROLLBACK").await.is_ok()
            && let Some(connection) = self.connection.take()
        {
            connection.release();
        }
    }

    async fn run_job(&self, job: &mut StoreJob) -> Result<(), PostgresError> {
        let programs = job.plans.iter().map(|(_, plan)| self.store.program_for(&job.model, plan));
        let programs: Vec<Arc<Program>> = programs.collect::<Result<_>>()?;
        let session = self.session()?;
        session.execute_control("SAVEPOINT plan").await?;
        run_plans(session, job, &programs).await?;
        session.execute_control("RELEASE plan").await
    }

    async fn commit_answer(&mut self, answer: &[u8]) -> Result<(), PostgresError> {
        let session = self.session()?;
        if let Some(key) = &self.key {
            idempotency_keys::store_answer(session, key, answer).await?;
        }
        session.execute_control("COMMIT").await.map_err(PostgresError::outcome_unknown_if_lost)?;
        if let Some(connection) = self.connection.take() {
            connection.release();
        }
        self.store.signal_commit();
        Ok(())
    }
}

impl StoreTransaction for PostgresTransaction<'_> {
    fn run(&mut self, mut job: StoreJob) -> BoxFuture<'_, Result<Box<dyn RowSink>>> {
        Box::pin(async move {
            self.run_job(&mut job).await.map_err(PostgresError::into_error)?;
            Ok(job.sink)
        })
    }

    fn change_accounts(&mut self, changes: Vec<AccountChange>) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let connection = self.session()?.connection;
            let changed = run_changes(connection, changes).await;
            changed.map_err(|error| connection.classify_error(error).into_error())
        })
    }

    fn commit(&mut self, answer: Vec<u8>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.commit_answer(&answer).await.map_err(PostgresError::into_error) })
    }
}
