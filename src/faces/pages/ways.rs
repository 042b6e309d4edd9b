//! "Three ways": the GraphQL operation, the REST call and the browser's request that show or do the same.

use http::request::Parts;

use super::Served;
use super::view::Ways;
use crate::faces::resources::Site;
use crate::model::TypeId;

/// What a page is about.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    Home,
    /// A list of records: the address it has, with its query.
    List {
        record: TypeId,
        address: &'a str,
    },
    Record {
        record: TypeId,
        id: i64,
        address: &'a str,
    },
    Create {
        record: TypeId,
    },
    Update {
        record: TypeId,
        id: i64,
    },
    Delete {
        record: TypeId,
        id: i64,
    },
    /// A plain list.
    Plain {
        path: &'a str,
    },
}

impl Served {
    /// None where there is nothing to compare.
    pub fn ways(&self, _site: &Site, _request: &Parts, _about: About<'_>) -> Option<Ways> {
        None
    }
}
