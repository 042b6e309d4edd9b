//! The routes of the server itself, in a form that can be listed.

pub(crate) mod options_answer;
pub mod route_table;

pub use route_table::{RouteTable, ServedRoute};
