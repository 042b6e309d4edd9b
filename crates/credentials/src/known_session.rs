//! [`KnownSession`]: a session as it was last looked up, and when it was used.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use trefoil_engine::{ActorIdentity, ChangeFeed, SessionRecord};

use crate::account_reader::AccountFinding;
use crate::credential_refusal::CredentialRefusal;

/// How often uses are written, all together.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// By how much the clocks of nodes may differ.
const CLOCK_MARGIN: SignedDuration = SignedDuration::from_hours(24);

/// A session as it was in one version.
pub struct KnownSession {
    pub hash: String,
    pub record: SessionRecord,
    /// The last use that this process knows of, in seconds since 1970.
    used: AtomicI64,
    /// The last one that is written, or will be.
    marked: AtomicI64,
}

/// The uses of sessions that are not written yet.
pub struct SessionUses {
    feed: ChangeFeed,
    /// The last use by hash. Someone will write them as long as there are any.
    unwritten: Mutex<HashMap<String, Timestamp>>,
}

impl KnownSession {
    pub fn new(hash: String, record: SessionRecord) -> KnownSession {
        // A clock that was ahead makes no session last longer.
        let seen = record.seen.min(Timestamp::now()).as_second();
        KnownSession { hash, record, used: AtomicI64::new(seen), marked: AtomicI64::new(seen) }
    }

    /// Refuses the session after its end, or if it was not used for too long.
    pub fn check_use(&self, now: Timestamp, idle: SignedDuration) -> Result<(), CredentialRefusal> {
        if record_is_ahead(&self.record, now) {
            return Err(CredentialRefusal::Bad("a session began in the future".to_owned()));
        }
        let unused = now.as_second().saturating_sub(self.used.load(Ordering::Relaxed));
        if self.record.expires <= now || unused >= idle.as_secs() {
            return Err(CredentialRefusal::Bad("a session has expired".to_owned()));
        }
        Ok(())
    }
}

/// Whether a session began so far in the future that the clock of whoever began it was wrong, and so is its end.
fn record_is_ahead(record: &SessionRecord, now: Timestamp) -> bool {
    record.created.duration_since(now) > CLOCK_MARGIN
}

impl SessionUses {
    pub fn new(feed: &ChangeFeed) -> SessionUses {
        SessionUses { feed: feed.clone(), unwritten: Mutex::default() }
    }

    /// Records a use, without making the request wait. Uses are written once a minute: each write is a new version of the data.
    pub fn mark(self: &Arc<Self>, session: &KnownSession, now: Timestamp) {
        let second = now.as_second();
        session.used.fetch_max(second, Ordering::Relaxed);
        let marked = session.marked.load(Ordering::Relaxed);
        if second - marked < WRITE_INTERVAL.as_secs() as i64
            || session.marked.compare_exchange(marked, second, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let mut unwritten = self.unwritten.lock();
        let is_first = unwritten.is_empty();
        unwritten.insert(session.hash.clone(), now);
        drop(unwritten);
        if is_first {
            let uses = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(WRITE_INTERVAL / 4).await;
                uses.write().await;
            });
        }
    }

    async fn write(&self) {
        let seen: Vec<_> = self.unwritten.lock().drain().collect();
        let Some(store) = self.feed.store().credentials() else { return };
        if let Err(error) = store.mark_sessions_seen(seen).await {
            // The next use is written with the next ones.
            tracing::warn!(%error, "cannot record the use of sessions");
        }
    }
}

/// The identity of a session with what was found of its account.
pub fn identity_of_session(
    record: &SessionRecord,
    account: Option<AccountFinding>,
) -> Result<ActorIdentity, CredentialRefusal> {
    let Some(AccountFinding::Usable(account)) = account else {
        let reason = "the account of a session is gone or cannot be used";
        return Err(CredentialRefusal::Bad(reason.to_owned()));
    };
    let mut identity = account.into_identity();
    identity.roles.extend_from_slice(&record.roles);
    identity.roles.sort();
    identity.roles.dedup();
    identity.expires = Some(record.expires);
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use trefoil_engine::KeyAccount;
    use trefoil_model::RecordId;

    use super::*;

    #[test]
    fn sessions_end_in_time_and_when_they_are_not_used() {
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        let account = KeyAccount { type_name: "User".to_owned(), id: RecordId::Number(7) };
        let record = SessionRecord {
            account,
            roles: Vec::new(),
            created: at(0),
            seen: at(0),
            expires: at(1_000),
            address: None,
            browser: None,
        };
        let session = KnownSession::new("hash".to_owned(), record);
        let is_good = |second: i64| session.check_use(at(second), SignedDuration::from_secs(400)).is_ok();
        assert!(is_good(0) && is_good(399));
        assert!(!is_good(400));
        session.used.store(at(399).as_second(), Ordering::Relaxed);
        assert!(is_good(798) && !is_good(799));
        session.used.store(at(999).as_second(), Ordering::Relaxed);
        assert!(is_good(999) && !is_good(1_000));
        // A clock that jumps back a little ends nothing; one that was far ahead makes no session that lasts.
        assert!(is_good(-5_000) && is_good(-86_000));
        assert!(!is_good(-87_000));
    }
}
