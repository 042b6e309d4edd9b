//! Which value broke a constraint, found out after the fact: the database names columns, people name fields.

use rusqlite::ffi;

use super::change::{Parts, parts};
use super::fault::{Fault, extended};
use super::session::Session;
use crate::engine::plan::Action;
use crate::error::{Error, Segment, Violation};
use crate::model::naming::label;
use crate::model::{Cell, Field, FieldId, Kind, Model, OnDelete, RecordType, Stored, TypeId};
use crate::sql::dialect::{Comparison, Dialect};
use crate::sql::select::Parameter;

const DIALECT: Dialect = Dialect::Sqlite;

/// The fault of a plan whose statement failed.
pub fn blame(session: Session<'_>, model: &Model, action: &Action, error: rusqlite::Error) -> Fault {
    // Another program's trigger may roll back more than the statement: then the neighbours' work is gone too.
    if session.connection.is_autocommit() {
        return Fault::Store(error);
    }
    let found = match extended(&error) {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
            taken(session, model, action, &error.to_string()).map(Error::Conflict)
        }
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => match action {
            Action::Create { .. } | Action::Update { .. } => {
                dangling(session, model, action).map(Error::Invalid)
            }
            Action::Delete { record, id, .. } => referrers(session, model, *record, *id).map(Error::Conflict),
            Action::Get { .. } | Action::List { .. } | Action::Changed { .. } | Action::Plain(_) => {
                return error.into();
            }
        },
        _ => return error.into(),
    };
    match found {
        Ok(complaint) if complaint.violations().is_empty() => error.into(),
        Ok(complaint) => Fault::Plan(complaint),
        Err(fault) => fault,
    }
}

/// Every value that another record has. SQLite stops at the first and names its columns in `message`, which
/// tells of other programs' indexes too; of an index on an expression it names none.
fn taken(
    session: Session<'_>,
    model: &Model,
    action: &Action,
    message: &str,
) -> Result<Vec<Violation>, Fault> {
    let Parts { record: Some(record), id, values, .. } = parts(action) else { return Ok(Vec::new()) };
    let owner = model.record(record);
    let named: Vec<&str> =
        message.rsplit(": ").next().into_iter().flat_map(|list| list.split(", ")).collect();
    let mut violations = Vec::new();
    for (position, field) in owner.fields.iter().enumerate() {
        let value = values.iter().find(|(given, _)| field.unique && *given == FieldId(position));
        let mut taken = named.contains(&format!("{}.{}", owner.table, field.column).as_str());
        if let Some((_, value)) = value {
            taken |= is_taken(session, owner, field, value, id)?;
        }
        if taken {
            let message = format!("{} is already taken", label(&field.name));
            violations.push(Violation::new(&field.input_name, "UNIQUE", message));
        }
    }
    Ok(violations)
}

fn is_taken(
    session: Session<'_>,
    owner: &RecordType,
    field: &Field,
    value: &Stored,
    id: Option<i64>,
) -> Result<bool, Fault> {
    let comparison = Comparison::of(field);
    let column = DIALECT.identity(comparison, &DIALECT.quote(&field.column));
    let value_sql = DIALECT.identity(comparison, "?1");
    let table = DIALECT.quote(&owner.table);
    let sql = format!("SELECT 1 FROM {table} WHERE {column} = {value_sql} AND \"id\" IS NOT ?2 LIMIT 1");
    let own = Parameter::Cell(id.map_or(Cell::Null, Cell::Int));
    Ok(session.number(&sql, &[Parameter::Cell(value.as_cell()), own])?.is_some())
}

/// Every reference and link to a record that does not exist.
fn dangling(session: Session<'_>, model: &Model, action: &Action) -> Result<Vec<Violation>, Fault> {
    let Parts { record: Some(record), values, links, .. } = parts(action) else { return Ok(Vec::new()) };
    let owner = model.record(record);
    let mut violations = Vec::new();
    for (field, value) in values {
        let field = owner.field(*field);
        if let (Kind::Reference { target, .. }, Stored::Int(id)) = (&field.kind, value) {
            violations.extend(
                missing(session, model.record(*target), *id)?.map(|complaint| complaint.under(name(field))),
            );
        }
    }
    for (field, ids) in links {
        let field = owner.field(*field);
        let Kind::Link { target, .. } = &field.kind else { continue };
        for (i, id) in ids.iter().enumerate() {
            let complaint = missing(session, model.record(*target), *id)?;
            violations
                .extend(complaint.map(|complaint| complaint.under(Segment::Index(i)).under(name(field))));
        }
    }
    Ok(violations)
}

fn name(field: &Field) -> Segment {
    Segment::Field(field.input_name.clone())
}

/// A complaint, with no path yet, when there is no such record.
fn missing(session: Session<'_>, target: &RecordType, id: i64) -> Result<Option<Violation>, Fault> {
    let sql = format!("SELECT 1 FROM {} WHERE \"id\" = ?1", DIALECT.quote(&target.table));
    if session.number(&sql, &[Parameter::Cell(Cell::Int(id))])?.is_some() {
        return Ok(None);
    }
    let message = format!("there is no {} with the id {id}", words(target));
    Ok(Some(Violation { path: Vec::new(), code: "REFERENCE", message }))
}

/// Who still refers to a record, or, where nobody does, to what would be deleted along with it. Further than
/// once through each type is not looked, nor into other programs' tables: those are not named.
fn referrers(session: Session<'_>, model: &Model, record: TypeId, id: i64) -> Result<Vec<Violation>, Fault> {
    let target = words(model.record(record));
    let mut doomed = vec![(record, "(SELECT ?1)".to_owned())];
    let mut seen = vec![record];
    let mut violations = Vec::new();
    while violations.is_empty() && !doomed.is_empty() {
        for (owner, field, on_delete, ids) in references_to(model, &std::mem::take(&mut doomed)) {
            let referrer = model.record(owner);
            let table = DIALECT.quote(&referrer.table);
            let those = format!("FROM {table} WHERE {} IN {ids}", DIALECT.quote(&field.column));
            match on_delete {
                OnDelete::SetNull => {}
                OnDelete::Cascade if seen.contains(&owner) => {}
                OnDelete::Cascade => {
                    seen.push(owner);
                    doomed.push((owner, format!("(SELECT \"id\" {those})")));
                }
                OnDelete::Refuse => {
                    // What refers to itself does not keep itself.
                    let others = format!("NOT ({} AND \"id\" IN {ids})", is_own(owner, field));
                    let sql = format!("SELECT count(*) {those} AND {others}");
                    let count = session.number(&sql, &[Parameter::Cell(Cell::Int(id))])?.unwrap_or(0);
                    violations.extend((count > 0).then(|| still_referred(count, referrer, &target)));
                }
            }
        }
    }
    if violations.is_empty() {
        let message = format!("other records still refer to this {target}");
        violations.push(Violation::new("id", "REFERENCED", message));
    }
    Ok(violations)
}

/// Whether a reference leads to its own type.
fn is_own(owner: TypeId, field: &Field) -> bool {
    matches!(field.kind, Kind::Reference { target, .. } if target == owner)
}

type Reference<'m> = (TypeId, &'m Field, OnDelete, String);

/// Every reference to one of these types, with the ids of the records in question.
fn references_to<'m>(model: &'m Model, doomed: &[(TypeId, String)]) -> Vec<Reference<'m>> {
    let mut references = Vec::new();
    for (owner, record) in model.records.iter().enumerate() {
        for field in &record.fields {
            let Kind::Reference { target, on_delete } = &field.kind else { continue };
            let ids = doomed.iter().filter(|(record, _)| record == target);
            references.extend(ids.map(|(_, ids)| (TypeId(owner), field, *on_delete, ids.clone())));
        }
    }
    references
}

fn still_referred(count: i64, referrer: &RecordType, target: &str) -> Violation {
    let many = pluralizer::pluralize(&words(referrer), count as isize, true);
    let verb = if count == 1 { "refers" } else { "refer" };
    Violation::new("id", "REFERENCED", format!("{many} still {verb} to this {target}"))
}

/// A type's name in running text: `order line` for `OrderLine`.
fn words(record: &RecordType) -> String {
    label(&record.name).to_lowercase()
}
