//! API examples below a page: the same request in GraphQL, REST and HTML.

// Pages that show or delete something.
pub(crate) mod page;

// Forms.
pub(crate) mod form;

// Error pages.
pub(crate) mod error;
