//! Trefoil serves one set of records on several faces from plain GraphQL SDL.
//!
//! A face turns a request into an [`engine::Operation`]; the engine proves it into a plan; the store
//! runs plans and nothing else. The modules below stand in the order a request meets them.

pub mod config;
pub mod engine;
pub mod error;
pub mod model;
pub mod sql;
