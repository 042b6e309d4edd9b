//! How the server is spoken to: the faces, and the common ground of HTTP they stand on.

pub mod assets;
pub mod client;
pub mod compression;
pub mod cross_origin;
pub mod errors;
pub mod etags;
pub mod form_pairs;
pub mod host_check;
pub mod idempotency;
pub mod monitoring;
pub mod negotiation;
pub mod rate_limit;
pub mod request_limits;
pub mod response_cache;
pub mod response_headers;
pub mod service;
pub mod shutdown;
pub mod streaming;

pub use crate::errors::problem::{Problem, method_not_allowed, not_found};
