//! The indexes on PostgreSQL: what is there, what is wanted, and the way from the one to the other while others read on.
//!
//! Writers wait while an index is made, and readers too where one is dropped, until the transaction ends. So one that has
//! had its day is renamed, for which nobody waits, and dropped once the migration is over.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::migrate::MigrateError;
use crate::migrate::ddl::{quote_name, quote_text};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::phrases;
use crate::migrate::postgres::PostgresMigration;
use crate::migrate::postgres::catalog::{SCHEMA_OID, shorten_name};
use crate::migrate::stored_model;
use crate::migrate::stored_model::{LinkTable, StoredModel, StoredTable};

/// What the names of indexes that are to be dropped begin with.
const OBSOLETE_PREFIX: &str = "trefoil_gone_";

/// How long a table is waited for to drop one, in milliseconds; whoever comes meanwhile waits behind.
const DROP_TIMEOUT_MS: i64 = 1_000;

/// The comment of an index that stands in for another.
const FALLBACK_COMMENT: &str = "without the id: some value is so long that both do not fit";

/// An index of plain columns.
#[derive(Debug, PartialEq)]
struct TableIndex {
    name: String,
    table: String,
    unique: bool,
    columns: Vec<String>,
    /// It is there because one that ends in the id cannot be made.
    is_fallback: bool,
}

struct RequiredIndex {
    index: TableIndex,
    fallback: Option<TableIndex>,
    /// In words.
    description: String,
}

/// Makes what is missing, and gives the names of those that must be dropped before the transaction ends: what was unique
/// may not be any more. An index whose columns stay is renamed where its name is to be another one.
pub fn sync_indexes(
    host: &PostgresMigration,
    old: Option<&StoredModel>,
    new: &StoredModel,
) -> Result<Vec<String>, MigrateError> {
    let (found, wanted) = (find_indexes(host)?, required_indexes(new));
    let IndexDifference { obsolete: spare, renamed: moved, missing } =
        IndexDifference::compute(&found, &wanted, old, new);
    let mut doomed = Vec::new();
    for one in spare {
        let name = format!("{OBSOLETE_PREFIX}{}", uuid::Uuid::new_v4().simple());
        rename_index(host, &one.name, &name)?;
        doomed.extend(one.unique.then_some(name));
    }
    for (at, (from, _)) in moved.iter().enumerate() {
        rename_index(host, &from.name, &format!("trefoil_moving_{at}"))?;
    }
    for (at, (_, to)) in moved.iter().enumerate() {
        rename_index(host, &format!("trefoil_moving_{at}"), &to.name)?;
    }
    lock_tables(host, &missing)?;
    missing.into_iter().try_for_each(|one| host.execute_batch(&one.create_sql()))?;
    Ok(doomed)
}

/// All tables whose writers will have to wait at once: to come to the next one after a long while could be for nothing,
/// where somebody who has it waits for the one before.
fn lock_tables(host: &PostgresMigration, missing: &[&RequiredIndex]) -> Result<(), MigrateError> {
    let tables: BTreeSet<String> = missing.iter().map(|one| quote_name(&one.index.table)).collect();
    if tables.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = tables.into_iter().collect();
    host.execute_batch(&format!("LOCK TABLE {} IN SHARE MODE", tables.join(", ")))
}

/// From the indexes that are there to those that are wanted.
struct IndexDifference<'d> {
    /// Ours, and wanted no more.
    obsolete: Vec<&'d TableIndex>,
    /// There under another name.
    renamed: Vec<(&'d TableIndex, &'d TableIndex)>,
    missing: Vec<&'d RequiredIndex>,
}

impl<'d> IndexDifference<'d> {
    fn compute(
        found: &'d [TableIndex],
        wanted: &'d [RequiredIndex],
        old: Option<&StoredModel>,
        new: &StoredModel,
    ) -> IndexDifference<'d> {
        let kept: Vec<&TableIndex> = wanted.iter().filter_map(|one| one.find_in(found)).collect();
        let ours: Vec<String> = old.into_iter().chain([new]).flat_map(all_names).collect();
        let mut spare: Vec<&TableIndex> =
            found.iter().filter(|one| ours.contains(&one.name) && !kept.contains(one)).collect();
        let (mut moved, mut missing) = (Vec::new(), Vec::new());
        for one in wanted.iter().filter(|one| one.find_in(found).is_none()) {
            let like = |form: &TableIndex| spare.iter().position(|other| other.is_same_index(form));
            match one.candidates().find_map(|form| Some((like(form)?, form))) {
                Some((at, form)) => moved.push((spare.remove(at), form)),
                None => missing.push(one),
            }
        }
        IndexDifference { obsolete: spare, renamed: moved, missing }
    }
}

pub fn drop_indexes(host: &PostgresMigration, names: &[String]) -> Result<(), MigrateError> {
    names
        .iter()
        .try_for_each(|name| host.execute_batch(&format!("DROP INDEX IF EXISTS {}", quote_name(name))))
}

/// What of the old shape stays in the new one and has to be made all the same, in words: an earlier version, or someone
/// else, has left it otherwise.
pub fn index_rebuilds(
    host: &PostgresMigration,
    old: &StoredModel,
    new: &StoredModel,
) -> Result<Vec<String>, MigrateError> {
    let (found, wanted_now, wanted_before) =
        (find_indexes(host)?, required_indexes(new), required_indexes(old));
    let missing = IndexDifference::compute(&found, &wanted_now, Some(old), new).missing;
    let was = |one: &&RequiredIndex| wanted_before.iter().any(|other| other.index.is_same_index(&one.index));
    let again = missing.into_iter().filter(was);
    Ok(again
        .map(|one| format!("{} made anew; meanwhile writes wait, reads do not", one.description))
        .collect())
}

/// Each in a transaction of its own. One whose table is used for too long stays for a later start.
pub async fn drop_obsolete(client: &mut Client) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "SELECT i.relname::text, t.relname::text FROM pg_class i \
         JOIN pg_index x ON x.indexrelid = i.oid JOIN pg_class t ON t.oid = x.indrelid \
         WHERE i.relnamespace = {SCHEMA_OID} AND {}",
        is_obsolete_sql("i.relname")
    );
    let mut used: Vec<String> = Vec::new();
    for row in client.query(&sql, &[]).await? {
        let (name, table): (&str, &str) = (row.get(0), row.get(1));
        // Readers have waited behind us once.
        if used.iter().any(|known| known == table) {
            continue;
        }
        let transaction = client.transaction().await?;
        let sql =
            format!("SET LOCAL lock_timeout = {DROP_TIMEOUT_MS}; DROP INDEX IF EXISTS {}", quote_name(name));
        match transaction.batch_execute(&sql).await {
            Ok(()) => transaction.commit().await?,
            Err(error) => {
                let cause =
                    error.as_db_error().map_or_else(|| error.to_string(), |told| told.message().to_owned());
                tracing::warn!(
                    index = name,
                    table,
                    cause,
                    "an index that is not needed any more could not be dropped; the next start tries again"
                );
                transaction.rollback().await?;
                used.push(table.to_owned());
            }
        }
    }
    Ok(())
}

/// What an index of a table may be called.
pub fn possible_names(index: &stored_model::StoredIndex) -> [String; 2] {
    [shorten_name(&index.name), name_with_id(&index.name)]
}

/// Whether the index of this name, an expression, is to be dropped.
pub fn is_obsolete_sql(name: &str) -> String {
    format!("starts_with({name}::text, '{OBSOLETE_PREFIX}')")
}

/// Those of a table that are to be dropped.
pub fn obsolete_names(host: &PostgresMigration, table: &str) -> Result<Vec<String>, MigrateError> {
    let found = find_indexes(host)?
        .into_iter()
        .filter(|one| one.table == table && one.name.starts_with(OBSOLETE_PREFIX));
    Ok(found.map(|one| one.name).collect())
}

fn all_names(model: &StoredModel) -> Vec<String> {
    let tables = model.tables.iter().flat_map(|table| &table.indexes).flat_map(possible_names);
    tables.chain(model.links.iter().map(|link| shorten_name(&link.index))).collect()
}

/// Another name than without the id, so that a version that knows nothing of ids leaves it alone.
fn name_with_id(name: &str) -> String {
    shorten_name(&format!("{name}_by_id"))
}

fn rename_index(host: &PostgresMigration, from: &str, to: &str) -> Result<(), MigrateError> {
    host.execute_batch(&format!("ALTER INDEX {} RENAME TO {}", quote_name(from), quote_name(to)))
}

fn find_indexes(host: &PostgresMigration) -> Result<Vec<TableIndex>, MigrateError> {
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
    let rows = host.query_texts(&sql, &[])?;
    let index = |row: Vec<String>| TableIndex {
        name: row[0].clone(),
        table: row[1].clone(),
        unique: row[2] == "true",
        columns: row[3].split(',').map(str::to_owned).collect(),
        is_fallback: row[4] == FALLBACK_COMMENT,
    };
    Ok(rows.into_iter().map(index).collect())
}

fn required_indexes(model: &StoredModel) -> Vec<RequiredIndex> {
    let of = |table: &StoredTable| {
        table.indexes.iter().map(|index| RequiredIndex::for_index(table, index)).collect::<Vec<_>>()
    };
    let tables = model.tables.iter().flat_map(of);
    tables.chain(model.links.iter().map(RequiredIndex::for_link)).collect()
}

impl RequiredIndex {
    /// Lists are in the order of ids, which SQLite's indexes end in by themselves. Without it, a plan made for all values
    /// walks the whole table in search of a rare one.
    fn for_index(table: &StoredTable, index: &stored_model::StoredIndex) -> RequiredIndex {
        let bare = TableIndex {
            name: shorten_name(&index.name),
            table: table.table.clone(),
            unique: index.unique,
            columns: index.columns.clone(),
            is_fallback: false,
        };
        let what = format!("{}: {}", table.name, phrases::describe_index(index));
        if index.unique || index.columns.iter().any(|column| column == "id") {
            return RequiredIndex { index: bare, fallback: None, description: what };
        }
        let whole = TableIndex {
            name: name_with_id(&index.name),
            table: table.table.clone(),
            unique: false,
            columns: index.columns.iter().cloned().chain(["id".to_owned()]).collect(),
            is_fallback: false,
        };
        RequiredIndex {
            index: whole,
            fallback: Some(TableIndex { is_fallback: true, ..bare }),
            description: what,
        }
    }

    fn for_link(link: &LinkTable) -> RequiredIndex {
        let index = TableIndex {
            name: shorten_name(&link.index),
            table: link.table.clone(),
            unique: false,
            columns: vec![link.second.column.clone(), link.first.column.clone()],
            is_fallback: false,
        };
        let what = format!("{}: index on {}", link.table, index.columns.join(", "));
        RequiredIndex { index, fallback: None, description: what }
    }

    fn candidates(&self) -> impl Iterator<Item = &TableIndex> {
        std::iter::once(&self.index).chain(&self.fallback)
    }

    fn find_in<'f>(&self, found: &'f [TableIndex]) -> Option<&'f TableIndex> {
        self.candidates().find_map(|form| found.iter().find(|other| *other == form))
    }

    /// A value of nearly all that an index holds leaves no room for the id. It was taken before, so it has to go on.
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
        (&self.table, self.unique, &self.columns, self.is_fallback)
            == (&other.table, other.unique, &other.columns, other.is_fallback)
    }

    fn create_sql(&self) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let columns: Vec<String> = self.columns.iter().map(|column| quote_name(column)).collect();
        let (name, table) = (quote_name(&self.name), quote_name(&self.table));
        format!("CREATE {unique}INDEX {name} ON {table} ({})", columns.join(", "))
    }
}
