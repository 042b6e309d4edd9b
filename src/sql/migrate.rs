//! Brings a database to the shape of the model, or says why not and what to do.

mod apply;
mod convert;
mod ddl;
mod shape;

use std::fmt;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::engine::Deed;
use crate::model::{Model, TypeId};

pub use apply::FORMAT;
pub use shape::StoredModel;

/// How far [`prepare`] may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Create an empty store; of an existing one change only what neither loses nor doubts data.
    Start,
    /// Write nothing.
    Plan,
    /// Everything that fits, and these losses: `User.email`, `User`.
    Apply { allow_drop: Vec<String> },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The store was empty, so seeds are due.
    pub fresh: bool,
}

#[derive(Debug)]
pub enum MigrateError {
    /// A newer version of Trefoil wrote this store.
    NewerStore {
        found: u32,
    },
    /// Another program's tables stand where ours would.
    NamesTaken(Vec<String>),
    /// Something of ours is not as we left it.
    Damaged(String),
    Database(String),
}

/// Brings the database behind `connection` to the shape of `model`, within what `mode` allows.
pub fn prepare(
    connection: &mut Connection,
    model: &Model,
    logged: &[(TypeId, Deed)],
    mode: Mode,
) -> Result<Report, MigrateError> {
    let wanted = StoredModel::of(model, logged);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let report = match format(&transaction)? {
        None => {
            refuse_taken_names(&transaction, &wanted)?;
            apply::create(&transaction, &wanted)?;
            Report { fresh: true }
        }
        Some(found) if found > FORMAT => return Err(MigrateError::NewerStore { found }),
        Some(_) => Report { fresh: false },
    };
    match mode {
        Mode::Plan => transaction.rollback()?,
        Mode::Start | Mode::Apply { .. } => transaction.commit()?,
    }
    Ok(report)
}

/// The format of the store, if there is one.
fn format(connection: &Connection) -> Result<Option<u32>, MigrateError> {
    let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'trefoil_meta'";
    if connection.query_row(sql, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let text = meta(connection, "format")?;
    let number = text.parse().map_err(|_| MigrateError::Damaged(format!("its format is {text:?}")))?;
    Ok(Some(number))
}

fn meta(connection: &Connection, key: &str) -> Result<String, MigrateError> {
    let sql = "SELECT \"value\" FROM \"trefoil_meta\" WHERE \"key\" = ?1";
    let found = connection.query_row(sql, [key], |row| row.get(0)).optional()?;
    found.ok_or_else(|| MigrateError::Damaged(format!("trefoil_meta has no {key:?}")))
}

fn refuse_taken_names(connection: &Connection, wanted: &StoredModel) -> Result<(), MigrateError> {
    let mut statement =
        connection.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let ours = |name: &String| {
        name.to_lowercase().starts_with("trefoil_")
            || wanted.table_names().any(|table| table.eq_ignore_ascii_case(name))
    };
    let taken: Vec<String> = names.into_iter().filter(ours).collect();
    if taken.is_empty() { Ok(()) } else { Err(MigrateError::NamesTaken(taken)) }
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        MigrateError::Database(error.to_string())
    }
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::NewerStore { found } => write!(
                f,
                "the store has format {found}, this version of Trefoil knows formats up to {FORMAT}: \
                 use the newer version that wrote it"
            ),
            MigrateError::NamesTaken(names) => write!(
                f,
                "the database is not a Trefoil store and already has {}: use another data folder",
                names.join(", ")
            ),
            MigrateError::Damaged(what) => write!(f, "the store is damaged: {what}"),
            MigrateError::Database(text) => write!(f, "the database said: {text}"),
        }
    }
}

impl std::error::Error for MigrateError {}
