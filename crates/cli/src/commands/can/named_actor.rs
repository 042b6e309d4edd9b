//! The actor that `trefoil can` is about.

use std::sync::Arc;

use clap::ArgMatches;

use trefoil_credentials::{AccountFinding, AccountKey, AccountReader, CredentialRefusal, key_identity};
use trefoil_engine::{ActorIdentity, Engine};
use trefoil_model::{Model, Value};

use crate::command_error::CommandError;
use crate::commands::key::{find_account, known_roles, unknown_key};

pub struct NamedActor {
    /// `ada@example.org`, `key ci`, `somebody with role EDITOR`, `anonymous`
    pub title: String,
    /// Why every request of the actor gets 401, or else who it is.
    pub identity: Result<Option<Arc<ActorIdentity>>, String>,
}

impl NamedActor {
    pub async fn find(
        matches: &ArgMatches,
        model: &Model,
        engine: Option<&Engine>,
    ) -> Result<NamedActor, CommandError> {
        let text = |name: &str| matches.get_one::<String>(name);
        if let (Some(login), Some(engine)) = (text("as"), engine) {
            return NamedActor::of_login(login, engine).await;
        }
        if let (Some(name), Some(engine)) = (text("key"), engine) {
            return NamedActor::of_key(name, engine).await;
        }
        let Some(access) = model.access.as_ref().filter(|_| !matches.get_flag("anonymous")) else {
            return Ok(NamedActor { title: "anonymous".to_owned(), identity: Ok(None) });
        };
        let roles = known_roles(matches, access)?;
        let title = match roles.as_slice() {
            [role] => format!("somebody with role {role}"),
            roles => format!("somebody with roles {}", roles.join(", ")),
        };
        let (name, claims) = ("role".to_owned(), Value::Object(Vec::new()));
        let identity = ActorIdentity { name, roles, account: None, claims, expires: None };
        Ok(NamedActor { title, identity: Ok(Some(Arc::new(identity))) })
    }

    async fn of_login(login: &str, engine: &Engine) -> Result<NamedActor, CommandError> {
        let (reader, id) = find_account(login, engine).await?;
        let identity = match reader.find(AccountKey::Id(&id)).await.map_err(CommandError::failed)? {
            AccountFinding::Usable(account) => Ok(Some(Arc::new(account.into_identity()))),
            AccountFinding::Missing | AccountFinding::Unusable => {
                Err(format!("the account {login} cannot be used: `if` of @account does not hold for it"))
            }
        };
        Ok(NamedActor { title: login.to_owned(), identity })
    }

    async fn of_key(name: &str, engine: &Engine) -> Result<NamedActor, CommandError> {
        let credentials = engine.credentials().map_err(CommandError::failed)?;
        let keys = credentials.list_api_keys().await.map_err(CommandError::failed)?;
        let key = keys.iter().find(|key| key.name == name).ok_or_else(|| unknown_key(name, &keys))?;
        let identity = match key_identity(key, AccountReader::new(engine, &[]).as_ref()).await {
            Ok(identity) => Ok(Some(Arc::new(identity))),
            Err(CredentialRefusal::Bad(reason)) => Err(reason),
            Err(CredentialRefusal::Failed(error)) => return Err(CommandError::failed(error.full_text())),
            Err(CredentialRefusal::NotYet { .. }) => unreachable!("a key needs no issuer"),
        };
        Ok(NamedActor { title: format!("key {name}"), identity })
    }
}
