//! Deleting a record: the page that asks, and what else is affected.

pub(crate) mod effects;
pub(crate) mod page;
