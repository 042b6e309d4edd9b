//! [`CredentialWatch`]: whether the credential of a long answer is still good.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use trefoil_engine::{ActorIdentity, CredentialUse, PresumedIdentity};

use crate::authentication::client_authenticator::{
    IdentityFailure, PresentedCredential, SharedAuthenticator,
};
use crate::errors::problem::Problem;

/// How often the credential of a long answer is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Credentials are looked at together with others, so that the store is asked once for all of them.
const WATCH_TURN: Duration = Duration::from_millis(50);

/// Why a credential that comes without headers of its own is not taken.
pub enum WatchFailure {
    /// It is not good.
    Bad,
    /// Whether it is good cannot be told now.
    Unknown(Problem),
}

/// The credential of a long answer, which ends when the credential does.
#[derive(Clone)]
pub struct CredentialWatch {
    authenticator: SharedAuthenticator,
    credential: PresentedCredential,
    address: Option<IpAddr>,
    pub identity: Arc<ActorIdentity>,
    /// No change up to this one has ended the credential or changed the identity.
    unchanged_until: i64,
}

impl WatchFailure {
    fn new(authenticator: &SharedAuthenticator, failure: IdentityFailure) -> WatchFailure {
        match failure {
            IdentityFailure::Bad => WatchFailure::Bad,
            failure @ (IdentityFailure::NotYet { .. } | IdentityFailure::Failed(_)) => {
                WatchFailure::Unknown(authenticator.problem(failure))
            }
        }
    }
}

impl CredentialWatch {
    /// Identifies the actor.
    pub(super) async fn begin(
        authenticator: SharedAuthenticator,
        credential: PresentedCredential,
        address: Option<IpAddr>,
    ) -> Result<CredentialWatch, IdentityFailure> {
        // Before the look-up, which may or may not see what is changed meanwhile.
        let unchanged_until = authenticator.0.last_known_change();
        let identity = authenticator.0.identify(credential.clone(), address, CredentialUse::Request).await?;
        Ok(CredentialWatch { authenticator, credential, address, identity, unchanged_until })
    }

    /// The same for whom the credential proved before. If the check does not hold, the watch is not for use.
    pub(super) async fn presume(
        authenticator: SharedAuthenticator,
        credential: PresentedCredential,
        address: Option<IpAddr>,
    ) -> Result<(CredentialWatch, PresumedIdentity), IdentityFailure> {
        let unchanged_until = authenticator.0.last_known_change();
        let presumed = authenticator.0.presume(credential.clone(), address, CredentialUse::Request).await?;
        let identity = presumed.identity.clone();
        Ok((CredentialWatch { authenticator, credential, address, identity, unchanged_until }, presumed))
    }

    /// Whom the text of an `Authorization` header proves.
    pub async fn of_authorization(
        authenticator: &SharedAuthenticator,
        text: &str,
        address: Option<IpAddr>,
    ) -> Result<CredentialWatch, WatchFailure> {
        let credential = PresentedCredential::parse(text).ok_or(WatchFailure::Bad)?;
        let watch = CredentialWatch::begin(authenticator.clone(), credential, address).await;
        watch.map_err(|failure| WatchFailure::new(authenticator, failure))
    }

    /// The same credential, identified anew.
    pub async fn renewed(&self) -> Result<CredentialWatch, WatchFailure> {
        let CredentialWatch { authenticator, credential, address, .. } = self;
        let watch = CredentialWatch::begin(authenticator.clone(), credential.clone(), *address).await;
        watch.map_err(|failure| WatchFailure::new(authenticator, failure))
    }

    /// Waits until the credential is not good any more, or its actor has other rights. A client that comes back gets
    /// these, or is refused.
    pub async fn wait_for_end(mut self) {
        loop {
            sleep(self.time_to_next_look()).await;
            // If it cannot be told now, nothing is read from a store that is away either.
            if self.look().await == Some(false) {
                return;
            }
        }
    }

    /// Whether it is known without reading anything that events may be delivered, see
    /// [`CredentialWatch::covers_known_changes`].
    pub(super) fn is_known_to_cover(&mut self) -> bool {
        if self.identity.is_over() {
            return false;
        }
        let known = self.authenticator.0.known_unchanged(&self.identity, self.unchanged_until);
        if let Some(until) = known {
            self.unchanged_until = until;
        }
        known.is_some()
    }

    /// Whether events that this node has read by now may be delivered: nothing committed before one of them has ended the
    /// credential or changed what its actor may do. The log tells that, so that the credential itself is looked at only
    /// where a change is about it.
    pub async fn covers_known_changes(&mut self) -> bool {
        let authenticator = self.authenticator.clone();
        let until = authenticator.0.last_known_change();
        if !self.identity.is_over() {
            if until <= self.unchanged_until {
                return true;
            }
            if authenticator.0.is_unchanged(&self.identity, self.unchanged_until, until).await {
                self.unchanged_until = until;
                return true;
            }
        }
        loop {
            match self.look().await {
                Some(is_same) => return is_same,
                // What is not known is not delivered.
                None => sleep(WATCH_INTERVAL).await,
            }
        }
    }

    /// Looks at the credential: whether it is good and its actor has the rights that they had. `None` if it cannot be told
    /// now.
    async fn look(&mut self) -> Option<bool> {
        let until = self.authenticator.0.last_known_change();
        match self.current_identity().await {
            Ok(identity) if identity.has_rights_of(&self.identity) => {
                self.unchanged_until = until;
                Some(true)
            }
            Ok(_) | Err(IdentityFailure::Bad) => Some(false),
            Err(IdentityFailure::NotYet { .. } | IdentityFailure::Failed(_)) => None,
        }
    }

    /// Whom the credential proves now. Most prove whom they proved before, which is asked for many at once.
    async fn current_identity(&self) -> Result<Arc<ActorIdentity>, IdentityFailure> {
        let authenticator = &self.authenticator.0;
        let presumed =
            authenticator.presume(self.credential.clone(), self.address, CredentialUse::Watch).await?;
        match &presumed.check {
            Some(check) if !check.holds().await => {
                authenticator.identify(self.credential.clone(), self.address, CredentialUse::Watch).await
            }
            Some(_) | None => Ok(presumed.identity),
        }
    }

    /// Until the credential ends by itself, if that is before the next turn.
    fn time_to_next_look(&self) -> Duration {
        static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
        let since_turn = STARTED.elapsed().as_nanos() % WATCH_TURN.as_nanos();
        let next_turn = WATCH_INTERVAL.saturating_sub(Duration::from_nanos(since_turn as u64));
        let left = self.identity.time_left().filter(|left| !left.is_zero());
        left.map_or(next_turn, |left| left.min(next_turn))
    }
}
