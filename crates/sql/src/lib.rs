//! The stores: records, plain lists and their change log in SQLite or PostgreSQL.
//!
//! The engine hands over plans; this crate turns them into SQL statements, runs them and passes the rows to the engine.
//! The server uses [`SqlStore`] as its [`trefoil_engine::Store`]; the commands also use [`migrate`] to bring tables to a
//! new schema and [`transfer`] to back up, restore and move whole stores.

// SQL text for plans, without a database.
pub mod statements;

// Types and rules that both stores share.
mod accounts;
mod api_keys;
mod audit;
mod change_log;
mod idempotency_key;
mod job_completion;
mod link_table_side;
mod move_record;
mod options;
mod plain_list;

// The two stores, and the enum of both that the server uses.
pub mod postgres;
mod sql_store;
mod sqlite;

// Brings the tables of a store to a new schema.
pub mod migrate;

// Backup, restore and move of whole stores; the lock on a data folder.
mod data_lock;
pub mod transfer;

pub use crate::data_lock::DataLock;
pub use crate::options::SqliteOptions;
pub use crate::postgres::PostgresStore;
pub use crate::sql_store::SqlStore;
pub use crate::sqlite::SqliteStore;
