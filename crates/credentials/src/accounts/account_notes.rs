//! What the audit is told of accounts.

use trefoil_config::AuditMode;
use trefoil_engine::{AccountChange, Actor, AuditAction, AuditNote, AuditOrigin, Engine, KeyAccount};
use trefoil_model::error::Result;

use crate::accounts::account_service::{
    AccountRefusal, AccountService, OpenedSession, SignInOrigin, SignInState,
};

impl SignInState {
    /// Writes how many sign-ins failed since the last time into the audit. What cannot be written is written the next time.
    pub async fn note_failures(&self, engine: &Engine) -> Result<()> {
        let failures = self.failed.take();
        let notes: Vec<_> =
            failures.notes().into_iter().map(|note| AccountChange::Note(Box::new(note))).collect();
        if notes.is_empty() {
            return Ok(());
        }
        let written = engine.change_accounts(notes).await;
        if written.is_err() {
            self.failed.put_back(failures);
        }
        written.map(drop)
    }
}

impl AccountService {
    /// The same for what somebody asks for, as the audit tells it.
    pub fn for_actor(&self, actor: &Actor) -> AccountService {
        AccountService {
            engine: self.engine.with_origin(AuditOrigin::of_actor(actor)),
            reader: self.reader.clone(),
            settings: self.settings.clone(),
            application: self.application.clone(),
            state: self.state.clone(),
        }
    }

    /// Signs an account in, with changes before it that must all be possible: a password that was changed while it was compared
    /// begins no session. The session that was presented ends: nobody else has the new one.
    pub async fn open_session(
        &self,
        account: KeyAccount,
        roles: Vec<String>,
        origin: &SignInOrigin,
        presented: Option<&str>,
        mut changes: Vec<AccountChange>,
    ) -> Result<OpenedSession, AccountRefusal> {
        let by_account = self.engine.origin().by_account(&account);
        changes.extend(self.network_change(&account, origin).await?);
        changes.extend(self.note_by(AuditAction::SignIn, &by_account, Some(&account)));
        self.begin_session(self.new_session(account, roles, origin), presented, changes).await
    }

    /// The entry of the audit for something that is done about an account.
    pub(super) fn note(&self, action: AuditAction, account: Option<&KeyAccount>) -> Option<AccountChange> {
        self.note_by(action, self.engine.origin(), account)
    }

    pub(super) fn note_by(
        &self,
        action: AuditAction,
        origin: &AuditOrigin,
        account: Option<&KeyAccount>,
    ) -> Option<AccountChange> {
        if self.settings.audit == AuditMode::Off {
            return None;
        }
        let note = AuditNote::new(action, origin);
        let note = match account {
            Some(account) => note.about(account),
            None => note,
        };
        Some(AccountChange::Note(Box::new(note)))
    }

    /// Counts a sign-in that failed, or that was not even tried because too many had failed.
    pub fn count_failure(&self, origin: &SignInOrigin) {
        if self.settings.audit != AuditMode::Off {
            self.state.failed.count(origin.address);
        }
    }
}
