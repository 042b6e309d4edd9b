//! Puts the questions of an [`Inquiry`] to SQLite, once its result code says which kind of constraint broke.

use rusqlite::ffi;

use trefoil_engine::plan::PlanAction;
use trefoil_model::Model;

use crate::sqlite::error::{SqliteError, extended_code};
use crate::sqlite::session::SqliteSession;
use crate::statements::constraint_errors::{BrokenConstraint, ConstraintProbe};
use crate::statements::dialect::Dialect;

/// The fault of a plan whose statement failed.
pub fn explain_error(
    session: SqliteSession<'_>,
    model: &Model,
    action: &PlanAction,
    error: rusqlite::Error,
) -> SqliteError {
    // Another program's trigger may roll back more than the statement: then the neighbours' work is gone too.
    if session.connection.is_autocommit() {
        return SqliteError::Store(error);
    }
    let inquiry = broken_constraint(&error)
        .and_then(|broken| ConstraintProbe::new(Dialect::Sqlite, model, action, &broken));
    let Some(inquiry) = inquiry else { return error.into() };
    match run_probe(session, inquiry) {
        Ok(Some(fault)) => fault,
        Ok(None) => error.into(),
        Err(fault) => fault.into(),
    }
}

fn broken_constraint(error: &rusqlite::Error) -> Option<BrokenConstraint> {
    match extended_code(error) {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            // `UNIQUE constraint failed: users.name, users.age`
            let message = error.to_string();
            let named = message.rsplit(": ").next().into_iter().flat_map(|list| list.split(", "));
            let named: Vec<_> = named.filter_map(|name| name.split_once('.')).collect();
            let table = named.first().map_or("", |(table, _)| table).to_owned();
            let columns = named.into_iter().map(|(_, column)| column.to_owned()).collect();
            Some(BrokenConstraint::Unique { table, columns })
        }
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Some(BrokenConstraint::Reference),
        _ => None,
    }
}

fn run_probe(
    session: SqliteSession<'_>,
    inquiry: ConstraintProbe<'_>,
) -> rusqlite::Result<Option<SqliteError>> {
    let mut found = Vec::new();
    for round in &inquiry.rounds {
        for question in round {
            let answer = match &question.sql {
                Some(sql) => session.query_integers(sql, &question.parameters)?,
                None => Vec::new(),
            };
            found.extend(question.violations(&answer));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(inquiry.into_error(found).map(SqliteError::Plan))
}
