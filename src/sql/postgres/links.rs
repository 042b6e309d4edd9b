//! All connections of this process to one PostgreSQL database: a few that everyone shares, and a pool of own ones.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::link::Link;
use crate::error::{Error, Result};

/// All connections to one database.
pub struct Links {}

impl Links {
    /// A connection that others use as well, for single statements. While the database is away, an error at once.
    pub fn shared(&self) -> Result<Arc<Link>> {
        Err(away("not connected"))
    }

    /// A connection of one's own, for transactions and long streams.
    pub async fn own(&self) -> Result<Own> {
        Err(away("not connected"))
    }
}

/// A connection of one's own. Dropped without [`Own::finished`], what runs on it is cancelled and it is closed.
pub struct Own {
    link: Arc<Link>,
}

impl Own {
    /// Nothing runs and no transaction is open: the connection can serve others.
    pub fn finished(self) {}
}

impl Deref for Own {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

pub fn away(reason: &str) -> Error {
    Error::Unavailable {
        reason: format!("the database cannot be reached: {reason}"),
        retry_after: Duration::from_secs(1),
    }
}
