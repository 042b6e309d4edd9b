//! Trefoil serves one set of records on several faces from plain GraphQL SDL.
//!
//! A face turns a request into an [`engine::Operation`]; [`engine::Plan::prove`] judges it; the store runs plans and
//! nothing else, and hands rows to the face while it reads them. Programs that embed Trefoil start at [`Trefoil`].
//! The modules stand in the order in which they are best read.

// The only failures a caller sees.
pub mod error;

// What is written beside its place and comes there whole.
mod partial;

// What the SDL says.
pub mod model;

// What is done; no HTTP, no SQL.
pub mod engine;

// How it is kept.
pub mod sql;

// How it comes out and in, as files.
pub mod data;

// Every setting, and where its value came from.
pub mod config;

// How it is spoken.
pub mod faces;

// The application folder.
pub mod app;

// Records that nobody has typed.
pub mod fake;

// The life of the process.
pub mod server;

// The builder for other programs.
pub mod embed;

// The commands.
pub mod cli;

pub use embed::Trefoil;
pub use engine::{Actor, Call, Engine, Resolved};
pub use error::Error;
pub use model::Value;
pub use server::{Running, StartError};

/// The examples of the page on embedding compile, or `cargo test` fails.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct Embedding;
