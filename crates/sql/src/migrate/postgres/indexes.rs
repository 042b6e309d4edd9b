//! The indexes on PostgreSQL: what is there, what is wanted, and the way from the one to the other while others read on.
//!
//! Writers wait while an index is made, and readers too where one is dropped, until the transaction ends. So one that has
//! had its day is renamed, for which nobody waits, and dropped once the migration is over.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::migrate::MigrateError;
use crate::migrate::ddl::{quoted, text};
use crate::migrate::migration_database::Host;
use crate::migrate::phrases;
use crate::migrate::postgres::Postgres;
use crate::migrate::postgres::catalog::{OURS, short};
use crate::migrate::stored_model;
use crate::migrate::stored_model::{LinkTable, StoredModel, Table};

/// What the names of indexes that are to be dropped begin with.
const GONE: &str = "trefoil_gone_";

/// How long a table is waited for to drop one, in milliseconds; whoever comes meanwhile waits behind.
const PATIENCE: i64 = 1_000;

/// The comment of an index that stands in for another.
const STANDS_IN: &str = "without the id: some value is so long that both do not fit";

/// An index of plain columns.
#[derive(Debug, PartialEq)]
struct Index {
    name: String,
    table: String,
    unique: bool,
    columns: Vec<String>,
    /// It is there because one that ends in the id cannot be made.
    stands_in: bool,
}

struct Wanted {
    index: Index,
    stand_in: Option<Index>,
    /// In words.
    what: String,
}

/// Makes what is missing, and gives the names of those that must be dropped before the transaction ends: what was unique
/// may not be any more. An index whose columns stay is renamed where its name is to be another one.
pub fn sync(
    host: &Postgres,
    old: Option<&StoredModel>,
    new: &StoredModel,
) -> Result<Vec<String>, MigrateError> {
    let (found, wanted) = (found(host)?, wanted(new));
    let Difference { spare, moved, missing } = Difference::of(&found, &wanted, old, new);
    let mut doomed = Vec::new();
    for one in spare {
        let name = format!("{GONE}{}", uuid::Uuid::new_v4().simple());
        rename(host, &one.name, &name)?;
        doomed.extend(one.unique.then_some(name));
    }
    for (at, (from, _)) in moved.iter().enumerate() {
        rename(host, &from.name, &format!("trefoil_moving_{at}"))?;
    }
    for (at, (_, to)) in moved.iter().enumerate() {
        rename(host, &format!("trefoil_moving_{at}"), &to.name)?;
    }
    hold(host, &missing)?;
    missing.into_iter().try_for_each(|one| host.batch(&one.sql()))?;
    Ok(doomed)
}

/// All tables whose writers will have to wait at once: to come to the next one after a long while could be for nothing,
/// where somebody who has it waits for the one before.
fn hold(host: &Postgres, missing: &[&Wanted]) -> Result<(), MigrateError> {
    let tables: BTreeSet<String> = missing.iter().map(|one| quoted(&one.index.table)).collect();
    if tables.is_empty() {
        return Ok(());
    }
    let tables: Vec<String> = tables.into_iter().collect();
    host.batch(&format!("LOCK TABLE {} IN SHARE MODE", tables.join(", ")))
}

/// From the indexes that are there to those that are wanted.
struct Difference<'d> {
    /// Ours, and wanted no more.
    spare: Vec<&'d Index>,
    /// There under another name.
    moved: Vec<(&'d Index, &'d Index)>,
    missing: Vec<&'d Wanted>,
}

impl<'d> Difference<'d> {
    fn of(
        found: &'d [Index],
        wanted: &'d [Wanted],
        old: Option<&StoredModel>,
        new: &StoredModel,
    ) -> Difference<'d> {
        let kept: Vec<&Index> = wanted.iter().filter_map(|one| one.among(found)).collect();
        let ours: Vec<String> = old.into_iter().chain([new]).flat_map(all_names).collect();
        let mut spare: Vec<&Index> =
            found.iter().filter(|one| ours.contains(&one.name) && !kept.contains(one)).collect();
        let (mut moved, mut missing) = (Vec::new(), Vec::new());
        for one in wanted.iter().filter(|one| one.among(found).is_none()) {
            let like = |form: &Index| spare.iter().position(|other| other.is_like(form));
            match one.forms().find_map(|form| Some((like(form)?, form))) {
                Some((at, form)) => moved.push((spare.remove(at), form)),
                None => missing.push(one),
            }
        }
        Difference { spare, moved, missing }
    }
}

pub fn drop_all(host: &Postgres, names: &[String]) -> Result<(), MigrateError> {
    names.iter().try_for_each(|name| host.batch(&format!("DROP INDEX IF EXISTS {}", quoted(name))))
}

/// What of the old shape stays in the new one and has to be made all the same, in words: an earlier version, or someone
/// else, has left it otherwise.
pub fn renewed(host: &Postgres, old: &StoredModel, new: &StoredModel) -> Result<Vec<String>, MigrateError> {
    let (found, wanted_now, wanted_before) = (found(host)?, wanted(new), wanted(old));
    let missing = Difference::of(&found, &wanted_now, Some(old), new).missing;
    let was = |one: &&Wanted| wanted_before.iter().any(|other| other.index.is_like(&one.index));
    let again = missing.into_iter().filter(was);
    Ok(again.map(|one| format!("{} made anew; meanwhile writes wait, reads do not", one.what)).collect())
}

/// Each in a transaction of its own. One whose table is used for too long stays for a later start.
pub async fn drop_gone(client: &mut Client) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "SELECT i.relname::text, t.relname::text FROM pg_class i \
         JOIN pg_index x ON x.indexrelid = i.oid JOIN pg_class t ON t.oid = x.indrelid \
         WHERE i.relnamespace = {OURS} AND {}",
        is_gone("i.relname")
    );
    let mut used: Vec<String> = Vec::new();
    for row in client.query(&sql, &[]).await? {
        let (name, table): (&str, &str) = (row.get(0), row.get(1));
        // Readers have waited behind us once.
        if used.iter().any(|known| known == table) {
            continue;
        }
        let transaction = client.transaction().await?;
        let sql = format!("SET LOCAL lock_timeout = {PATIENCE}; DROP INDEX IF EXISTS {}", quoted(name));
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
pub fn names(index: &stored_model::Index) -> [String; 2] {
    [short(&index.name), ending_in_id(&index.name)]
}

/// Whether the index of this name, an expression, is to be dropped.
pub fn is_gone(name: &str) -> String {
    format!("starts_with({name}::text, '{GONE}')")
}

/// Those of a table that are to be dropped.
pub fn gone(host: &Postgres, table: &str) -> Result<Vec<String>, MigrateError> {
    let found = found(host)?.into_iter().filter(|one| one.table == table && one.name.starts_with(GONE));
    Ok(found.map(|one| one.name).collect())
}

fn all_names(model: &StoredModel) -> Vec<String> {
    let tables = model.tables.iter().flat_map(|table| &table.indexes).flat_map(names);
    tables.chain(model.links.iter().map(|link| short(&link.index))).collect()
}

/// Another name than without the id, so that a version that knows nothing of ids leaves it alone.
fn ending_in_id(name: &str) -> String {
    short(&format!("{name}_by_id"))
}

fn rename(host: &Postgres, from: &str, to: &str) -> Result<(), MigrateError> {
    host.batch(&format!("ALTER INDEX {} RENAME TO {}", quoted(from), quoted(to)))
}

fn found(host: &Postgres) -> Result<Vec<Index>, MigrateError> {
    let sql = format!(
        "SELECT i.relname, t.relname, x.indisunique::text, \
         CASE WHEN x.indpred IS NULL AND x.indexprs IS NULL AND x.indisvalid THEN \
         (SELECT string_agg(a.attname, ',' ORDER BY k.place) \
         FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k(number, place) \
         JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number) ELSE '' END, \
         obj_description(i.oid, 'pg_class') \
         FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid \
         WHERE i.relnamespace = {OURS}"
    );
    let rows = host.texts(&sql, &[])?;
    let index = |row: Vec<String>| Index {
        name: row[0].clone(),
        table: row[1].clone(),
        unique: row[2] == "true",
        columns: row[3].split(',').map(str::to_owned).collect(),
        stands_in: row[4] == STANDS_IN,
    };
    Ok(rows.into_iter().map(index).collect())
}

fn wanted(model: &StoredModel) -> Vec<Wanted> {
    let of = |table: &Table| table.indexes.iter().map(|index| Wanted::of(table, index)).collect::<Vec<_>>();
    let tables = model.tables.iter().flat_map(of);
    tables.chain(model.links.iter().map(Wanted::of_link)).collect()
}

impl Wanted {
    /// Lists are in the order of ids, which SQLite's indexes end in by themselves. Without it, a plan made for all values
    /// walks the whole table in search of a rare one.
    fn of(table: &Table, index: &stored_model::Index) -> Wanted {
        let bare = Index {
            name: short(&index.name),
            table: table.table.clone(),
            unique: index.unique,
            columns: index.columns.clone(),
            stands_in: false,
        };
        let what = format!("{}: {}", table.name, phrases::index(index));
        if index.unique || index.columns.iter().any(|column| column == "id") {
            return Wanted { index: bare, stand_in: None, what };
        }
        let whole = Index {
            name: ending_in_id(&index.name),
            table: table.table.clone(),
            unique: false,
            columns: index.columns.iter().cloned().chain(["id".to_owned()]).collect(),
            stands_in: false,
        };
        Wanted { index: whole, stand_in: Some(Index { stands_in: true, ..bare }), what }
    }

    fn of_link(link: &LinkTable) -> Wanted {
        let index = Index {
            name: short(&link.index),
            table: link.table.clone(),
            unique: false,
            columns: vec![link.second.column.clone(), link.first.column.clone()],
            stands_in: false,
        };
        let what = format!("{}: index on {}", link.table, index.columns.join(", "));
        Wanted { index, stand_in: None, what }
    }

    fn forms(&self) -> impl Iterator<Item = &Index> {
        std::iter::once(&self.index).chain(&self.stand_in)
    }

    fn among<'f>(&self, found: &'f [Index]) -> Option<&'f Index> {
        self.forms().find_map(|form| found.iter().find(|other| *other == form))
    }

    /// A value of nearly all that an index holds leaves no room for the id. It was taken before, so it has to go on.
    fn sql(&self) -> String {
        let made = self.index.sql();
        let Some(other) = &self.stand_in else { return made };
        let (name, comment) = (quoted(&other.name), text(STANDS_IN));
        format!(
            "DO $trefoil$ BEGIN {made}; EXCEPTION WHEN program_limit_exceeded THEN \
             {}; COMMENT ON INDEX {name} IS {comment}; END $trefoil$",
            other.sql()
        )
    }
}

impl Index {
    fn is_like(&self, other: &Index) -> bool {
        (&self.table, self.unique, &self.columns, self.stands_in)
            == (&other.table, other.unique, &other.columns, other.stands_in)
    }

    fn sql(&self) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let columns: Vec<String> = self.columns.iter().map(|column| quoted(column)).collect();
        let (name, table) = (quoted(&self.name), quoted(&self.table));
        format!("CREATE {unique}INDEX {name} ON {table} ({})", columns.join(", "))
    }
}
