//! The list page of a record type.

// The operations behind the page.
pub(crate) mod query;

// The page: search, table, pager.
pub(crate) mod page;

// The search form above the table.
pub(crate) mod filters;

// What it is sorted by.
pub(crate) mod order;

// Links to all lists.
pub(crate) mod navigation;

// Rows and columns, also used by detail pages.
pub(crate) mod table;

// Sums below the table.
pub(crate) mod sums;

// Links to CSV, NDJSON and JSON.
pub(crate) mod downloads;

// The page assembled from cached fragments.
pub(crate) mod cached;

// The cache of fragments.
pub(crate) mod fragments;
