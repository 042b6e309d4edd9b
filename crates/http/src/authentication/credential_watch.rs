//! [`CredentialWatch`]: whether the credential of a long answer is still good.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use trefoil_engine::ActorIdentity;

use crate::authentication::client_authenticator::{
    IdentityFailure, PresentedCredential, SharedAuthenticator,
};
use crate::errors::problem::Problem;

/// How often the credential of a long answer is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

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

impl CredentialWatch {
    /// Identifies the actor.
    pub(super) async fn begin(
        authenticator: SharedAuthenticator,
        credential: PresentedCredential,
        address: Option<IpAddr>,
    ) -> Result<CredentialWatch, IdentityFailure> {
        // Before the look-up, which may or may not see what is changed meanwhile.
        let unchanged_until = authenticator.0.last_known_change();
        let identity = authenticator.0.identify(credential.clone(), address).await?;
        Ok(CredentialWatch { authenticator, credential, address, identity, unchanged_until })
    }

    /// Whom the text of an `Authorization` header proves.
    pub async fn of_authorization(
        authenticator: &SharedAuthenticator,
        text: &str,
        address: Option<IpAddr>,
    ) -> Result<CredentialWatch, Problem> {
        let credential = PresentedCredential::parse(text);
        let credential = credential.ok_or_else(|| authenticator.problem(IdentityFailure::Bad))?;
        let watch = CredentialWatch::begin(authenticator.clone(), credential, address).await;
        watch.map_err(|failure| authenticator.problem(failure))
    }

    /// The same credential, identified anew.
    pub async fn renewed(&self) -> Result<CredentialWatch, Problem> {
        let CredentialWatch { authenticator, credential, address, .. } = self;
        let watch = CredentialWatch::begin(authenticator.clone(), credential.clone(), *address).await;
        watch.map_err(|failure| authenticator.problem(failure))
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

    /// Whether events that this node has read by now may be delivered: nothing committed before one of them has ended the
    /// credential or changed what its actor may do. The log tells that, so that the credential itself is looked at only
    /// where a change is about it.
    pub async fn covers_known_changes(&mut self) -> bool {
        let authenticator = self.authenticator.clone();
        let until = authenticator.0.last_known_change();
        if !self.is_over() {
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
        match self.authenticator.0.identify(self.credential.clone(), self.address).await {
            Ok(identity) if identity == self.identity => {
                self.unchanged_until = until;
                Some(true)
            }
            Ok(_) | Err(IdentityFailure::Bad) => Some(false),
            Err(IdentityFailure::NotYet { .. } | IdentityFailure::Failed(_)) => None,
        }
    }

    fn is_over(&self) -> bool {
        self.identity.time_left() == Some(Duration::ZERO)
    }

    /// Until the credential ends by itself, if that is soon.
    fn time_to_next_look(&self) -> Duration {
        let left = self.identity.time_left().filter(|left| !left.is_zero());
        left.map_or(WATCH_INTERVAL, |left| left.min(WATCH_INTERVAL))
    }
}
