//! Changing the password of an account that knows the current one.

use jiff::Timestamp;

use trefoil_engine::{AccountChange, AuditAction, KeyAccount, SessionRecord};
use trefoil_model::RecordId;
use trefoil_model::error::Result;

use crate::accounts::account_service::{AccountRefusal, AccountService, OpenedSession, SignInOrigin};
use crate::accounts::known_networks::{UNKNOWN_NETWORK_RETRY, is_known};
use crate::accounts::sign_in_throttle::{ClientNetwork, TryVerdict};
use crate::passwords::PasswordVerdict;
use crate::secret_token::{SecretToken, TokenKind};

impl AccountService {
    /// Changes the password of an account that knows the current one, and ends its sessions. The one that was presented goes on
    /// under a new token: as long as before, and with the roles that a provider gave it. Whoever presented none has none then.
    pub async fn change_password(
        &self,
        id: &RecordId,
        (current, password, again): (&str, &str, &str),
        origin: &SignInOrigin,
        presented: Option<&str>,
    ) -> Result<Option<OpenedSession>, AccountRefusal> {
        let account = self.reader.key_account(id.clone());
        let usable = self.find_usable(id).await?.ok_or(AccountRefusal::Wrong)?;
        let chosen = self.choose(password, again, &self.names_of(&usable).await?)?;
        let known = self.compare_current(&account, current, origin).await?;
        let session = self.presented_session(&account, presented).await?;
        let hash = self.state.hasher.hash(chosen.as_str()).await??;
        let mut changes = vec![AccountChange::ReplaceHash { account: account.clone(), known, hash }];
        changes.extend(session.iter().map(|(hash, _)| AccountChange::ReplaceSession { hash: hash.clone() }));
        changes.extend([
            AccountChange::EndSessions { account: account.clone(), except: None },
            AccountChange::DropLink { account: account.clone() },
        ]);
        changes.extend(self.network_change(&account, origin).await?);
        changes.extend(self.note(AuditAction::SetPassword, Some(&account)));
        match session {
            Some((_, session)) => {
                let session = SessionRecord { seen: Timestamp::now(), ..session };
                self.begin_session(session, None, changes).await.map(Some)
            }
            None if self.engine.change_accounts(changes).await? => Ok(None),
            None => Err(AccountRefusal::Wrong),
        }
    }

    /// The hash of the password, if it is the current one.
    async fn compare_current(
        &self,
        account: &KeyAccount,
        current: &str,
        origin: &SignInOrigin,
    ) -> Result<String, AccountRefusal> {
        let (network, second) = (ClientNetwork::of(origin.address), self.state.second());
        // Not a login that anyone could have.
        let key = format!("\n{}", account.id_text());
        let tried = self.state.throttle.count_try(&key, network, second);
        if let TryVerdict::Refused { retry_after } = tried {
            return Err(AccountRefusal::Later { retry_after });
        }
        let stored = self.engine.credentials()?.find_password(account).await?.ok_or(AccountRefusal::Wrong)?;
        if tried == TryVerdict::OnlyKnownNetworks && !is_known(&stored, network) {
            return Err(AccountRefusal::Later { retry_after: UNKNOWN_NETWORK_RETRY });
        }
        let verdict = self.verify(current, Some(&stored), None).await;
        if !matches!(verdict, Ok(PasswordVerdict::Wrong)) {
            self.state.throttle.forgive(&key, network, second, tried);
        }
        match verdict? {
            PasswordVerdict::Right { .. } => Ok(stored.hash),
            PasswordVerdict::Wrong => Err(AccountRefusal::Wrong),
        }
    }

    /// The session that was presented and the hash of its token, if it is one of the account.
    async fn presented_session(
        &self,
        account: &KeyAccount,
        presented: Option<&str>,
    ) -> Result<Option<(String, SessionRecord)>> {
        let Some(token) = presented.and_then(|token| SecretToken::parse(TokenKind::Session, token)) else {
            return Ok(None);
        };
        let found = self.engine.credentials()?.find_sessions(vec![token.hash()]).await?;
        Ok(found.into_iter().find(|(_, session)| session.account == *account))
    }
}
