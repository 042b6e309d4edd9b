//! Brings the indexes on PostgreSQL to those of the new model while other sessions keep reading.
//!
//! Until the transaction ends, creating an index blocks writers and dropping one blocks readers too. An obsolete index
//! is therefore only renamed, which blocks neither, and dropped after the migration.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::migrate::MigrateError;
use crate::migrate::create_statements::{quote_name, quote_text};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::phrases;
use crate::migrate::postgres::database::PostgresMigration;
use crate::migrate::postgres::ddl::POSTGRES_DDL;
use crate::migrate::postgres::sql_objects::{SCHEMA_OID, shorten_name};
use crate::migrate::stored_model::{LinkTable, StoredIndex, StoredModel, StoredTable};
use crate::statements::search::search_index;

/// The name prefix of indexes that are to be dropped.
const OBSOLETE_PREFIX: &str = "trefoil_gone_";

/// Milliseconds to wait for a table to drop an index; other sessions queue behind the wait.
const DROP_TIMEOUT_MS: i64 = 1_000;

/// The comment that marks a fallback index.
const FALLBACK_COMMENT: &str = "without the id: some value is so long that both do not fit";

/// The beginning of the comment on an index that ignores case; the column follows, because the catalog has only an
/// expression.
const IGNORE_CASE_COMMENT: &str = "ignores the case of ";

/// The beginning of the comment on a full-text index; its columns follow.
const SEARCH_COMMENT: &str = "search in ";

/// An index on columns of a table.
#[derive(Debug, PartialEq)]
struct TableIndex {
    name: String,
    table: String,
    unique: bool,
    columns: Vec<String>,
    /// True if it was created because an index that ends in the id was not possible.
    is_fallback: bool,
    ignores_case: bool,
    /// A full-text index.
    is_search: bool,
}

/// An index of the model, and the one to create if some value is too long for it.
struct RequiredIndex {
    index: TableIndex,
    fallback: Option<TableIndex>,
    /// The record type and the columns.
    description: String,
}

/// Renames and creates indexes; returns the names of those that must be dropped before the transaction ends, because
/// they would still enforce uniqueness.
pub fn sync_indexes(
    database: &PostgresMigration,
    old: Option<&StoredModel>,
    new: &StoredModel,
) -> Result<Vec<String>, MigrateError> {
    let (found, required) = (find_indexes(database)?, required_indexes(new));
    let IndexDifference { obsolete, renamed, missing } =
        IndexDifference::compute(&found, &required, old, new);
    let mut to_drop = Vec::new();
    for index in obsolete {
        let name = format!("{OBSOLETE_PREFIX}{}", uuid::Uuid::new_v4().simple());
        rename_index(database, &index.name, &name)?;
        to_drop.extend(index.unique.then_some(name));
    }
    for (position, (from, _)) in renamed.iter().enumerate() {
        rename_index(database, &from.name, &format!("trefoil_moving_{position}"))?;
    }
    for (position, (_, to)) in renamed.iter().enumerate() {
        rename_index(database, &format!("trefoil_moving_{position}"), &to.name)?;
    }
    lock_tables(database, &missing)?;
    missing.into_iter().try_for_each(|index| database.execute_batch(&index.create_sql()))?;
    Ok(to_drop)
}

/// Locks all tables of missing indexes at once. Locking each only when its index is created could end in a deadlock
/// after a long build.
fn lock_tables(database: &PostgresMigration, missing: &[&RequiredIndex]) -> Result<(), MigrateError> {
    let tables: BTreeSet<String> = missing.iter().map(|required| quote_name(&required.index.table)).collect();
    if tables.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = tables.into_iter().collect();
    database.execute_batch(&format!("LOCK TABLE {} IN SHARE MODE", tables.join(", ")))
}

/// The difference between the existing and the required indexes.
struct IndexDifference<'d> {
    /// Our indexes that are no longer required.
    obsolete: Vec<&'d TableIndex>,
    /// Existing indexes with their new definition, which differs in the name only.
    renamed: Vec<(&'d TableIndex, &'d TableIndex)>,
    missing: Vec<&'d RequiredIndex>,
}

impl<'d> IndexDifference<'d> {
    fn compute(
        found: &'d [TableIndex],
        required: &'d [RequiredIndex],
        old: Option<&StoredModel>,
        new: &StoredModel,
    ) -> IndexDifference<'d> {
        let current: Vec<&TableIndex> = required.iter().filter_map(|index| index.find_in(found)).collect();
        let ours: Vec<String> = old.into_iter().chain([new]).flat_map(all_names).collect();
        let mut obsolete: Vec<&TableIndex> =
            found.iter().filter(|index| ours.contains(&index.name) && !current.contains(index)).collect();
        let (mut renamed, mut missing) = (Vec::new(), Vec::new());
        for required_index in required.iter().filter(|index| index.find_in(found).is_none()) {
            let find_same = |candidate: &TableIndex| {
                obsolete.iter().position(|found_index| found_index.is_same_index(candidate))
            };
            match required_index.candidates().find_map(|candidate| Some((find_same(candidate)?, candidate))) {
                Some((position, candidate)) => renamed.push((obsolete.remove(position), candidate)),
                None => missing.push(required_index),
            }
        }
        IndexDifference { obsolete, renamed, missing }
    }
}

pub fn drop_indexes(database: &PostgresMigration, names: &[String]) -> Result<(), MigrateError> {
    names
        .iter()
        .try_for_each(|name| database.execute_batch(&format!("DROP INDEX IF EXISTS {}", quote_name(name))))
}

/// Describes the indexes of both models that have to be rebuilt, because an earlier version or another program left
/// them different.
pub fn index_rebuilds(
    database: &PostgresMigration,
    old: &StoredModel,
    new: &StoredModel,
) -> Result<Vec<String>, MigrateError> {
    let (found, required_now, required_before) =
        (find_indexes(database)?, required_indexes(new), required_indexes(old));
    let missing = IndexDifference::compute(&found, &required_now, Some(old), new).missing;
    let was_required =
        |now: &&RequiredIndex| required_before.iter().any(|before| before.index.is_same_index(&now.index));
    let rebuilt = missing.into_iter().filter(was_required);
    Ok(rebuilt
        .map(|index| format!("{} rebuilt; writes wait until it is done, reads do not", index.description))
        .collect())
}

/// Drops obsolete indexes, each in its own transaction. If a table stays locked, its indexes are left for a later
/// start.
pub async fn drop_obsolete(client: &mut Client) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "SELECT i.relname::text, t.relname::text FROM pg_class i \
         JOIN pg_index x ON x.indexrelid = i.oid JOIN pg_class t ON t.oid = x.indrelid \
         WHERE i.relnamespace = {SCHEMA_OID} AND {}",
        is_obsolete_sql("i.relname")
    );
    let mut locked_tables: Vec<String> = Vec::new();
    for row in client.query(&sql, &[]).await? {
        let (name, table): (&str, &str) = (row.get(0), row.get(1));
        // Readers of this table have queued behind our wait once already.
        if locked_tables.iter().any(|locked| locked == table) {
            continue;
        }
        let transaction = client.transaction().await?;
        let sql =
            format!("SET LOCAL lock_timeout = {DROP_TIMEOUT_MS}; DROP INDEX IF EXISTS {}", quote_name(name));
        match transaction.batch_execute(&sql).await {
            Ok(()) => transaction.commit().await?,
            Err(error) => {
                let cause = error
                    .as_db_error()
                    .map_or_else(|| error.to_string(), |db_error| db_error.message().to_owned());
                tracing::warn!(
                    index = name,
                    table,
                    cause,
                    "cannot drop an unused index; the next start will try again"
                );
                transaction.rollback().await?;
                locked_tables.push(table.to_owned());
            }
        }
    }
    Ok(())
}

/// The names that an index may have.
pub fn possible_names(index: &StoredIndex) -> [String; 2] {
    [shorten_name(&index.name), name_with_id(&index.name)]
}

/// A condition: the index whose name the expression `name` gives is obsolete.
pub fn is_obsolete_sql(name: &str) -> String {
    format!("starts_with({name}::text, '{OBSOLETE_PREFIX}')")
}

/// The obsolete indexes of a table.
pub fn obsolete_names(database: &PostgresMigration, table: &str) -> Result<Vec<String>, MigrateError> {
    let found = find_indexes(database)?
        .into_iter()
        .filter(|index| index.table == table && index.name.starts_with(OBSOLETE_PREFIX));
    Ok(found.map(|index| index.name).collect())
}

fn all_names(model: &StoredModel) -> Vec<String> {
    let tables = model.tables.iter().flat_map(|table| &table.indexes).flat_map(possible_names);
    let search = model.tables.iter().map(search_name);
    tables.chain(search).chain(model.links.iter().map(|link| shorten_name(&link.index))).collect()
}

/// The name of the full-text index of a table.
pub fn search_name(table: &StoredTable) -> String {
    shorten_name(&search_index::index_table(&table.table))
}

/// The name of an index that ends in the id. It differs from the plain name so that an older version, which does not
/// add the id, leaves it alone.
fn name_with_id(name: &str) -> String {
    shorten_name(&format!("{name}_by_id"))
}

fn rename_index(database: &PostgresMigration, from: &str, to: &str) -> Result<(), MigrateError> {
    database.execute_batch(&format!("ALTER INDEX {} RENAME TO {}", quote_name(from), quote_name(to)))
}

fn find_indexes(database: &PostgresMigration) -> Result<Vec<TableIndex>, MigrateError> {
    let sql = format!(
        "SELECT i.relname, t.relname, x.indisunique::text, \
         CASE WHEN x.indpred IS NULL AND x.indexprs IS NULL AND x.indisvalid THEN \
         (SELECT string_agg(a.attname, ',' ORDER BY k.place) \
         FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(number, place) \
         JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number) ELSE '' END, \
         obj_description(i.oid, 'pg_class') \
         FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid \
         WHERE i.relnamespace = {SCHEMA_OID}"
    );
    let rows = database.query_texts(&sql, &[])?;
    let index = |row: Vec<String>| {
        let ignoring_case = row[4].strip_prefix(IGNORE_CASE_COMMENT);
        let search = row[4].strip_prefix(SEARCH_COMMENT);
        TableIndex {
            name: row[0].clone(),
            table: row[1].clone(),
            unique: row[2] == "true",
            columns: ignoring_case.or(search).unwrap_or(&row[3]).split(',').map(str::to_owned).collect(),
            is_fallback: row[4] == FALLBACK_COMMENT,
            ignores_case: ignoring_case.is_some(),
            is_search: search.is_some(),
        }
    };
    Ok(rows.into_iter().map(index).collect())
}

fn required_indexes(model: &StoredModel) -> Vec<RequiredIndex> {
    let table_indexes = |table: &StoredTable| {
        let indexes = table.indexes.iter().map(|index| RequiredIndex::for_index(table, index));
        indexes.chain(RequiredIndex::for_search(table)).collect::<Vec<_>>()
    };
    let tables = model.tables.iter().flat_map(table_indexes);
    tables.chain(model.links.iter().map(RequiredIndex::for_link)).collect()
}

impl RequiredIndex {
    /// Ends the index in the id, since lists are ordered by id; on SQLite every index ends in it. Without the id, a
    /// generic query plan scans the whole table for a rare value.
    fn for_index(table: &StoredTable, index: &StoredIndex) -> RequiredIndex {
        let plain = TableIndex {
            name: shorten_name(&index.name),
            table: table.table.clone(),
            unique: index.unique,
            columns: index.columns.clone(),
            is_fallback: false,
            ignores_case: index.ignores_case,
            is_search: false,
        };
        let description = format!("{}: {}", table.name, phrases::describe_index(index));
        if index.unique || index.ignores_case || index.columns.iter().any(|column| column == "id") {
            return RequiredIndex { index: plain, fallback: None, description };
        }
        let with_id = TableIndex {
            name: name_with_id(&index.name),
            table: table.table.clone(),
            unique: false,
            columns: index.columns.iter().cloned().chain(["id".to_owned()]).collect(),
            is_fallback: false,
            ignores_case: false,
            is_search: false,
        };
        RequiredIndex {
            index: with_id,
            fallback: Some(TableIndex { is_fallback: true, ..plain }),
            description,
        }
    }

    fn for_search(table: &StoredTable) -> Option<RequiredIndex> {
        let index = TableIndex {
            name: search_name(table),
            table: table.table.clone(),
            unique: false,
            columns: table.search.clone(),
            is_fallback: false,
            ignores_case: false,
            is_search: true,
        };
        let description = format!("{}: full-text index on {}", table.name, table.search.join(", "));
        (!table.search.is_empty()).then_some(RequiredIndex { index, fallback: None, description })
    }

    fn for_link(link: &LinkTable) -> RequiredIndex {
        let index = TableIndex {
            name: shorten_name(&link.index),
            table: link.table.clone(),
            unique: false,
            columns: vec![link.second.column.clone(), link.first.column.clone()],
            is_fallback: false,
            ignores_case: false,
            is_search: false,
        };
        let description = format!("{}: index on {}", link.table, index.columns.join(", "));
        RequiredIndex { index, fallback: None, description }
    }

    fn candidates(&self) -> impl Iterator<Item = &TableIndex> {
        std::iter::once(&self.index).chain(&self.fallback)
    }

    fn find_in<'f>(&self, found: &'f [TableIndex]) -> Option<&'f TableIndex> {
        self.candidates().find_map(|candidate| found.iter().find(|other| *other == candidate))
    }

    /// Creates the index, or the fallback if a value is so long that the id does not fit: such a value was valid before
    /// indexes ended in the id.
    fn create_sql(&self) -> String {
        let made = self.index.create_sql();
        let Some(other) = &self.fallback else { return made };
        let (name, comment) = (quote_name(&other.name), quote_text(FALLBACK_COMMENT));
        format!(
            "DO $trefoil$ BEGIN {made}; EXCEPTION WHEN program_limit_exceeded THEN \
             {}; COMMENT ON INDEX {name} IS {comment}; END $trefoil$",
            other.create_sql()
        )
    }
}

impl TableIndex {
    fn is_same_index(&self, other: &TableIndex) -> bool {
        let properties =
            |index: &TableIndex| (index.unique, index.is_fallback, index.ignores_case, index.is_search);
        (&self.table, &self.columns, properties(self)) == (&other.table, &other.columns, properties(other))
    }

    fn create_sql(&self) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let columns: Vec<String> = self.columns.iter().map(|column| quote_name(column)).collect();
        let (name, table) = (quote_name(&self.name), quote_name(&self.table));
        let sql = |terms: &str| format!("CREATE {unique}INDEX {name} ON {table} ({terms})");
        if self.is_search {
            let words = search_index::words_expression("", &self.columns);
            let comment = quote_text(&format!("{SEARCH_COMMENT}{}", self.columns.join(",")));
            return format!(
                "CREATE INDEX {name} ON {table} USING gin ({words}); COMMENT ON INDEX {name} IS {comment}"
            );
        }
        if !self.ignores_case {
            return sql(&columns.join(", "));
        }
        let mut terms = columns;
        if let Some(last) = terms.last_mut() {
            *last = (POSTGRES_DDL.case_key)(last);
        }
        let comment = quote_text(&format!("{IGNORE_CASE_COMMENT}{}", self.columns.join(",")));
        format!("{}; COMMENT ON INDEX {name} IS {comment}", sql(&terms.join(", ")))
    }
}
