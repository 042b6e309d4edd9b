//! Trefoil serves one set of records on several faces from plain GraphQL SDL.
//!
//! A face turns a request into an [`engine::Operation`]; the engine proves it into a plan; the store
//! runs plans and nothing else. The modules below stand in the order a request meets them.

pub mod app;
pub mod cli;
pub mod config;
pub mod embed;
pub mod engine;
pub mod error;
pub mod faces;
pub mod model;
pub mod server;
pub mod sql;

pub use embed::Trefoil;
pub use engine::{Actor, Call, Engine, Resolved};
pub use error::Error;
pub use model::Value;
pub use server::{Running, StartError};

/// The examples of the page on embedding compile, or `cargo test` fails.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
