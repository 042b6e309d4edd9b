//! Connections of one's own: bounded in number, taken for a transaction or a stream, given back clean or not at all.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::postgres::connections::connect::{Purpose, Target};
use crate::postgres::connections::connect_error::{away, unavailable};
use crate::postgres::connections::connection::Link;
use crate::postgres::connections::liveness;
use crate::postgres::connections::liveness::Inquiries;
use trefoil_model::error::Result;

/// An own connection that nobody wanted for so long is closed.
const UNUSED: Duration = Duration::from_secs(60);
/// How long a server is given to hear that a query is no longer wanted.
const CANCEL: Duration = Duration::from_secs(2);

pub struct Pool {
    target: Arc<Target>,
    inquiries: Inquiries,
    size: usize,
    patience: Duration,
    permits: Arc<Semaphore>,
    /// The one used last is at the end and goes first.
    idle: Mutex<Vec<(Arc<Link>, Instant)>>,
}

impl Pool {
    pub fn new(target: Arc<Target>, inquiries: Inquiries, size: usize, patience: Duration) -> Pool {
        let permits = Arc::new(Semaphore::new(size));
        Pool { target, inquiries, size, patience, permits, idle: Mutex::default() }
    }

    pub async fn take(self: &Arc<Pool>) -> Result<Own> {
        let permit = tokio::time::timeout(self.patience, self.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| {
            let (size, patience) = (self.size, self.patience);
            unavailable(format!(
                "all {size} connections to the database were busy for {patience:?} (database-connections)"
            ))
        })?;
        let permit = permit.map_err(|_| away())?;
        let link = match self.unused() {
            Some(link) => link,
            None => self.connect().await?,
        };
        Ok(Own { held: Some(Held { link, permit }), pool: self.clone() })
    }

    fn unused(&self) -> Option<Arc<Link>> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop())
            .map(|(link, _)| link)
            .find(|link| !link.client().is_closed() && !link.is_late())
    }

    async fn connect(&self) -> Result<Arc<Link>> {
        let session = self.target.connect(Purpose::Own, |_| {}).await.map_err(|trouble| {
            tracing::debug!("no further connection to the database: {}", trouble.words);
            away()
        })?;
        let (link, _) = Link::of(session);
        let (weak, target) = (Arc::downgrade(&link), self.target.clone());
        tokio::spawn(liveness::watch(weak, target, Purpose::Own, self.inquiries));
        Ok(link)
    }

    /// Closes what is closed already or was not wanted for long.
    pub fn tidy(&self) {
        self.idle().retain(|(link, since)| !link.client().is_closed() && since.elapsed() < UNUSED);
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(Arc<Link>, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection of one's own. Dropped without [`Own::finished`], what runs on it is cancelled and it is closed.
pub struct Own {
    /// `None` only while it is given back.
    held: Option<Held>,
    pool: Arc<Pool>,
}

struct Held {
    link: Arc<Link>,
    permit: OwnedSemaphorePermit,
}

impl Own {
    /// Nothing runs and no transaction is open: the connection can serve others.
    pub fn finished(mut self) {
        if let Some(Held { link, permit }) = self.held.take() {
            if !link.client().is_closed() {
                self.pool.idle().push((link, Instant::now()));
            }
            drop(permit);
        }
    }
}

impl Deref for Own {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.held.as_ref().expect("held until it is given back").link
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let Some(Held { link, permit }) = self.held.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            link.close();
            return;
        };
        let tls = self.pool.target.tls();
        runtime.spawn(async move {
            if !link.client().is_closed() {
                // Closing alone would let the query run on until it has something to say.
                let _ = tokio::time::timeout(CANCEL, link.client().cancel_token().cancel_query(tls)).await;
                link.close();
            }
            drop(permit);
        });
    }
}
