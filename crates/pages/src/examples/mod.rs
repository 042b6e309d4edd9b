//! The API examples below a page: the same request in GraphQL, REST and HTML.

pub(crate) mod error;
pub(crate) mod form;
pub(crate) mod page;
