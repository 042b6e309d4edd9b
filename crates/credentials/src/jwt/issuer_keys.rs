//! [`IssuerKeys`]: the keys of one issuer, fetched in the background and replaced as the issuer rotates them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::jwt::key_set::KeySet;

/// How long keys are used before they are fetched again, unless the issuer says otherwise.
const DEFAULT_REFRESH: Duration = Duration::from_secs(60 * 60);
const MIN_REFRESH: Duration = Duration::from_secs(5 * 60);
const MAX_REFRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// How long keys are used although they cannot be fetched again.
const MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// The least time between two fetches for keys that are not in the set.
const MISSING_KEY_PAUSE: Duration = Duration::from_secs(30);
/// The least time between two questions whether an issuer answers.
const PROBE_PAUSE: Duration = Duration::from_secs(3);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// After a failed fetch, doubled with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);
/// What a client is told to wait for the first keys.
pub const KEYS_RETRY: Duration = Duration::from_secs(5);

/// Gets a set of keys from wherever it is.
pub trait KeyFetcher: Send + Sync {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedKeys, String>>;
}

/// The text of a set of keys.
pub struct FetchedKeys {
    pub body: Vec<u8>,
    /// How long the issuer says that it may be used.
    pub max_age: Option<Duration>,
}

/// The keys of one issuer.
pub struct IssuerKeys {
    state: Mutex<FetchState>,
    fetcher: Option<Arc<dyn KeyFetcher>>,
    /// The number of fetches that have ended.
    attempts: watch::Sender<u64>,
    wake: Notify,
}

#[derive(Default)]
struct FetchState {
    keys: Option<Arc<KeySet>>,
    is_fetching: bool,
    /// When fetches began to fail.
    failing_since: Option<Instant>,
    failures: u32,
    missing_key_at: Option<Instant>,
    /// When a fetch last succeeded.
    answered_at: Option<Instant>,
    /// When somebody last asked whether the issuer answers.
    probed_at: Option<Instant>,
}

impl IssuerKeys {
    /// Keys that never change.
    pub fn fixed(keys: KeySet) -> IssuerKeys {
        let state = FetchState { keys: Some(Arc::new(keys)), ..FetchState::default() };
        IssuerKeys {
            state: Mutex::new(state),
            fetcher: None,
            attempts: watch::Sender::new(0),
            wake: Notify::new(),
        }
    }

    /// Keys that [`IssuerKeys::keep_fresh`] fetches.
    pub fn fetched(fetcher: Arc<dyn KeyFetcher>) -> IssuerKeys {
        IssuerKeys {
            state: Mutex::default(),
            fetcher: Some(fetcher),
            attempts: watch::Sender::new(0),
            wake: Notify::new(),
        }
    }

    /// The keys of now; `None` until the first fetch succeeds.
    pub fn current(&self) -> Option<Arc<KeySet>> {
        self.state.lock().keys.clone()
    }

    /// Fetches the keys at once because a token names one that is not among them, unless that happened just now, and waits
    /// for the end of the fetch.
    pub async fn refresh_for_missing_key(&self) {
        if self.fetcher.is_none() {
            return;
        }
        let mut attempts = self.attempts.subscribe();
        attempts.mark_unchanged();
        {
            let mut state = self.state.lock();
            if !state.is_fetching {
                let now = Instant::now();
                if state.missing_key_at.is_some_and(|last| now.duration_since(last) < MISSING_KEY_PAUSE) {
                    return;
                }
                state.missing_key_at = Some(now);
                self.wake.notify_one();
            }
        }
        // Without a task that fetches, as after a reload, nothing comes.
        let _ = timeout(FETCH_TIMEOUT + Duration::from_secs(1), attempts.changed()).await;
    }

    /// Whether the issuer has answered within this time, or answers now; it is asked at most once in [`PROBE_PAUSE`].
    pub async fn has_answered_within(&self, age: Duration) -> bool {
        let has_answered = || self.state.lock().answered_at.is_some_and(|at| at.elapsed() < age);
        if self.fetcher.is_none() || has_answered() {
            return true;
        }
        let mut attempts = self.attempts.subscribe();
        attempts.mark_unchanged();
        {
            let (mut state, now) = (self.state.lock(), Instant::now());
            if !state.is_fetching {
                if state.probed_at.is_some_and(|last| now.duration_since(last) < PROBE_PAUSE) {
                    return false;
                }
                state.probed_at = Some(now);
                self.wake.notify_one();
            }
        }
        let _ = timeout(FETCH_TIMEOUT + Duration::from_secs(1), attempts.changed()).await;
        has_answered()
    }

    /// Fetches the keys for ever. `issuer` names them in the log.
    pub async fn keep_fresh(self: Arc<Self>, issuer: String) {
        let Some(fetcher) = &self.fetcher else { return };
        loop {
            self.state.lock().is_fetching = true;
            let fetched = timeout(FETCH_TIMEOUT, fetcher.fetch()).await;
            let fetched =
                fetched.unwrap_or_else(|_| Err(format!("no answer within {} s", FETCH_TIMEOUT.as_secs())));
            let parsed = fetched.and_then(|fetched| Ok((KeySet::parse(&fetched.body)?, fetched.max_age)));
            let delay = match parsed {
                Ok((keys, max_age)) => self.accept(keys, max_age),
                Err(error) => {
                    tracing::warn!(issuer, error, "cannot fetch the keys of an issuer of tokens");
                    self.fail()
                }
            };
            self.attempts.send_modify(|attempts| *attempts += 1);
            tokio::select! {
                () = sleep(delay) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    fn accept(&self, keys: KeySet, max_age: Option<Duration>) -> Duration {
        let mut state = self.state.lock();
        (state.is_fetching, state.failing_since, state.failures) = (false, None, 0);
        state.answered_at = Some(Instant::now());
        // The same set stays the same, so that tokens verified with it stay remembered.
        if state.keys.as_deref() != Some(&keys) {
            state.keys = Some(Arc::new(keys));
        }
        max_age.unwrap_or(DEFAULT_REFRESH).clamp(MIN_REFRESH, MAX_REFRESH)
    }

    fn fail(&self) -> Duration {
        let (mut state, now) = (self.state.lock(), Instant::now());
        state.is_fetching = false;
        let since = *state.failing_since.get_or_insert(now);
        if now.duration_since(since) >= MAX_STALE {
            state.keys = None;
        }
        let delay = FIRST_RETRY * 2_u32.saturating_pow(state.failures.min(16));
        state.failures += 1;
        delay.min(LAST_RETRY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key with its age, or why there is none.
    type FakeAnswer = Result<(&'static str, Option<u64>), &'static str>;

    /// An issuer that gives the answers of the list one after the other, the last one for ever.
    #[derive(Default)]
    struct FakeIssuer {
        answers: Mutex<Vec<FakeAnswer>>,
        fetched: Mutex<Vec<Instant>>,
    }

    impl KeyFetcher for FakeIssuer {
        fn fetch(&self) -> BoxFuture<'_, Result<FetchedKeys, String>> {
            Box::pin(async {
                self.fetched.lock().push(Instant::now());
                let mut answers = self.answers.lock();
                let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
                let (x, max_age) = answer?;
                let key =
                    format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "kid": "{x}", "x": "{x}"}}]}}"#);
                Ok(FetchedKeys { body: key.into_bytes(), max_age: max_age.map(Duration::from_secs) })
            })
        }
    }

    const ONE: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const OTHER: &str = "21qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn start(answers: Vec<FakeAnswer>) -> (Arc<FakeIssuer>, Arc<IssuerKeys>) {
        let issuer = Arc::new(FakeIssuer { answers: Mutex::new(answers), fetched: Mutex::default() });
        let keys = Arc::new(IssuerKeys::fetched(issuer.clone()));
        tokio::spawn(keys.clone().keep_fresh("test".to_owned()));
        (issuer, keys)
    }

    fn has(keys: &IssuerKeys, id: &str) -> bool {
        let algorithm = crate::jwt::signature::SigningAlgorithm::EdDsa;
        keys.current().is_some_and(|keys| !keys.candidates(algorithm, Some(id)).is_empty())
    }

    /// The seconds between the fetches until `total` have passed.
    async fn pauses(issuer: &FakeIssuer, total: u64) -> Vec<u64> {
        sleep(Duration::from_secs(total)).await;
        let fetched = issuer.fetched.lock();
        fetched.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_fetched_as_often_as_the_issuer_says() {
        let (issuer, keys) = start(vec![Ok((ONE, None)), Ok((ONE, Some(1))), Ok((ONE, Some(1_000_000)))]);
        assert_eq!(pauses(&issuer, 4_000 + 80_000).await, [3_600, 300]);
        assert!(has(&keys, ONE));
        assert_eq!(pauses(&issuer, 10_000).await, [3_600, 300, 86_400]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_set_stays_and_another_replaces_it() {
        let (_, keys) = start(vec![Ok((ONE, None)), Ok((ONE, None)), Ok((OTHER, None))]);
        sleep(Duration::from_secs(1)).await;
        let first = keys.current().unwrap();
        sleep(Duration::from_secs(3_600)).await;
        assert!(Arc::ptr_eq(&first, &keys.current().unwrap()));
        sleep(Duration::from_secs(3_600)).await;
        assert!(!has(&keys, ONE) && has(&keys, OTHER));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_outlive_failures_for_a_day() {
        let (issuer, keys) = start(vec![Ok((ONE, None)), Err("down")]);
        sleep(Duration::from_secs(3_600 + 86_000)).await;
        assert!(has(&keys, ONE));
        sleep(Duration::from_secs(500)).await;
        assert!(keys.current().is_none());
        // Retries slow down to one a minute.
        let pauses = pauses(&issuer, 1).await;
        assert_eq!(pauses[..9], [3_600, 1, 2, 4, 8, 16, 32, 60, 60]);
        *issuer.answers.lock() = vec![Ok((OTHER, None))];
        sleep(Duration::from_secs(61)).await;
        assert!(has(&keys, OTHER));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_key_fetches_once_in_half_a_minute() {
        let (issuer, keys) = start(vec![Ok((ONE, None)), Ok((OTHER, None))]);
        sleep(Duration::from_secs(1)).await;
        keys.refresh_for_missing_key().await;
        assert!(has(&keys, OTHER));
        for _ in 0..20 {
            keys.refresh_for_missing_key().await;
        }
        assert_eq!(issuer.fetched.lock().len(), 2);
        sleep(MISSING_KEY_PAUSE).await;
        keys.refresh_for_missing_key().await;
        assert_eq!(issuer.fetched.lock().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn whether_an_issuer_answers_is_asked_again_after_a_while() {
        let age = Duration::from_secs(60);
        let (issuer, keys) = start(vec![Ok((ONE, None)), Err("down"), Err("down"), Ok((ONE, None))]);
        sleep(Duration::from_secs(1)).await;
        for _ in 0..20 {
            assert!(keys.has_answered_within(age).await);
        }
        assert_eq!(issuer.fetched.lock().len(), 1);
        sleep(age).await;
        assert!(!keys.has_answered_within(age).await);
        assert_eq!(issuer.fetched.lock().len(), 2);
        // Nobody waits for it again and again.
        assert!(!keys.has_answered_within(age).await);
        assert_eq!(issuer.fetched.lock().len(), 2);
        sleep(PROBE_PAUSE * 4).await;
        assert!(keys.has_answered_within(age).await);
        // What was fetched before is good as long as it ever was.
        assert!(has(&keys, ONE));
    }
}
