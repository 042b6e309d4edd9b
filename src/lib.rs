//! Trefoil serves the records of a GraphQL schema as GraphQL, REST and HTML pages.
//!
//! This crate is the embedding API: start at [`Trefoil`]. The server itself is in the crates of the workspace, which
//! ARCHITECTURE.md describes; they are not meant to be used directly.

pub use trefoil_application::App;
pub use trefoil_config::Config;
pub use trefoil_engine::{Actor, Engine, ResolverCall, ResolverRegistry, ResolverResult};
pub use trefoil_model::error::Error;
pub use trefoil_model::{RecordId, SourceFile, Value};
pub use trefoil_server::server_builder::Trefoil;
pub use trefoil_server::{Running, StartError};

/// Compiles the examples of the page on embedding in `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
