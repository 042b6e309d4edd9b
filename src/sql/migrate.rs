//! Brings a database to the shape of the model, or says why not and what to do.
//!
//! The shape of the model ([`shape`]) is compared with the one on record in the store: [`pair`] finds what
//! continues what, [`diff`] lists the changes, [`survey`] judges them by the rows, [`apply`] makes them.

mod apply;
mod catalog;
mod convert;
mod ddl;
mod diff;
mod images;
mod pair;
pub mod postgres;
mod rebuild;
mod report;
mod shape;
mod survey;
mod words;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::lists;
use crate::engine::Deed;
use crate::model::{Model, TypeId, naming};

pub use apply::FORMAT;
pub use report::{MigrateError, Report};
pub use shape::StoredModel;
pub use survey::{PlannedStep, Safety};

use pair::Pairs;
use survey::Survey;

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

/// Brings the database behind `connection` to the shape of `model`, within what `mode` allows: all of it
/// or nothing. `logged` says which deeds go to the change log, `lists` which plain lists there are; one that is
/// there and not named keeps its values. After a `Database` error the connection is
/// not fit for use.
pub fn prepare(
    connection: &mut Connection,
    model: &Model,
    logged: &[(TypeId, Deed)],
    lists: &[String],
    mode: Mode,
) -> Result<Report, MigrateError> {
    let shape = StoredModel::of(model, logged);
    // Replacing a table must not cascade, and foreign keys cannot be switched inside a transaction.
    let enforced: bool = connection.pragma_query_value(None, "foreign_keys", |row| row.get(0))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    // A quoted column that is gone would pass for text in another program's index.
    let lenient = connection.db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    let report = in_transaction(connection, model, &shape, lists, &mode);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, lenient)?;
    connection.pragma_update(None, "foreign_keys", enforced)?;
    report
}

fn in_transaction(
    connection: &mut Connection,
    model: &Model,
    shape: &StoredModel,
    lists: &[String],
    mode: &Mode,
) -> Result<Report, MigrateError> {
    let behavior = match mode {
        Mode::Plan => TransactionBehavior::Deferred,
        Mode::Start | Mode::Apply { .. } => TransactionBehavior::Immediate,
    };
    let transaction = connection.transaction_with_behavior(behavior)?;
    let mut report = match format(&transaction)? {
        None => found(&transaction, model, shape, mode),
        Some(found) if found > FORMAT => Err(MigrateError::NewerStore { found }),
        Some(_) => alter(&transaction, model, shape, mode),
    }?;
    if report.done {
        lists::prepare(&transaction, lists)?;
        report.fresh &= lists::are_unused(&transaction)?;
    }
    transaction.commit()?;
    Ok(report)
}

/// The format of the store, if there is one.
fn format(connection: &Connection) -> Result<Option<u32>, MigrateError> {
    if !catalog::relations(connection)?.iter().any(|name| name == "trefoil_meta") {
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

/// A new store, beside whatever else is in the database. Only a start makes one, since seeds follow it.
fn found(
    connection: &Connection,
    model: &Model,
    shape: &StoredModel,
    mode: &Mode,
) -> Result<Report, MigrateError> {
    refuse_taken_names(connection, shape)?;
    let nothing = StoredModel::default();
    let steps = planned(connection, model, &Pairs::of(&nothing, shape))?;
    let done = match mode {
        Mode::Plan => false,
        Mode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            false
        }
        Mode::Start => {
            apply::create(connection, shape)?;
            true
        }
    };
    Ok(Report { steps, fresh: true, done })
}

fn refuse_taken_names(connection: &Connection, shape: &StoredModel) -> Result<(), MigrateError> {
    let is_ours = |name: &String| {
        name.to_lowercase().starts_with("trefoil_")
            || shape.table_names().any(|table| table.eq_ignore_ascii_case(name))
    };
    let taken: Vec<String> = catalog::relations(connection)?.into_iter().filter(is_ours).collect();
    if taken.is_empty() { Ok(()) } else { Err(MigrateError::NamesTaken(taken)) }
}

/// An existing store.
fn alter(
    connection: &Connection,
    model: &Model,
    shape: &StoredModel,
    mode: &Mode,
) -> Result<Report, MigrateError> {
    let old: StoredModel = serde_json::from_str(&meta(connection, "model")?)
        .map_err(|error| MigrateError::Damaged(format!("the shape on record cannot be read ({error})")))?;
    if let Some(what) = catalog::missing(connection, &old)? {
        return Err(MigrateError::Damaged(what));
    }
    let pairs = Pairs::of(&old, shape);
    let steps = planned(connection, model, &pairs)?;
    match mode {
        Mode::Plan => return Ok(Report { steps, fresh: false, done: false }),
        Mode::Start => refuse(&steps, |step| step.safety == Safety::Safe, MigrateError::NeedsMigration)?,
        Mode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            refuse(&steps, |step| is_agreed(step, allow_drop), MigrateError::Refused)?;
        }
    }
    if steps.is_empty() {
        apply::settle(connection, Some(&old), shape)?;
    } else {
        apply::change(connection, model, &pairs)?;
    }
    Ok(Report { steps, fresh: is_unused(connection, shape)?, done: true })
}

/// No record ever got an id: the start that made the tables may have ended before its seeds were in.
fn is_unused(connection: &Connection, shape: &StoredModel) -> Result<bool, MigrateError> {
    let mut given = connection.prepare("SELECT 1 FROM sqlite_sequence WHERE name = ?1 AND seq > 0")?;
    for table in shape.table_names() {
        if given.exists([table])? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn planned(
    connection: &Connection,
    model: &Model,
    pairs: &Pairs<'_>,
) -> Result<Vec<PlannedStep>, MigrateError> {
    Ok(Survey { connection, model, pairs }.judge(&diff::diff(pairs))?)
}

fn is_agreed(step: &PlannedStep, allow_drop: &[String]) -> bool {
    match &step.safety {
        Safety::Safe | Safety::NeedsApply => true,
        Safety::Loses { what } => allow_drop.contains(what),
        Safety::Blocked { .. } => false,
    }
}

fn refuse(
    steps: &[PlannedStep],
    is_allowed: impl Fn(&PlannedStep) -> bool,
    error: fn(Vec<PlannedStep>) -> MigrateError,
) -> Result<(), MigrateError> {
    let refused: Vec<_> = steps.iter().filter(|step| !is_allowed(step)).cloned().collect();
    if refused.is_empty() { Ok(()) } else { Err(error(refused)) }
}

/// A name that is misspelt must not pass for one that is agreed to.
fn refuse_unknown_drops(steps: &[PlannedStep], allow_drop: &[String]) -> Result<(), MigrateError> {
    let known: Vec<&str> = report::losses(steps).collect();
    match allow_drop.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let nearest = naming::nearest(name, known.iter().copied()).map(str::to_owned);
            Err(MigrateError::UnknownDrop { name: name.clone(), nearest })
        }
    }
}
