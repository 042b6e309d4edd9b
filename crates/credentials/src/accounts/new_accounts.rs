//! New accounts, with their first password.

use trefoil_engine::{AccountChange, AuditAction, Engine, TransactionEnd, TransactionResult};
use trefoil_model::error::{Error, Result};
use trefoil_model::{RecordId, Value};

use jiff::Timestamp;

use crate::accounts::account_service::{AccountRefusal, AccountService, OpenedSession, SignInOrigin};
use crate::secret_token::{SecretToken, TokenKind};

/// Who makes a new account with its password.
#[derive(Debug, Clone, Copy)]
pub enum NewAccountMaker<'l> {
    /// Whoever has the link for the first account.
    FirstLink(&'l str),
    /// Anybody, for themselves.
    SignUp,
    /// A command on the machine.
    Operator,
}

impl NewAccountMaker<'_> {
    /// The hash of the link that is used up, if there is one; a refusal for what can be none.
    fn link_hash(self) -> Result<Option<String>, AccountRefusal> {
        match self {
            NewAccountMaker::FirstLink(link) => {
                let link = SecretToken::parse(TokenKind::Link, link).ok_or(AccountRefusal::Wrong)?;
                Ok(Some(link.hash()))
            }
            NewAccountMaker::SignUp | NewAccountMaker::Operator => Ok(None),
        }
    }
}

impl AccountService {
    /// Makes an account with a password, both or neither, on behalf of whom the engine is: the operator, or whoever signs up.
    pub async fn create_account(
        &self,
        engine: &Engine,
        maker: NewAccountMaker<'_>,
        fields: Value,
        (password, again): (&str, &str),
    ) -> Result<RecordId, AccountRefusal> {
        let names = self.names_in(&fields);
        let chosen = self.choose(password, again, &names)?;
        maker.link_hash()?;
        let hash = self.state.hasher.hash(chosen.as_str()).await??;
        self.run_all(engine, async |engine: Engine| self.create_within(&engine, maker, fields, hash).await)
            .await
    }

    /// Makes an account with a link for its first password, both or neither.
    pub async fn create_with_link(
        &self,
        engine: &Engine,
        fields: Value,
    ) -> Result<SecretToken, AccountRefusal> {
        let work = async |engine: Engine| {
            let account = self.reader.key_account(self.create_record(&engine, fields).await?);
            let (token, changes) = self.new_account_link(account)?;
            engine.change_accounts(changes).await?;
            Ok(token)
        };
        self.run_all(engine, work).await
    }

    /// Runs what makes an account, all of it or nothing.
    async fn run_all<T>(
        &self,
        engine: &Engine,
        work: impl AsyncFnOnce(Engine) -> Result<T, AccountRefusal>,
    ) -> Result<T, AccountRefusal> {
        self.engine.credentials()?.prepare_accounts().await?;
        let work = async |engine: Engine| match work(engine).await {
            Ok(made) => TransactionEnd::Commit { result: Ok(made), answer: Vec::new() },
            Err(refusal) => TransactionEnd::RollBack(Err(refusal)),
        };
        match engine.run_in_transaction(None, work).await? {
            TransactionResult::Ended(result) => result,
            TransactionResult::Replayed(_) => {
                Err(Error::internal("a transaction without a key was replayed").into())
            }
        }
    }

    async fn create_within(
        &self,
        engine: &Engine,
        maker: NewAccountMaker<'_>,
        fields: Value,
        hash: String,
    ) -> Result<RecordId, AccountRefusal> {
        if let Some(hash) = maker.link_hash()? {
            // Whoever uses the link first holds its row until the end.
            let used = AccountChange::UseLink { hash, now: Timestamp::now() };
            if !engine.change_accounts(vec![used]).await? || self.has_accounts(&engine.as_operator()).await? {
                return Err(AccountRefusal::Wrong);
            }
        }
        let id = self.create_record(engine, fields).await?;
        let account = self.reader.key_account(id.clone());
        let is_first = matches!(maker, NewAccountMaker::FirstLink(_));
        let used = is_first.then(|| self.note(AuditAction::UseLink, Some(&account))).flatten();
        let set = self.note(AuditAction::SetPassword, Some(&account));
        let mut changes = vec![AccountChange::SetPassword { account: account.clone(), hash }];
        if matches!(maker, NewAccountMaker::SignUp) {
            changes.push(AccountService::self_made_mark(&account));
        }
        changes.extend(used.into_iter().chain(set));
        engine.change_accounts(changes).await?;
        Ok(id)
    }

    /// Makes the record of an account, which cannot sign in before it has a password.
    pub async fn create_record(&self, engine: &Engine, fields: Value) -> Result<RecordId> {
        engine.create_for_id(self.reader.type_name(), fields).await
    }

    /// The id in the fields of an account.
    pub fn id_in(&self, fields: &Value) -> Option<RecordId> {
        let model = self.engine.model();
        let record = model.record(self.reader.record());
        let name = &record.field(record.id_field()).name;
        let members = if let Value::Object(members) = fields { members.as_slice() } else { &[] };
        match &members.iter().find(|(own, _)| own == name)?.1 {
            // As `ID`s are written.
            Value::String(text) => RecordId::from_text(record.key_form(), text).ok(),
            id @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::List(_)
            | Value::Object(_)) => RecordId::from_value(record.key_form(), id).ok(),
        }
    }

    /// Signs in an account that was just made.
    pub async fn open_first_session(
        &self,
        id: &RecordId,
        origin: &SignInOrigin,
        presented: Option<&str>,
    ) -> Result<OpenedSession, AccountRefusal> {
        match self.find_usable(id).await? {
            Some(_) => {
                let account = self.reader.key_account(id.clone());
                self.open_session(account, Vec::new(), origin, presented, Vec::new()).await
            }
            None => Err(AccountRefusal::Wrong),
        }
    }
}
