//! The page of one record, with its fields and related records.

// The page.
pub(crate) mod page;

// Values formatted for people.
pub(crate) mod display;
