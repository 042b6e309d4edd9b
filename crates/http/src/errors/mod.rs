//! Failed requests: the HTTP problem, and its rendering as GraphQL errors, a page, problem+json or plain text.

pub mod error_log;
pub mod problem;
pub mod render;
