//! The parts of HTTP that GraphQL, REST and the pages share.
//!
//! The service around the router, errors, negotiation, caching, streaming and monitoring. The crates of the three
//! interfaces build their handlers on it, and `trefoil-server` runs it.

// The way of a request: the service, its checks and limits.
pub mod routing;
pub mod service;

pub mod authentication;
pub mod client_info;
pub mod cross_origin;
pub mod host_check;
pub mod protected_mode;
pub mod rate_limit;
pub mod request_limits;
pub mod shutdown;

// Reading a request: the format it asks for, form bodies and queries, the idempotency key.
pub mod negotiation;

pub mod form_pairs;
pub mod idempotency;

// Making a response: errors, headers, entity tags, the cache, compression and static files.
pub mod errors;

pub mod assets;
pub mod compression;
pub mod etags;
pub mod response_cache;
pub mod response_headers;

// Long-lived responses.
pub mod streaming;

// Access log, metrics and health checks.
pub mod monitoring;

pub use crate::errors::problem::{Problem, method_not_allowed, not_found};
