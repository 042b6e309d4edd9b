//! Ends the sessions of accounts that a write makes unusable: they do not come back when the account does.

use futures_util::future::BoxFuture;

use trefoil_model::RecordId;
use trefoil_model::error::{Error, Result};

use crate::access::{AccountChange, KeyAccount};
use crate::engine::Engine;
use crate::plan::{Plan, TouchedAccounts};

/// How many accounts are looked at with one statement.
const LOOKED_AT: usize = 500;

impl Engine {
    /// The accounts that such writes may make unusable. Within a transaction this is asked of whoever commits it.
    pub(crate) fn touched_accounts(&self, plans: &[(usize, Plan)]) -> TouchedAccounts {
        let mut touched = TouchedAccounts::Nobody;
        if let Some(writes) = self.ending_writes().filter(|_| self.store().credentials().is_some()) {
            plans.iter().for_each(|(_, plan)| touched.add(writes.touched_by(plan)));
        }
        touched
    }

    /// Waits for a write, and ends the sessions of those accounts that cannot be used after it. If whoever asked for the
    /// write is gone before, both go on: a write that is being committed cannot be taken back.
    pub(crate) async fn end_unusable_after<T: Send + 'static>(
        &self,
        touched: TouchedAccounts,
        write: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        if touched == TouchedAccounts::Nobody {
            return write.await;
        }
        let engine = self.clone();
        let both = tokio::spawn(async move {
            let written = write.await;
            // Also after an error, which may not tell whether the write was committed.
            engine.end_unusable(touched).await;
            written
        });
        both.await.map_err(Error::internal)?
    }

    /// Ends the sessions of those accounts that cannot be used any more, after a write was committed. Who asked for it may be
    /// gone; then they end all the same.
    pub(crate) async fn end_unusable(&self, touched: TouchedAccounts) {
        if touched == TouchedAccounts::Nobody {
            return;
        }
        let ended = self.clone().end_unusable_of(touched);
        let ending = tokio::spawn(async move {
            if let Err(error) = ended.await {
                tracing::warn!(%error, "cannot end the sessions of accounts that cannot be used any more");
            }
        });
        // It says itself what went wrong.
        let _ = ending.await;
    }

    /// Ends the sessions of all accounts that cannot be used: also of those that other programs, the time or another schema made
    /// unusable.
    pub async fn end_unusable_sessions(&self) -> Result<()> {
        self.clone().end_unusable_of(TouchedAccounts::Anybody).await
    }

    /// Reads in turn, and so is part of what it is called by.
    fn end_unusable_of(self, touched: TouchedAccounts) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.end_unusable_now(touched).await })
    }

    async fn end_unusable_now(&self, touched: TouchedAccounts) -> Result<()> {
        let Some(writes) = self.ending_writes() else { return Ok(()) };
        let store = self.credentials()?;
        let type_name = &self.model().record(writes.account).name;
        let account = |id: RecordId| KeyAccount { type_name: type_name.clone(), id };
        let ids = match touched {
            TouchedAccounts::Nobody => return Ok(()),
            TouchedAccounts::Anybody => store.session_accounts(type_name).await?,
            TouchedAccounts::These(ids) => {
                let mut with_sessions = Vec::new();
                for id in ids {
                    if !store.list_sessions(&account(id.clone())).await?.is_empty() {
                        with_sessions.push(id);
                    }
                }
                with_sessions
            }
        };
        for ids in ids.chunks(LOOKED_AT) {
            let usable = self.records_meeting(writes.account, ids.to_vec(), &writes.usable).await?;
            let unusable = ids.iter().filter(|id| !usable.contains(*id)).cloned();
            let ended: Vec<_> = unusable
                .map(|id| AccountChange::EndSessions { account: account(id), except: None })
                .collect();
            if !ended.is_empty() {
                self.change_accounts(ended).await?;
            }
        }
        Ok(())
    }
}
