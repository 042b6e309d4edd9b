//! Searches: with a full-text index, or by reading a limited number of records.

pub(crate) mod search_by_id;
pub(crate) mod search_guard;
pub(crate) mod search_index;
