//! The statements that create, change and delete records, and those that replace their links.

use super::dialect::{Comparison, Dialect};
use super::select::Level;
use crate::error::{Error, Result};
use crate::model::{Field, FieldId, Kind, RecordType};

/// Replaces the records that one record is linked with. Each has the record's id as first parameter and the
/// list of the others as second.
#[derive(Debug)]
pub struct LinkStatements {
    pub remove: String,
    pub add: String,
}

/// Parameters: the id where it is chosen, then the values.
pub fn insert(
    dialect: Dialect,
    record: &RecordType,
    chosen_id: bool,
    fields: &[FieldId],
    read: &Level,
) -> String {
    let id = chosen_id.then(|| dialect.quote("id"));
    let columns: Vec<String> = id.into_iter().chain(columns(dialect, record, fields)).collect();
    let table = dialect.quote(&record.table);
    let returning = returning(read);
    if columns.is_empty() {
        return format!("INSERT INTO {table} DEFAULT VALUES {returning}");
    }
    let values: Vec<String> = (1..=columns.len()).map(|number| dialect.parameter(number)).collect();
    format!("INSERT INTO {table} ({}) VALUES ({}) {returning}", columns.join(", "), values.join(", "))
}

/// Parameters: the values, the id, and the expected version where there is one.
pub fn update(
    dialect: Dialect,
    record: &RecordType,
    fields: &[FieldId],
    checked: bool,
    read: &Level,
) -> String {
    let mut sets: Vec<String> = columns(dialect, record, fields)
        .enumerate()
        .map(|(i, column)| format!("{column} = {}", dialect.parameter(i + 1)))
        .collect();
    sets.push("\"_version\" = \"_version\" + 1".to_owned());
    let table = dialect.quote(&record.table);
    let condition = identified(dialect, fields.len() + 1, checked);
    format!("UPDATE {table} SET {} WHERE {condition} {}", sets.join(", "), returning(read))
}

/// Parameters: the id, and the expected version where there is one.
pub fn delete(dialect: Dialect, record: &RecordType, checked: bool, read: &Level) -> String {
    let table = dialect.quote(&record.table);
    format!("DELETE FROM {table} WHERE {} {}", identified(dialect, 1, checked), returning(read))
}

/// The version of the record whose id is the parameter.
pub fn version(dialect: Dialect, record: &RecordType) -> String {
    let (table, id) = (dialect.quote(&record.table), dialect.parameter(1));
    format!("SELECT \"_version\" FROM {table} WHERE \"id\" = {id}")
}

pub fn links(dialect: Dialect, field: &Field) -> Result<LinkStatements> {
    let Kind::Link { table, own_column, other_column, .. } = &field.kind else {
        return Err(Error::internal(format!("`{}` is no link", field.name)));
    };
    let [table, own, other] = [table, own_column, other_column].map(|name| dialect.quote(name));
    let (id, list) = (dialect.parameter(1), dialect.parameter(2));
    let each = dialect.each(Comparison::Plain, &list);
    Ok(LinkStatements {
        remove: format!("DELETE FROM {table} WHERE {own} = {id} AND {other} NOT IN {each}"),
        // `WHERE true` tells the parser that ON CONFLICT is no join condition.
        add: format!(
            "INSERT INTO {table} ({own}, {other}) SELECT {id}, v.* FROM {each} AS v WHERE true ON CONFLICT DO NOTHING"
        ),
    })
}

fn columns<'a>(
    dialect: Dialect,
    record: &'a RecordType,
    fields: &'a [FieldId],
) -> impl Iterator<Item = String> + 'a {
    fields.iter().map(move |field| dialect.quote(&record.field(*field).column))
}

fn identified(dialect: Dialect, number: usize, checked: bool) -> String {
    let id = format!("\"id\" = {}", dialect.parameter(number));
    if checked { format!("{id} AND \"_version\" = {}", dialect.parameter(number + 1)) } else { id }
}

/// Everything that is asked for when the row itself can tell it; the id and the version always come last.
fn returning(read: &Level) -> String {
    let asked = if read.is_flat() { read.columns.as_slice() } else { &[] };
    let columns: String = asked.iter().map(|column| format!("{column}, ")).collect();
    format!("RETURNING {columns}\"id\", \"_version\"")
}
