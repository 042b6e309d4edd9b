//! Deletion of a record from a page.

// The confirmation page and its form.
pub(crate) mod page;

// The other records that a deletion affects.
pub(crate) mod effects;
