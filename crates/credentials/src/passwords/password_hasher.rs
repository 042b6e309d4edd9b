//! [`PasswordHasher`]: argon2id with a bound on how many hash at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use trefoil_config::AccountSettings;
use trefoil_model::error::{Error, Result};

use crate::passwords::hashing_threads::HashingThreads;

/// The most that wait for their turn.
const MAX_WAITING: usize = 64;

/// What clients are told to wait where more come.
const BUSY_RETRY: Duration = Duration::from_secs(2);

/// A stored hash that asks for more than any setting allows is not computed: kibibytes and rounds.
const MAX_STORED_MEMORY: u32 = 4 << 20;
const MAX_STORED_ROUNDS: u32 = 100;

const KIBIBYTE: usize = 1 << 10;

/// Hashes passwords. One is shared by all requests of the process.
pub struct PasswordHasher {
    argon2: Argon2<'static>,
    threads: HashingThreads,
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Of no password, where nobody has one yet: to compare costs the same. Made when the first one is compared.
    dummy: Arc<OnceLock<String>>,
}

/// What a password is to a stored hash.
#[derive(Debug, PartialEq, Eq)]
pub enum PasswordVerdict {
    Wrong,
    Right {
        /// The same password hashed with the settings of now, if these are stronger.
        renewed: Option<String>,
    },
}

/// Too many passwords are being hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashingBusy {
    pub retry_after: Duration,
}

/// Counts who waits for as long as they wait.
struct WaitingGuard<'h>(&'h AtomicUsize);

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PasswordHasher {
    /// Half of the cores hash at once.
    pub fn new(settings: &AccountSettings) -> Result<PasswordHasher> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let memory = u32::try_from(settings.password_memory / KIBIBYTE).unwrap_or(u32::MAX);
        let params = Params::new(memory, settings.password_rounds, 1, None).map_err(Error::internal)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let slots = (cores / 2).max(1);
        Ok(PasswordHasher {
            argon2,
            threads: HashingThreads::new(slots),
            slots: Arc::new(Semaphore::new(slots)),
            waiting: AtomicUsize::new(0),
            dummy: Arc::default(),
        })
    }

    /// Hashes a new password.
    pub async fn hash(&self, password: &str) -> Result<Result<String>, HashingBusy> {
        let (argon2, password) = (self.argon2.clone(), password.to_owned());
        self.run(move || hash_now(&argon2, &password)).await
    }

    /// Compares a password with a stored hash. Without one it is wrong, and takes as long as to compare it with `like`, the hash
    /// of another account: hashes that were made under other settings take other times.
    pub async fn verify(
        &self,
        password: &str,
        stored: Option<&str>,
        like: Option<&str>,
    ) -> Result<Result<PasswordVerdict>, HashingBusy> {
        let (argon2, password, dummy) = (self.argon2.clone(), password.to_owned(), self.dummy.clone());
        let is_own = stored.is_some();
        let compared = stored.or(like).map(str::to_owned);
        let compare = move || {
            let compared = match &compared {
                Some(compared) => compared,
                None => {
                    if dummy.get().is_none() {
                        // Another thread may have been faster.
                        let _ = dummy.set(hash_now(&argon2, "")?);
                    }
                    dummy.get().map_or("", String::as_str)
                }
            };
            match verify_now(&argon2, &password, compared) {
                Ok(Some(known)) if is_own => {
                    Ok(PasswordVerdict::Right { renewed: renewed(&argon2, &known, &password)? })
                }
                Err(error) if is_own => Err(error),
                Ok(_) | Err(_) => Ok(PasswordVerdict::Wrong),
            }
        };
        self.run(compare).await
    }

    /// Runs the work on a thread that may be busy for long, in its turn. The slot belongs to the work: a client that hangs up
    /// does not free it before the work is done.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Result<T>, HashingBusy> {
        let slot = self.wait_for_slot().await?;
        let ran = self.threads.run(move || {
            let result = work();
            drop(slot);
            result
        });
        Ok(ran.await.and_then(|result| result))
    }

    async fn wait_for_slot(&self) -> Result<OwnedSemaphorePermit, HashingBusy> {
        let busy = HashingBusy { retry_after: BUSY_RETRY };
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            return Ok(slot);
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(busy);
        }
        let _waiting = WaitingGuard(&self.waiting);
        self.slots.clone().acquire_owned().await.map_err(|_| busy)
    }
}

fn hash_now(argon2: &Argon2<'static>, password: &str) -> Result<String> {
    let hash = argon2.hash_password(password.as_bytes()).map_err(Error::internal)?;
    Ok(hash.to_string())
}

/// The settings that a password was hashed with, if it is the right one.
fn verify_now(argon2: &Argon2<'static>, password: &str, stored: &str) -> Result<Option<Params>> {
    let unreadable =
        |error: &dyn std::fmt::Display| Error::internal(format!("a stored password hash: {error}"));
    let hash = PasswordHash::new(stored).map_err(|error| unreadable(&error))?;
    let known = Params::try_from(&hash).map_err(|error| unreadable(&error))?;
    if known.m_cost() > MAX_STORED_MEMORY || known.t_cost() > MAX_STORED_ROUNDS {
        return Err(unreadable(&"it asks for more than auth.password-memory and auth.password-rounds can"));
    }
    match argon2.verify_password(password.as_bytes(), &hash) {
        Ok(()) => Ok(Some(known)),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(None),
        Err(error) => Err(unreadable(&error)),
    }
}

/// The password hashed with the settings of now, if these are stronger.
fn renewed(argon2: &Argon2<'static>, known: &Params, password: &str) -> Result<Option<String>> {
    let now = argon2.params();
    let is_weaker = known.m_cost() < now.m_cost() || known.t_cost() < now.t_cost();
    is_weaker.then(|| hash_now(argon2, password)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hasher(memory: usize, rounds: u32) -> PasswordHasher {
        let settings = AccountSettings {
            password_memory: memory * KIBIBYTE,
            password_rounds: rounds,
            ..AccountSettings::default()
        };
        PasswordHasher::new(&settings).expect("possible")
    }

    #[tokio::test]
    async fn only_the_same_password_is_right() {
        let hasher = hasher(64, 1);
        let hash = hasher.hash("a long password").await.expect("free").expect("hashed");
        assert!(hash.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{hash}");
        assert_ne!(hasher.hash("a long password").await.expect("free").expect("hashed"), hash);
        let right = PasswordVerdict::Right { renewed: None };
        for (password, stored, expected) in [
            ("a long password", Some(&*hash), &right),
            ("a long passwor", Some(&hash), &PasswordVerdict::Wrong),
            ("A long password", Some(&hash), &PasswordVerdict::Wrong),
            ("a long password ", Some(&hash), &PasswordVerdict::Wrong),
            ("", Some(&hash), &PasswordVerdict::Wrong),
            ("", None, &PasswordVerdict::Wrong),
        ] {
            let verdict = hasher.verify(password, stored, None).await.expect("free").expect("compared");
            assert_eq!(verdict, *expected, "{password:?}");
        }
        assert!(hasher.verify("x", Some("$argon2id$broken"), None).await.expect("free").is_err());
    }

    #[tokio::test]
    async fn stronger_settings_are_taken_over() {
        let hash = hasher(64, 1).hash("a long password").await.expect("free").expect("hashed");
        for stronger in [hasher(128, 1), hasher(64, 2)] {
            let verdict =
                stronger.verify("a long password", Some(&hash), None).await.expect("free").expect("compared");
            let PasswordVerdict::Right { renewed: Some(renewed) } = verdict else { panic!("{verdict:?}") };
            let again = stronger.verify("a long password", Some(&renewed), None).await.expect("free");
            assert_eq!(again.expect("compared"), PasswordVerdict::Right { renewed: None });
            // A weaker setting does not weaken what is there.
            let weaker = hasher(64, 1).verify("a long password", Some(&renewed), None).await.expect("free");
            assert_eq!(weaker.expect("compared"), PasswordVerdict::Right { renewed: None });
        }
        // Settings that were lowered far keep everybody in.
        let costly = hasher(4_096, 5).hash("a long password").await.expect("free").expect("hashed");
        let verdict = hasher(64, 1).verify("a long password", Some(&costly), None).await.expect("free");
        assert_eq!(verdict.expect("compared"), PasswordVerdict::Right { renewed: None });
        let excessive = costly.replace("t=5", "t=101");
        assert!(
            hasher(64, 1).verify("a long password", Some(&excessive), None).await.expect("free").is_err()
        );
    }

    #[tokio::test]
    async fn nobodys_password_takes_as_long_as_that_of_others() {
        let costly = hasher(16 << 10, 2).hash("a long password").await.expect("free").expect("hashed");
        let hasher = hasher(64, 1);
        let take = async |stored: Option<&str>, like: Option<&str>| {
            let began = std::time::Instant::now();
            let verdict = hasher.verify("a long password", stored, like).await.expect("free");
            (verdict.expect("compared"), began.elapsed())
        };
        let (right, of_own) = take(Some(&costly), None).await;
        assert_eq!(right, PasswordVerdict::Right { renewed: None });
        // It is not told that it is somebody else's.
        let (wrong, like_others) = take(None, Some(&costly)).await;
        assert_eq!(wrong, PasswordVerdict::Wrong);
        assert!(like_others > of_own / 4, "{like_others:?} {of_own:?}");
        assert_eq!(take(None, Some("$argon2id$broken")).await.0, PasswordVerdict::Wrong);
        assert_eq!(take(None, None).await.0, PasswordVerdict::Wrong);
    }

    #[tokio::test]
    async fn more_than_may_wait_are_turned_away() {
        let hasher = Arc::new(hasher(64, 1));
        let taken =
            hasher.slots.clone().acquire_many_owned(u32::try_from(hasher.slots.available_permits()).unwrap());
        let taken = taken.await.expect("open");
        let wait = || {
            let hasher = hasher.clone();
            tokio::spawn(async move { hasher.hash("a long password").await.is_ok() })
        };
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| wait()).collect();
        while hasher.waiting.load(Ordering::Relaxed) < MAX_WAITING {
            tokio::task::yield_now().await;
        }
        assert_eq!(hasher.hash("one more").await.err(), Some(HashingBusy { retry_after: BUSY_RETRY }));
        // Those who hang up make room.
        waiting[0].abort();
        while hasher.waiting.load(Ordering::Relaxed) == MAX_WAITING {
            tokio::task::yield_now().await;
        }
        drop(taken);
        for (number, waited) in waiting.into_iter().enumerate().skip(1) {
            assert!(waited.await.expect("ends"), "{number}");
        }
        assert_eq!(hasher.waiting.load(Ordering::Relaxed), 0);
    }
}
