//! One-time links for a first or a new password, and for the first account.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use trefoil_engine::{AccountChange, AuditAction, Engine, KeyAccount, LinkRecord, ListSlice, Listing};
use trefoil_model::RecordId;
use trefoil_model::error::{Error, Result};

use crate::account_reader::{AccountFinding, AccountKey, UsableAccount};
use crate::accounts::account_service::{AccountRefusal, AccountService, later};
use crate::accounts::sign_in_throttle::{ClientNetwork, TryVerdict};
use crate::secret_token::{SecretToken, TokenKind};

/// How long the link for the first account is good.
const FIRST_LINK_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// A link that is good.
#[derive(Debug)]
pub enum GoodLink {
    /// Makes the first account.
    First,
    /// Sets the password of this account.
    Password(UsableAccount),
}

impl AccountService {
    /// A link for a first or a new password of an account. The one before is not good any more.
    pub async fn make_link(&self, id: &RecordId) -> Result<SecretToken> {
        let (token, changes) = self.new_account_link(self.reader.key_account(id.clone()))?;
        self.engine.change_accounts(changes).await?;
        Ok(token)
    }

    /// A link for the first account, if there is none.
    pub async fn make_first_link(&self) -> Result<Option<SecretToken>> {
        if self.has_accounts(&self.engine).await? {
            return Ok(None);
        }
        let expires = Timestamp::now().checked_add(FIRST_LINK_LIFETIME).map_err(Error::internal)?;
        self.put_link(LinkRecord { account: None, expires }).await.map(Some)
    }

    async fn put_link(&self, link: LinkRecord) -> Result<SecretToken> {
        let (token, changes) = self.new_link(link)?;
        self.engine.change_accounts(changes).await?;
        Ok(token)
    }

    /// A link with the changes that make it.
    fn new_link(&self, link: LinkRecord) -> Result<(SecretToken, Vec<AccountChange>)> {
        let token = SecretToken::generate(TokenKind::Link).map_err(Error::internal)?;
        let note = self.note(AuditAction::MakeLink, link.account.as_ref());
        let mut changes = vec![AccountChange::SetLink { hash: token.hash(), link }];
        changes.extend(note);
        Ok((token, changes))
    }

    /// The changes that make a link for an account.
    pub(super) fn new_account_link(&self, account: KeyAccount) -> Result<(SecretToken, Vec<AccountChange>)> {
        let expires = later(Timestamp::now(), self.settings.link_lifetime);
        self.new_link(LinkRecord { account: Some(account), expires })
    }

    /// Whether there is any account.
    pub(super) async fn has_accounts(&self, engine: &Engine) -> Result<bool> {
        let listing = Listing { slice: ListSlice::Range { offset: 0, limit: Some(1) }, ..Listing::default() };
        Ok(!engine.list(self.reader.type_name(), listing).await?.is_empty())
    }

    pub async fn is_without_accounts(&self) -> Result<bool> {
        Ok(!self.has_accounts(&self.engine).await?)
    }

    /// What a link is good for. To ask changes nothing.
    pub async fn find_link(&self, token: &str, address: Option<IpAddr>) -> Result<GoodLink, AccountRefusal> {
        let (network, second) = (ClientNetwork::of(address), self.state.second());
        if let TryVerdict::Refused { retry_after } = self.state.throttle.count_link(network, second) {
            return Err(AccountRefusal::Later { retry_after });
        }
        let token = SecretToken::parse(TokenKind::Link, token).ok_or(AccountRefusal::Wrong)?;
        let link = self.engine.credentials()?.find_link(&token.hash()).await?;
        let link = link.filter(|link| link.expires > Timestamp::now()).ok_or(AccountRefusal::Wrong)?;
        let good = match link.account {
            None if self.has_accounts(&self.engine).await? => return Err(AccountRefusal::Wrong),
            None => GoodLink::First,
            Some(account) if account.type_name == self.reader.type_name() => {
                match self.reader.find(AccountKey::Id(&account.id)).await? {
                    AccountFinding::Usable(account) => GoodLink::Password(account),
                    AccountFinding::Missing | AccountFinding::Unusable => return Err(AccountRefusal::Wrong),
                }
            }
            Some(_) => return Err(AccountRefusal::Wrong),
        };
        self.state.throttle.forgive_link(network, second);
        Ok(good)
    }

    /// Uses a link up: the account has this password, and all its sessions end. Two uses at once are one.
    pub async fn use_link(
        &self,
        token: &str,
        account: &UsableAccount,
        password: &str,
        again: &str,
    ) -> Result<(), AccountRefusal> {
        let chosen = self.choose(password, again, &self.names_of(account).await?)?;
        let token = SecretToken::parse(TokenKind::Link, token).ok_or(AccountRefusal::Wrong)?;
        let hash = self.state.hasher.hash(chosen.as_str()).await??;
        let account = self.reader.key_account(account.facts.id.clone());
        let notes = [AuditAction::UseLink, AuditAction::SetPassword];
        let notes: Vec<_> = notes.iter().filter_map(|action| self.note(*action, Some(&account))).collect();
        let mut changes = vec![
            AccountChange::UseLink { hash: token.hash(), now: Timestamp::now() },
            AccountChange::SetPassword { account: account.clone(), hash },
            AccountService::no_self_made_mark(&account),
            AccountChange::EndSessions { account, except: None },
        ];
        changes.extend(notes);
        match self.engine.change_accounts(changes).await? {
            true => Ok(()),
            false => Err(AccountRefusal::Wrong),
        }
    }
}
