//! The page of one record, with its fields and related records.

// What the page reads, and the page.
pub(crate) mod layout;
pub(crate) mod page;

// Values formatted for people.
pub(crate) mod display;
pub(crate) mod display_value;
