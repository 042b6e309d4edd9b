//! The routes of the server itself, in a form that can be listed.

pub mod route_table;

pub use route_table::{RouteTable, ServedRoute};
