//! Puts the questions of an [`Inquiry`] to SQLite, once its result code says which kind of constraint broke.

use rusqlite::ffi;

use crate::sqlite::error::{Fault, extended};
use crate::sqlite::session::Session;
use crate::statements::constraint_errors::{Constraint, Inquiry};
use crate::statements::dialect::Dialect;
use trefoil_engine::plan::Action;
use trefoil_model::Model;

/// The fault of a plan whose statement failed.
pub fn blame(session: Session<'_>, model: &Model, action: &Action, error: rusqlite::Error) -> Fault {
    // Another program's trigger may roll back more than the statement: then the neighbours' work is gone too.
    if session.connection.is_autocommit() {
        return Fault::Store(error);
    }
    let inquiry = broken(&error).and_then(|broken| Inquiry::new(Dialect::Sqlite, model, action, &broken));
    let Some(inquiry) = inquiry else { return error.into() };
    match ask(session, inquiry) {
        Ok(Some(fault)) => fault,
        Ok(None) => error.into(),
        Err(fault) => fault.into(),
    }
}

fn broken(error: &rusqlite::Error) -> Option<Constraint> {
    match extended(error) {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            // `UNIQUE constraint failed: users.name, users.age`
            let message = error.to_string();
            let named = message.rsplit(": ").next().into_iter().flat_map(|list| list.split(", "));
            let named: Vec<_> = named.filter_map(|name| name.split_once('.')).collect();
            let table = named.first().map_or("", |(table, _)| table).to_owned();
            let columns = named.into_iter().map(|(_, column)| column.to_owned()).collect();
            Some(Constraint::Unique { table, columns })
        }
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => Some(Constraint::Reference),
        _ => None,
    }
}

fn ask(session: Session<'_>, inquiry: Inquiry<'_>) -> rusqlite::Result<Option<Fault>> {
    let mut found = Vec::new();
    for round in &inquiry.rounds {
        for question in round {
            let answer = match &question.sql {
                Some(sql) => session.numbers(sql, &question.bound)?,
                None => Vec::new(),
            };
            found.extend(question.judge(&answer));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(inquiry.conclude(found).map(Fault::Plan))
}
