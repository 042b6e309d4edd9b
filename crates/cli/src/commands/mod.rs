//! The subcommands, one file or folder each: flags and implementation.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod can;
pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod migrate;
pub(crate) mod move_store;
pub(crate) mod new_app;
pub(crate) mod reset;
pub(crate) mod resolver_skeleton;
pub(crate) mod restore;
pub(crate) mod rules_table;
pub(crate) mod schema;
pub(crate) mod seed;
pub(crate) mod serve;
pub(crate) mod user;
pub(crate) mod views;
