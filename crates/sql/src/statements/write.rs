//! The statements that create, update and delete records and replace their links.

use trefoil_model::error::{Error, Result};
use trefoil_model::{Field, FieldId, KeySource, Link, RecordType};

use crate::link_table_side::{own_side, side_condition};
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::dialect::Dialect;
use crate::statements::select::SelectLevel;

/// Replaces the links of one record. The parameters of each are the record's id and the list of linked ids.
#[derive(Debug)]
pub struct LinkStatements {
    /// Leaves the links to records out of sight.
    pub remove: ReadStatement,
    pub add: String,
    /// The side of the records whose links they are.
    pub side: String,
}

/// Advances the id sequence of a table past an id that the caller chose; otherwise it would assign that id again.
#[derive(Debug)]
pub struct SequenceStatements {
    /// Returns a row if the sequence is behind the id, its only parameter.
    pub is_behind: String,
    /// Run before the record is created, so that no id is assigned meanwhile: a sequence can be set, not raised.
    pub lock: String,
    /// Sets the sequence to the id, its only parameter, unless it is past it.
    pub advance: String,
}

/// `None` if the database advances the sequence by itself.
pub fn sequence_statements(dialect: Dialect, record: &RecordType) -> Option<SequenceStatements> {
    match dialect {
        Dialect::Sqlite => None,
        Dialect::Postgres if record.key_source != KeySource::Counter => None,
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

/// Parameters: for each record the id, if the caller chooses it, then the values. On PostgreSQL it returns one row per
/// record, in order: the columns in `returned`, the id and the version.
pub fn insert_sql(
    dialect: Dialect,
    record: &RecordType,
    chosen_id: bool,
    fields: &[FieldId],
    returned: &[String],
    records: usize,
) -> String {
    let id = chosen_id.then(|| dialect.quote_name("id"));
    let columns: Vec<String> = id.into_iter().chain(quoted_columns(dialect, record, fields)).collect();
    let table = dialect.quote_name(&record.table);
    let returning = returning_clause(dialect, record, returned);
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

/// Parameters: the values, the id, and the expected version if there is one.
pub fn update_sql(
    dialect: Dialect,
    record: &RecordType,
    fields: &[FieldId],
    check_version: bool,
    read_level: &SelectLevel,
) -> String {
    let mut sets: Vec<String> = quoted_columns(dialect, record, fields)
        .enumerate()
        .map(|(i, column)| format!("{column} = {}", dialect.parameter_mark(i + 1)))
        .collect();
    sets.push("\"_version\" = \"_version\" + 1".to_owned());
    let table = dialect.quote_name(&record.table);
    let condition = identity_condition(dialect, fields.len() + 1, check_version);
    let returning = returning_clause(dialect, record, read_level.returning_columns());
    format!("UPDATE {table} SET {} WHERE {condition}{returning}", sets.join(", "))
}

/// Parameters: the id, and the expected version if there is one.
pub fn delete_sql(
    dialect: Dialect,
    record: &RecordType,
    check_version: bool,
    read_level: &SelectLevel,
) -> String {
    let table = dialect.quote_name(&record.table);
    let (condition, returning) = (
        identity_condition(dialect, 1, check_version),
        returning_clause(dialect, record, read_level.returning_columns()),
    );
    format!("DELETE FROM {table} WHERE {condition}{returning}")
}

/// Selects the version of the record whose id is the parameter.
pub fn version_sql(dialect: Dialect, record: &RecordType) -> String {
    let (table, id) = (dialect.quote_name(&record.table), dialect.parameter_mark(1));
    format!("SELECT \"_version\" FROM {table} WHERE \"id\" = {id}")
}

pub fn link_statements(dialect: Dialect, owner: &RecordType, field: &Field) -> Result<LinkStatements> {
    let Some(link) = field.kind.link() else {
        return Err(Error::internal(format!("`{}` is not a link", field.name)));
    };
    let Link { table, own_column, other_column, key_form, .. } = link;
    let is_side = side_condition(dialect, link);
    let [table, own, other] = [table, own_column, other_column].map(|name| dialect.quote_name(name));
    let (id, list) = (dialect.parameter_mark(1), dialect.parameter_mark(2));
    let others = dialect.key_table(*key_form, &list, "v");
    let (own_type, is_removed) = (dialect.key_type(owner.key_form()), dialect.is_not_in_list(&other, &list));
    Ok(LinkStatements {
        remove: ReadStatement::plain(format!(
            "DELETE FROM {table} WHERE {own} = {id} AND {is_removed} AND {is_side}"
        )),
        // Without a WHERE, SQLite's parser takes ON CONFLICT for a join condition.
        add: format!(
            "INSERT INTO {table} ({own}, {other}) SELECT CAST({id} AS {own_type}), v.value FROM {others} \
             WHERE {is_side} ON CONFLICT DO NOTHING"
        ),
        side: own_side(link),
    })
}

fn quoted_columns<'a>(
    dialect: Dialect,
    record: &'a RecordType,
    fields: &'a [FieldId],
) -> impl Iterator<Item = String> + 'a {
    fields.iter().map(move |field| dialect.quote_name(&record.field(*field).column))
}

fn identity_condition(dialect: Dialect, number: usize, check_version: bool) -> String {
    let id = format!("\"id\" = {}", dialect.parameter_mark(number));
    if check_version { format!("{id} AND \"_version\" = {}", dialect.parameter_mark(number + 1)) } else { id }
}

/// The id and the version always come last. It saves a round trip on PostgreSQL; on SQLite another query costs less.
fn returning_clause(dialect: Dialect, record: &RecordType, returned: &[String]) -> String {
    match dialect {
        Dialect::Sqlite => String::new(),
        Dialect::Postgres => {
            let columns = returned.iter().map(|column| dialect.read_column(record, "", column));
            let id = dialect.read_key(record.key_form(), &dialect.quote_name("id"));
            let own = [id, dialect.quote_name("_version")];
            format!(" RETURNING {}", columns.chain(own).collect::<Vec<_>>().join(", "))
        }
    }
}
