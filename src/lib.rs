//! Trefoil: a durable backend from a schema file, as a library that the `trefoil` binary and other programs use.

pub mod config;
pub mod error;
pub mod faces;
pub mod server;
