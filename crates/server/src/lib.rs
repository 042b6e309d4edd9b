//! The server process: loads an application, opens its store, listens, serves, reloads and shuts down.
//!
//! The command line uses it, and programs that embed Trefoil.

// Starting: the builder, the steps of a start and its errors.
pub mod server_builder;

pub mod lifecycle;

mod banner;
pub mod load_application;
mod load_seed;
mod open_store;
mod start_error;
mod unreadable_tables;

// Serving: listeners, TLS, HTTP/1 connections, and the routes of REST and pages.
pub mod listen;

pub mod http1;

// Who asks, and people who sign in.
mod accounts;
mod authentication;

#[cfg(test)]
mod access_tests;
mod routes;

// Beside serving: reloads, signals, the log, and stores for commands.
pub mod command_store;
mod file_watch;
pub mod logging;
pub mod signals;

pub use crate::lifecycle::Running;
pub use crate::start_error::StartError;
