//! The list of a record type: its query, table, filters, downloads and cached fragments.

pub(crate) mod cached;
pub(crate) mod downloads;
pub(crate) mod filters;
pub(crate) mod fragments;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod table;
