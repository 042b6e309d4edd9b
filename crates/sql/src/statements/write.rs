//! The statements that create, change and delete records, and those that replace their links.

use trefoil_model::error::{Error, Result};
use trefoil_model::{Field, FieldId, FieldKind, RecordType};

use crate::statements::dialect::Dialect;
use crate::statements::select::SelectLevel;

/// Replaces the records that one record is linked with. Each has the record's id as first parameter and the
/// list of the others as second.
#[derive(Debug)]
pub struct LinkStatements {
    pub remove: String,
    pub add: String,
}

/// Moves the counter of a table's ids beyond one that was chosen; it would give that id a second time otherwise.
#[derive(Debug)]
pub struct SequenceStatements {
    /// Whether the id, the only parameter, is beyond it.
    pub is_behind: String,
    /// Taken before the record is created, so that nobody draws an id meanwhile: the counter can only be set.
    pub lock: String,
    /// To the id, the only parameter, unless it is there already.
    pub advance: String,
}

/// `None` where the database sees to it by itself.
pub fn sequence_statements(dialect: Dialect, record: &RecordType) -> Option<SequenceStatements> {
    match dialect {
        Dialect::Sqlite => None,
        Dialect::Postgres => {
            let table = dialect.quote_name(&record.table);
            let name =
                format!("CAST(pg_get_serial_sequence('{}', 'id') AS regclass)", table.replace('\'', "''"));
            let last = format!("coalesce(pg_sequence_last_value({name}), 0)");
            Some(SequenceStatements {
                is_behind: format!("SELECT 1 WHERE {last} < CAST($1 AS bigint)"),
                lock: format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"),
                advance: format!("SELECT setval({name}, greatest({last}, CAST($1 AS bigint)))"),
            })
        }
    }
}

/// Parameters: of each record the id where it is chosen, then the values. PostgreSQL gives a row for each, in their order:
/// the columns that are `shown`, the id and the version.
pub fn insert_sql(
    dialect: Dialect,
    record: &RecordType,
    chosen_id: bool,
    fields: &[FieldId],
    shown: &[String],
    records: usize,
) -> String {
    let id = chosen_id.then(|| dialect.quote_name("id"));
    let columns: Vec<String> = id.into_iter().chain(quoted_columns(dialect, record, fields)).collect();
    let table = dialect.quote_name(&record.table);
    let returning = returning_clause(dialect, record, shown);
    if columns.is_empty() {
        return format!("INSERT INTO {table} DEFAULT VALUES{returning}");
    }
    let width = columns.len();
    let row = |row: usize| {
        let values: Vec<String> =
            (1..=width).map(|column| dialect.parameter_mark(row * width + column)).collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (0..records).map(row).collect();
    format!("INSERT INTO {table} ({}) VALUES {}{returning}", columns.join(", "), rows.join(", "))
}

/// Parameters: the values, the id, and the expected version where there is one.
pub fn update_sql(
    dialect: Dialect,
    record: &RecordType,
    fields: &[FieldId],
    checked: bool,
    read: &SelectLevel,
) -> String {
    let mut sets: Vec<String> = quoted_columns(dialect, record, fields)
        .enumerate()
        .map(|(i, column)| format!("{column} = {}", dialect.parameter_mark(i + 1)))
        .collect();
    sets.push("\"_version\" = \"_version\" + 1".to_owned());
    let table = dialect.quote_name(&record.table);
    let condition = identity_condition(dialect, fields.len() + 1, checked);
    let returning = returning_clause(dialect, record, read.returning_columns());
    format!("UPDATE {table} SET {} WHERE {condition}{returning}", sets.join(", "))
}

/// Parameters: the id, and the expected version where there is one.
pub fn delete_sql(dialect: Dialect, record: &RecordType, checked: bool, read: &SelectLevel) -> String {
    let table = dialect.quote_name(&record.table);
    let (condition, returning) = (
        identity_condition(dialect, 1, checked),
        returning_clause(dialect, record, read.returning_columns()),
    );
    format!("DELETE FROM {table} WHERE {condition}{returning}")
}

/// The version of the record whose id is the parameter.
pub fn version_sql(dialect: Dialect, record: &RecordType) -> String {
    let (table, id) = (dialect.quote_name(&record.table), dialect.parameter_mark(1));
    format!("SELECT \"_version\" FROM {table} WHERE \"id\" = {id}")
}

pub fn link_statements(dialect: Dialect, field: &Field) -> Result<LinkStatements> {
    let FieldKind::Link { table, own_column, other_column, .. } = &field.kind else {
        return Err(Error::internal(format!("`{}` is no link", field.name)));
    };
    let [table, own, other] = [table, own_column, other_column].map(|name| dialect.quote_name(name));
    let (id, list) = (dialect.parameter_mark(1), dialect.parameter_mark(2));
    let (others, kept) = (dialect.integer_table(&list, "v"), dialect.is_not_in_list(&other, &list));
    Ok(LinkStatements {
        remove: format!("DELETE FROM {table} WHERE {own} = {id} AND {kept}"),
        // `WHERE true` tells SQLite's parser that ON CONFLICT is no join condition.
        add: format!(
            "INSERT INTO {table} ({own}, {other}) SELECT CAST({id} AS bigint), v.value FROM {others} \
             WHERE true ON CONFLICT DO NOTHING"
        ),
    })
}

fn quoted_columns<'a>(
    dialect: Dialect,
    record: &'a RecordType,
    fields: &'a [FieldId],
) -> impl Iterator<Item = String> + 'a {
    fields.iter().map(move |field| dialect.quote_name(&record.field(*field).column))
}

fn identity_condition(dialect: Dialect, number: usize, checked: bool) -> String {
    let id = format!("\"id\" = {}", dialect.parameter_mark(number));
    if checked { format!("{id} AND \"_version\" = {}", dialect.parameter_mark(number + 1)) } else { id }
}

/// The id and the version always come last. It saves PostgreSQL a round trip; SQLite is asked again, which costs less.
fn returning_clause(dialect: Dialect, record: &RecordType, shown: &[String]) -> String {
    match dialect {
        Dialect::Sqlite => String::new(),
        Dialect::Postgres => {
            let shown = shown.iter().map(|column| dialect.read_column(record, "", column));
            let own = ["id", "_version"].map(|column| dialect.quote_name(column));
            format!(" RETURNING {}", shown.chain(own).collect::<Vec<_>>().join(", "))
        }
    }
}
