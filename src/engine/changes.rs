//! The change log as a subscriber follows it: where it starts, what comes after a place, and names for places that outlive the process.
//!
//! There is one way to follow, for what was missed and for what is live: ask for what comes [`Feed::after`] a number,
//! deliver it, ask again from where it ended. A gap between replay and live cannot exist, because there is no border.

use std::sync::Arc;

use super::operation::Deed;
use super::store::Store;
use crate::error::{Error, Result};
use crate::model::Stored;

/// The change log as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// In order; the last one is the one that numbers are given in now.
    pub epochs: Vec<Epoch>,
    /// The changes up to this number are no longer kept.
    pub forgotten: i64,
    /// The number of the last change.
    pub last: i64,
}

/// A stretch of the log with a name of its own. A restored store begins a new one, so that no id is given twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    pub tag: String,
    /// Its numbers are greater than this.
    pub after: i64,
}

/// One change of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub number: i64,
    /// The record type's name.
    pub resource: String,
    pub deed: Deed,
    pub record: i64,
    pub version: i64,
    /// The record as the change left it, or, when it was deleted, as it was: by column, as [`Stored`] says.
    pub image: Arc<Vec<(String, Stored)>>,
}

/// A stretch of changes without a hole.
#[derive(Debug)]
pub struct Stretch {
    pub changes: Vec<Change>,
    /// Everything up to this number is in it: ask for what comes after this next.
    pub until: i64,
}

/// Follows the log of one store for everyone in this process.
#[derive(Clone)]
pub struct Feed {
    store: Arc<dyn Store>,
}

impl Feed {
    pub fn new(store: Arc<dyn Store>) -> Feed {
        Feed { store }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The number of the last change committed before this call: where a new subscriber starts.
    pub async fn now(&self) -> Result<i64> {
        Ok(self.store.log().await?.last)
    }

    /// The opaque name of a place.
    pub async fn id(&self, _number: i64) -> Result<String> {
        Err(Error::internal("not yet"))
    }

    /// The place that an id names, if what comes after it is still kept.
    pub async fn place(&self, _id: &str) -> Result<i64> {
        Err(Error::internal("not yet"))
    }

    /// Waits until there are changes after this number and gives some of them, the same ones to everyone who asks
    /// from the same place. While the store is away it waits; what is no longer kept is an error.
    pub async fn after(&self, _number: i64) -> Result<Arc<Stretch>> {
        Err(Error::internal("not yet"))
    }
}
