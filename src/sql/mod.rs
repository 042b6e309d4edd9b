//! How records are kept in an SQL database.

pub mod migrate;
