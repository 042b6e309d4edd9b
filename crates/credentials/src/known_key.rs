//! [`KnownKey`]: an API key as it was last looked up, where it may be used, and when it was.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;

use trefoil_config::{IpNetwork, NetworkListSyntax, SettingSyntax};
use trefoil_engine::changes::KEY_IDENTITY;
use trefoil_engine::{ActorIdentity, ApiKeyRecord, Engine};
use trefoil_model::Value;

use crate::account_reader::{AccountFinding, AccountReader, UsableAccount};
use crate::credential_refusal::CredentialRefusal;

const SECONDS_OF_DAY: i64 = 86_400;

/// The uses of keys that were recorded.
pub struct KeyUses {
    engine: Engine,
    /// The day of the last one, by hash.
    marked: Mutex<HashMap<String, Date>>,
}

/// A key as it was in one version.
pub struct KnownKey {
    pub hash: String,
    pub record: ApiKeyRecord,
    /// Where it may be used; anywhere without it.
    networks: Option<Vec<IpNetwork>>,
    /// The last day of which a use is recorded, since 1970.
    marked_day: AtomicI64,
}

impl KeyUses {
    pub fn new(engine: &Engine) -> KeyUses {
        KeyUses { engine: engine.clone(), marked: Mutex::default() }
    }

    /// Records the day of a use, once a day and without making the request wait.
    pub fn mark(self: &Arc<Self>, key: &Arc<KnownKey>, now: Timestamp) {
        let day = now.as_second().div_euclid(SECONDS_OF_DAY);
        if key.marked_day.swap(day, Ordering::Relaxed) == day {
            return;
        }
        let today = now.to_zoned(TimeZone::UTC).date();
        if key.record.last_used.is_some_and(|day| day >= today)
            || self.marked.lock().insert(key.hash.clone(), today) == Some(today)
        {
            return;
        }
        let (uses, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            let result = match uses.engine.credentials() {
                Ok(store) => store.mark_api_key_used(&key.hash, today).await,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                tracing::warn!(%error, "cannot record the use of an API key");
                uses.marked.lock().remove(&key.hash);
                key.marked_day.store(i64::MIN, Ordering::Relaxed);
            }
        });
    }
}

/// Whom a key proves now, wherever it is used from.
pub async fn key_identity(
    record: &ApiKeyRecord,
    accounts: Option<&AccountReader>,
) -> Result<ActorIdentity, CredentialRefusal> {
    check_expiry(record, Timestamp::now())?;
    identity_of_key(record, AccountReader::find_of(record.account.as_ref(), accounts).await?)
}

fn check_expiry(record: &ApiKeyRecord, now: Timestamp) -> Result<(), CredentialRefusal> {
    if record.expires.is_some_and(|expires| expires <= now) {
        return Err(CredentialRefusal::Bad(format!("the API key {} has expired", record.name)));
    }
    Ok(())
}

/// The identity of a key with what was found of its account.
pub fn identity_of_key(
    record: &ApiKeyRecord,
    account: Option<AccountFinding>,
) -> Result<ActorIdentity, CredentialRefusal> {
    let account = match account {
        None => None,
        Some(AccountFinding::Usable(UsableAccount { facts, .. })) => Some(facts),
        Some(AccountFinding::Missing | AccountFinding::Unusable) => {
            let reason = format!("the account of the API key {} is gone or cannot be used", record.name);
            return Err(CredentialRefusal::Bad(reason));
        }
    };
    Ok(ActorIdentity {
        name: format!("{KEY_IDENTITY}{}", record.name),
        roles: record.roles.clone(),
        account,
        claims: Value::Object(Vec::new()),
        expires: record.expires,
    })
}

impl KnownKey {
    pub fn new(hash: String, record: ApiKeyRecord) -> KnownKey {
        // What cannot be read allows nothing.
        let networks = (!record.networks.is_empty())
            .then(|| NetworkListSyntax::read(&record.networks.join(",")).unwrap_or_default());
        KnownKey { hash, record, networks, marked_day: AtomicI64::new(i64::MIN) }
    }

    /// Refuses the key at a time or from a network that it is not for.
    pub fn check_use(&self, address: Option<IpAddr>, now: Timestamp) -> Result<(), CredentialRefusal> {
        check_expiry(&self.record, now)?;
        let Some(networks) = &self.networks else { return Ok(()) };
        let is_inside =
            address.is_some_and(|address| networks.iter().any(|network| network.contains(address)));
        if is_inside {
            return Ok(());
        }
        Err(CredentialRefusal::Bad(format!("the API key {} is not for this network", self.record.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_for_their_time_and_networks() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let check = |expires: Option<i64>, networks: &[&str], address: Option<&str>| {
            let record = ApiKeyRecord {
                name: "ci".to_owned(),
                roles: Vec::new(),
                account: None,
                expires: expires.map(|seconds| Timestamp::from_second(seconds).unwrap()),
                networks: networks.iter().map(|network| (*network).to_owned()).collect(),
                created: now,
                last_used: None,
            };
            let key = KnownKey::new(String::new(), record);
            key.check_use(address.map(|address| address.parse().unwrap()), now).is_ok()
        };
        assert!(check(None, &[], None));
        assert!(check(Some(1_800_000_001), &[], None));
        assert!(!check(Some(1_800_000_000), &[], None));
        let networks = ["10.0.0.0/8", "2001:db8::/32"];
        for inside in ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7"] {
            assert!(check(None, &networks, Some(inside)), "{inside}");
        }
        for outside in ["11.0.0.1", "127.0.0.1", "::1", "2001:db9::"] {
            assert!(!check(None, &networks, Some(outside)), "{outside}");
        }
        assert!(!check(None, &networks, None));
        assert!(!check(None, &["everywhere"], Some("10.1.2.3")));
    }
}
