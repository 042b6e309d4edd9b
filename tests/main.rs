//! The one integration binary: each module tests one stage from outside.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod coerce;
mod model;
