//! How records are kept in an SQL database: plans become statements, statements become rows.
//!
//! Pure, in this order: [`dialect`] (what differs between databases), [`select`] and [`write`]
//! (statements), [`compile`] (a plan's program, made once per shape), [`batch`] (rows that must outlive
//! their statement). [`sqlite`] and [`postgres`] run programs.

pub mod batch;
mod blame;
pub mod compile;
mod database;
pub mod decimal;
pub mod dialect;
mod lists;
pub mod lock;
mod log;
mod loose;
pub mod migrate;
mod parts;
pub mod postgres;
pub mod select;
pub mod sqlite;
mod together;
pub mod transfer;
pub mod write;

mod keys;

pub use database::Database;
pub use lock::DataLock;
pub use postgres::PostgresStore;
pub use sqlite::{Options, SqliteStore};
