//! Runs the queries of a [`ConstraintProbe`] on SQLite after a result code that means a broken constraint.

use rusqlite::ffi;

use trefoil_engine::AccessView;
use trefoil_model::Model;

use crate::sqlite::error::{SqliteError, extended_code};
use crate::sqlite::session::SqliteSession;
use crate::statements::constraint_errors::{BrokenConstraint, ConstraintProbe};
use crate::statements::dialect::Dialect;
use crate::statements::write_parts::WriteParts;

/// The error of a write whose statement failed.
pub fn explain_error(
    session: SqliteSession<'_>,
    model: &Model,
    parts: WriteParts<'_>,
    error: rusqlite::Error,
) -> SqliteError {
    // A trigger of another program may roll back the transaction, and with it the other jobs of the batch.
    if session.connection.is_autocommit() {
        return SqliteError::Store(error);
    }
    let broken = broken_constraint(&error);
    if let (Some(view), Some(BrokenConstraint::Unique { .. })) = (session.view, &broken)
        && let Err(refusal) = check_draft(session, model, view, parts)
    {
        return refusal;
    }
    let probe =
        broken.and_then(|broken| ConstraintProbe::new(Dialect::Sqlite, model, parts, &broken, session.view));
    let Some(probe) = probe else { return error.into() };
    match run_probe(session, probe) {
        Ok(Some(explained)) => explained,
        Ok(None) => error.into(),
        Err(error) => error.into(),
    }
}

/// What goes before a value that is taken: references, and the rules for the record as it would be.
fn check_draft(
    session: SqliteSession<'_>,
    model: &Model,
    view: &AccessView,
    parts: WriteParts<'_>,
) -> Result<(), SqliteError> {
    if let Some(probe) = ConstraintProbe::of_targets(Dialect::Sqlite, model, parts)
        && let Some(error) = run_probe(session, probe)?
    {
        return Err(error);
    }
    let rules = session.write_rules(model, view);
    match rules.of_draft(parts) {
        Some(check) => Ok(check.judge(&session.check_rows(&check)?).map(drop)?),
        None => Ok(()),
    }
}

fn broken_constraint(error: &rusqlite::Error) -> Option<BrokenConstraint> {
    match extended_code(error) {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            // `UNIQUE constraint failed: users.name, users.age`
            let message = error.to_string();
            let columns = message.rsplit(": ").next().into_iter().flat_map(|list| list.split(", "));
            let columns: Vec<_> = columns.filter_map(|name| name.split_once('.')).collect();
            let table = columns.first().map_or("", |(table, _)| table).to_owned();
            let columns = columns.into_iter().map(|(_, column)| column.to_owned()).collect();
            Some(BrokenConstraint::Unique { table, columns })
        }
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Some(BrokenConstraint::Reference),
        _ => None,
    }
}

fn run_probe(
    session: SqliteSession<'_>,
    probe: ConstraintProbe<'_>,
) -> rusqlite::Result<Option<SqliteError>> {
    let mut found = Vec::new();
    for round in &probe.rounds {
        for query in round {
            let values = match &query.sql {
                Some(sql) => session.query_values(sql, &query.parameters)?,
                None => Vec::new(),
            };
            found.extend(query.findings(&values));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(probe.into_error(found).map(SqliteError::Plan))
}
