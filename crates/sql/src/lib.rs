//! How records are kept in an SQL database: plans become statements, statements become rows.
//!
//! Pure, in this order: [`dialect`] (what differs between databases), [`select`] and [`write`]
//! (statements), [`compile`] (a plan's program, made once per shape), [`batch`] (rows that must outlive
//! their statement). [`sqlite`] and [`postgres`] run programs.

mod change_log;
mod data_lock;
pub mod migrate;
pub mod postgres;
mod sql_store;
mod sqlite;
pub mod statements;
pub mod transfer;

pub use crate::data_lock::DataLock;
pub use crate::postgres::PostgresStore;
pub use crate::sql_store::SqlStore;
pub use crate::sqlite::{SqliteOptions, SqliteStore};
