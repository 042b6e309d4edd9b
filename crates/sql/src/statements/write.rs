//! The statements that create, change and delete records, and those that replace their links.

use crate::statements::dialect::Dialect;
use crate::statements::select::Level;
use trefoil_model::error::{Error, Result};
use trefoil_model::{Field, FieldId, Kind, RecordType};

/// Replaces the records that one record is linked with. Each has the record's id as first parameter and the
/// list of the others as second.
#[derive(Debug)]
pub struct LinkStatements {
    pub remove: String,
    pub add: String,
}

/// Moves the counter of a table's ids beyond one that was chosen; it would give that id a second time otherwise.
#[derive(Debug)]
pub struct Counter {
    /// Whether the id, the only parameter, is beyond it.
    pub is_behind: String,
    /// Taken before the record is created, so that nobody draws an id meanwhile: the counter can only be set.
    pub lock: String,
    /// To the id, the only parameter, unless it is there already.
    pub advance: String,
}

/// `None` where the database sees to it by itself.
pub fn counter(dialect: Dialect, record: &RecordType) -> Option<Counter> {
    match dialect {
        Dialect::Sqlite => None,
        Dialect::Postgres => {
            let table = dialect.quote(&record.table);
            let name =
                format!("CAST(pg_get_serial_sequence('{}', 'id') AS regclass)", table.replace('\'', "''"));
            let last = format!("coalesce(pg_sequence_last_value({name}), 0)");
            Some(Counter {
                is_behind: format!("SELECT 1 WHERE {last} < CAST($1 AS bigint)"),
                lock: format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"),
                advance: format!("SELECT setval({name}, greatest({last}, CAST($1 AS bigint)))"),
            })
        }
    }
}

/// Parameters: of each record the id where it is chosen, then the values. PostgreSQL gives a row for each, in their order:
/// the columns that are `shown`, the id and the version.
pub fn insert(
    dialect: Dialect,
    record: &RecordType,
    chosen_id: bool,
    fields: &[FieldId],
    shown: &[String],
    records: usize,
) -> String {
    let id = chosen_id.then(|| dialect.quote("id"));
    let columns: Vec<String> = id.into_iter().chain(columns(dialect, record, fields)).collect();
    let table = dialect.quote(&record.table);
    let returning = returning(dialect, record, shown);
    if columns.is_empty() {
        return format!("INSERT INTO {table} DEFAULT VALUES{returning}");
    }
    let width = columns.len();
    let row = |row: usize| {
        let values: Vec<String> = (1..=width).map(|column| dialect.parameter(row * width + column)).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (0..records).map(row).collect();
    format!("INSERT INTO {table} ({}) VALUES {}{returning}", columns.join(", "), rows.join(", "))
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
    let returning = returning(dialect, record, read.told_by_row());
    format!("UPDATE {table} SET {} WHERE {condition}{returning}", sets.join(", "))
}

/// Parameters: the id, and the expected version where there is one.
pub fn delete(dialect: Dialect, record: &RecordType, checked: bool, read: &Level) -> String {
    let table = dialect.quote(&record.table);
    let (condition, returning) =
        (identified(dialect, 1, checked), returning(dialect, record, read.told_by_row()));
    format!("DELETE FROM {table} WHERE {condition}{returning}")
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
    let (others, kept) = (dialect.integers(&list, "v"), dialect.none_of(&other, &list));
    Ok(LinkStatements {
        remove: format!("DELETE FROM {table} WHERE {own} = {id} AND {kept}"),
        // `WHERE true` tells SQLite's parser that ON CONFLICT is no join condition.
        add: format!(
            "INSERT INTO {table} ({own}, {other}) SELECT CAST({id} AS bigint), v.value FROM {others} \
             WHERE true ON CONFLICT DO NOTHING"
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

/// The id and the version always come last. It saves PostgreSQL a round trip; SQLite is asked again, which costs less.
fn returning(dialect: Dialect, record: &RecordType, shown: &[String]) -> String {
    match dialect {
        Dialect::Sqlite => String::new(),
        Dialect::Postgres => {
            let shown = shown.iter().map(|column| dialect.read(record, "", column));
            let own = ["id", "_version"].map(|column| dialect.quote(column));
            format!(" RETURNING {}", shown.chain(own).collect::<Vec<_>>().join(", "))
        }
    }
}
