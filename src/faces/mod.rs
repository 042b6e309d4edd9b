//! How the server is spoken to: the faces, and the common ground of HTTP they stand on.

pub mod accept;
pub mod answers;
mod assets;
pub mod becomes;
pub mod bell;
pub mod client;
pub mod clock;
mod elsewhere;
pub mod error_log;
mod follow;
pub mod foundation;
pub mod front;
pub mod graphql;
pub mod headers;
pub mod health;
mod home;
pub mod hosts;
mod idempotency;
pub mod limits;
pub mod log;
pub mod metrics;
pub mod outbox;
mod packed;
pub mod pages;
pub mod problem;
mod process;
mod rate;
mod resources;
pub mod rest;
pub mod shutdown;
mod spell;
mod tags;

pub use problem::{Problem, method_not_allowed, not_found};
