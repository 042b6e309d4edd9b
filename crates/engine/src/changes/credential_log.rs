//! [`CredentialLog`]: what the change log says of credentials and accounts, so that no event goes out under a right that ended
//! before it.

use std::collections::HashMap;

use parking_lot::Mutex;

use trefoil_model::{Model, RecordId};

use crate::access::ActorIdentity;
use crate::changes::{ChangeBatch, ChangeFeed};

/// What stands for the type in changes of API keys. No type of a schema can have this name, so no client is told of them.
pub const API_KEY_CHANGES: &str = "API keys";

/// The same for sessions that ended or changed. The changed record is the account, of which no other change is told either.
pub const SESSION_CHANGES: &str = "sign-in sessions";

/// What the names of identities of API keys begin with, before the name of the key.
pub const KEY_IDENTITY: &str = "key:";

/// The most credentials and accounts whose last change is remembered.
const MAX_REMEMBERED: usize = 20_000;

/// A log that is further ahead is not read: it costs less to look at each credential again.
const MAX_BEHIND: i64 = 4_096;

/// The last change of each credential and account, as far as streams need it. One is made for a model.
pub struct CredentialLog {
    feed: ChangeFeed,
    /// The type of the accounts, and those of the records that rules reach from them.
    types: ActorTypeNames,
    last_changes: Mutex<LastChanges>,
    /// Admits one reader at a time: the others find what it has read.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct ActorTypeNames {
    account: Option<String>,
    reached: Vec<String>,
    /// The `if` of `@account` asks lists or other rules: any change may end an account.
    asks_relations: bool,
}

/// The last changes between two numbers.
#[derive(Default)]
struct LastChanges {
    /// Of changes up to this one nothing is known …
    after: i64,
    /// … nor of those after this one.
    until: i64,
    keys: HashMap<String, i64>,
    accounts: HashMap<RecordId, i64>,
    /// Of any credential or account, or of a record that accounts lead to.
    any: i64,
    /// Of a record that accounts lead to. Which accounts these are is not known.
    reached: i64,
}

impl CredentialLog {
    pub fn new(feed: &ChangeFeed, model: &Model) -> CredentialLog {
        let mut names = model.actor_types().into_iter().map(|record| model.record(record).name.clone());
        let account = model.access.as_ref().and_then(|access| access.account.as_ref());
        let types = ActorTypeNames {
            account: names.next(),
            reached: names.collect(),
            asks_relations: account.is_some_and(|account| account.usable.asks_relations()),
        };
        CredentialLog {
            feed: feed.clone(),
            types,
            last_changes: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// The last change that this process knows of.
    pub fn known_head(&self) -> i64 {
        self.feed.known_head()
    }

    /// Whether no change after `since` and up to `until` is about the credential or the account of an identity, nor about a
    /// record that its account leads to. In doubt false. `until` must not be beyond [`CredentialLog::known_head`].
    ///
    /// With the head as it was after an event was read this says that nothing committed before the event ended the right
    /// to it: the log has all changes in the order of their commits, up to those that were numbered together.
    pub async fn is_unchanged(&self, identity: &ActorIdentity, since: i64, until: i64) -> bool {
        if self.types.asks_relations && identity.account.is_some() {
            return false;
        }
        self.read_until(until).await;
        let last_changes = self.last_changes.lock();
        last_changes.after <= since && last_changes.last_about(identity) <= since
    }

    /// The last change that this process knows of, if it is known without reading the log that none after `since` is about
    /// the identity. In doubt `None`.
    pub fn known_unchanged(&self, identity: &ActorIdentity, since: i64) -> Option<i64> {
        let until = self.known_head();
        if until <= since {
            return Some(since);
        }
        if self.types.asks_relations && identity.account.is_some() {
            return None;
        }
        let mut last_changes = self.last_changes.lock();
        // Whoever follows the log has read it already: the first of many streams takes it from there.
        while last_changes.until < until
            && let Some(batch) = self.feed.known_batch(last_changes.until)
        {
            last_changes.add(&batch, &self.types);
        }
        let is_known = last_changes.until >= until && last_changes.after <= since;
        // Nearly all changes are about nobody, and all streams ask after each.
        let is_unchanged = || last_changes.any <= since || last_changes.last_about(identity) <= since;
        (is_known && is_unchanged()).then_some(until)
    }

    async fn read_until(&self, until: i64) {
        if self.last_changes.lock().until >= until {
            return;
        }
        let _turn = self.reading.lock().await;
        loop {
            let from = self.last_changes.lock().until;
            if from >= until {
                return;
            }
            if until - from > MAX_BEHIND {
                return self.last_changes.lock().begin_at(until);
            }
            match self.feed.changes_after(from).await {
                Ok(batch) => self.last_changes.lock().add(&batch, &self.types),
                // They are no longer kept.
                Err(_) => self.last_changes.lock().begin_at(until),
            }
        }
    }
}

impl LastChanges {
    fn begin_at(&mut self, number: i64) {
        *self = LastChanges { after: number, until: number, ..LastChanges::default() };
    }

    fn add(&mut self, batch: &ChangeBatch, types: &ActorTypeNames) {
        for change in &batch.changes {
            let (number, id) = (change.number, &change.record_id);
            if change.type_name == API_KEY_CHANGES {
                self.any = number;
                if let RecordId::Text(name) = id {
                    self.keys.insert(name.to_string(), number);
                }
            } else if types.account.as_ref() == Some(&change.type_name) || change.type_name == SESSION_CHANGES
            {
                self.any = number;
                self.accounts.insert(id.clone(), number);
            }
            // A type of accounts may be reached from them, too: `me.manager.team`.
            if types.reached.contains(&change.type_name) {
                (self.any, self.reached) = (number, number);
            }
        }
        self.until = self.until.max(batch.until);
        if self.keys.len() + self.accounts.len() > MAX_REMEMBERED {
            self.begin_at(self.until);
        }
    }

    /// The last change that may be about an identity.
    fn last_about(&self, identity: &ActorIdentity) -> i64 {
        let key = identity.name.strip_prefix(KEY_IDENTITY).and_then(|name| self.keys.get(name));
        let account = identity.account.as_ref();
        let own = account.and_then(|account| self.accounts.get(&account.id));
        let reached = account.map_or(0, |_| self.reached);
        key.copied().unwrap_or(0).max(own.copied().unwrap_or(0)).max(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use trefoil_model::{StoredValue, Value};

    use crate::access::AccountFacts;
    use crate::changes::{ChangeKind, RecordChange};

    fn identity(name: &str, account: Option<i64>) -> ActorIdentity {
        let facts = |id| AccountFacts {
            id: RecordId::Number(id),
            label: String::new(),
            model_hash: 0,
            values: Vec::new(),
        };
        let (roles, claims) = (Vec::new(), Value::Null);
        ActorIdentity { name: name.to_owned(), roles, account: account.map(facts), claims, expires: None }
    }

    /// What is known after these changes, which begin after number 10.
    fn known(changes: &[(&str, RecordId)]) -> LastChanges {
        let change = |(number, (type_name, record_id)): (i64, &(&str, RecordId))| RecordChange {
            number,
            type_name: (*type_name).to_owned(),
            kind: ChangeKind::Deleted,
            record_id: record_id.clone(),
            version: 1,
            image: Arc::new(Vec::<(String, StoredValue)>::new()),
        };
        let changes: Vec<RecordChange> = (11..).zip(changes).map(change).collect();
        let mut known = LastChanges::default();
        known.begin_at(10);
        let types = ActorTypeNames {
            account: Some("User".to_owned()),
            reached: vec!["Team".to_owned()],
            asks_relations: false,
        };
        let until = 10 + i64::try_from(changes.len()).unwrap();
        known.add(&ChangeBatch { changes, until }, &types);
        known
    }

    #[test]
    fn changes_are_told_apart_by_credential_and_account() {
        let number = RecordId::Number;
        let known = known(&[
            (API_KEY_CHANGES, RecordId::from("ci")),
            ("User", number(7)),
            ("Post", number(8)),
            ("User", RecordId::from("ci")),
        ]);
        assert_eq!((known.after, known.until, known.any), (10, 14, 14));
        for (name, account, last) in [
            ("key:ci", None, 11),
            ("key:ci", Some(8), 11),
            ("key:other", Some(7), 12),
            ("key:ci", Some(7), 12),
            ("token:1/ci", None, 0),
            ("key:other", Some(8), 0),
        ] {
            assert_eq!(known.last_about(&identity(name, account)), last, "{name} {account:?}");
        }
    }

    #[test]
    fn records_that_accounts_lead_to_concern_all_accounts() {
        let known = known(&[("Team", RecordId::Number(1)), ("Post", RecordId::Number(1))]);
        assert_eq!(known.any, 11);
        assert_eq!(known.last_about(&identity("key:ci", Some(7))), 11);
        assert_eq!(known.last_about(&identity("key:ci", None)), 0);
    }

    #[test]
    fn what_is_remembered_is_limited() {
        let many: Vec<_> = (0..=MAX_REMEMBERED as i64).map(|id| ("User", RecordId::Number(id))).collect();
        let known = known(&many);
        assert!(known.accounts.is_empty());
        assert_eq!((known.after, known.until), (11 + MAX_REMEMBERED as i64, 11 + MAX_REMEMBERED as i64));
    }
}
