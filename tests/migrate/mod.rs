//! Migrations: what is kept, what is refused and what other programs notice, on both stores.

mod bench;
mod changes;
mod links;
mod numbering;
mod postgres;
mod refusals;
mod search;
mod sqlite;
mod starts;
mod triggers;
mod types;

use bench::{On, Store, everything, model};
use trefoil_engine::ChangeKind;
use trefoil_sql::migrate::{MigrateError, MigrationMode};

/// Runs each of these on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(super::On::Sqlite); })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(super::On::Postgres); })*
        }
    };
}
use on_both;
