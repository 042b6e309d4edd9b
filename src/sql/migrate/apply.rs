//! Carries a change of shape out, inside the caller's transaction and with foreign keys off.
//!
//! No trigger of ours is there meanwhile, so versions stay and nothing is logged.

use rusqlite::{Connection, params};

use super::ddl::{self, Definition, quoted};
use super::diff::is_moved;
use super::pair::{LinkPair, Pairs, TablePair};
use super::shape::{Column, Fill, LinkTable, StoredModel, Table};
use super::{MigrateError, catalog, images, rebuild};
use crate::model::Model;

/// The number of the store format this version writes.
pub const FORMAT: u32 = 1;

/// Makes everything in a database that has nothing of ours.
pub fn create(connection: &Connection, model: &StoredModel) -> rusqlite::Result<()> {
    connection.execute_batch(ddl::BOOKKEEPING)?;
    create_tables(connection, model, &model.tables.iter().collect::<Vec<_>>())?;
    create_links(connection, model, &model.links.iter().collect::<Vec<_>>())?;
    settle(connection, None, model)?;
    write_meta(connection, "format", &FORMAT.to_string())?;
    write_meta(connection, "store", &uuid::Uuid::new_v4().simple().to_string())
}

/// Takes the tables from the old shape to the new one. What this loses was agreed to.
pub fn change(connection: &Connection, model: &Model, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
    catalog::drop_triggers(connection, pairs.old)?;
    rename_tables(connection, pairs)?;
    for pair in &pairs.tables {
        rename_columns(connection, pair)?;
    }
    // From here on names in other tables, views and triggers stay as they are while tables are replaced.
    connection.pragma_update(None, "legacy_alter_table", true)?;
    let changed = replace_tables(connection, model, pairs);
    connection.pragma_update(None, "legacy_alter_table", false)?;
    changed?;
    images::follow(connection, model, pairs)?;
    Ok(settle(connection, Some(pairs.old), pairs.new)?)
}

/// Indexes and triggers as the shape wants them, whatever is there; then the shape is on record.
pub fn settle(connection: &Connection, old: Option<&StoredModel>, new: &StoredModel) -> rusqlite::Result<()> {
    let links = new.links.iter().map(ddl::link_index);
    let tables = new.tables.iter().flat_map(|table| table.indexes.iter().map(|one| ddl::index(table, one)));
    let indexes: Vec<Definition> = tables.chain(links).collect();
    let outdated: Vec<&str> = old.into_iter().flat_map(StoredModel::index_names).collect();
    catalog::sync_indexes(connection, &outdated, &indexes)?;
    let triggers: Vec<Definition> = new.tables.iter().flat_map(ddl::triggers).collect();
    catalog::sync_triggers(connection, new, &triggers)?;
    let json = serde_json::to_string(new).expect("plain data has a JSON form");
    write_meta(connection, "model", &json)?;
    begin_epochs(connection)
}

/// Every store has an epoch: the name that its change numbers are told under.
fn begin_epochs(connection: &Connection) -> rusqlite::Result<()> {
    let tag = &uuid::Uuid::new_v4().simple().to_string()[..8];
    let epochs = format!(r#"[{{"tag":"{tag}","after":0}}]"#);
    let sql = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ('epochs', ?1) \
               ON CONFLICT DO NOTHING";
    connection.execute(sql, [epochs]).map(drop)
}

fn write_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES (?1, ?2) \
               ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\" \
               WHERE \"value\" <> excluded.\"value\"";
    connection.execute(sql, params![key, value]).map(drop)
}

fn replace_tables(connection: &Connection, model: &Model, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
    for (_, name) in pairs.gone_names() {
        drop_table(connection, &name)?;
    }
    for link in &pairs.gone_links {
        drop_table(connection, &link.table)?;
    }
    create_tables(connection, pairs.new, &pairs.new_tables)?;
    for pair in &pairs.tables {
        if needs_rebuild(pairs, pair) {
            rebuild::table(connection, model, pairs, pair)?;
        } else {
            for column in &pair.new_columns {
                let definition = ddl::column(pairs.new, column);
                let sql = format!("ALTER TABLE {} ADD COLUMN {definition}", quoted(&pair.new.table));
                connection.execute_batch(&sql)?;
            }
        }
    }
    move_links(connection, pairs)?;
    Ok(create_links(connection, pairs.new, &pairs.new_links)?)
}

/// SQLite can add most columns to a table and nothing else.
fn needs_rebuild(pairs: &Pairs<'_>, pair: &TablePair<'_>) -> bool {
    let addable = |new: &Column| match new.default {
        Fill::Created | Fill::Updated => false,
        Fill::Nothing => !new.required,
        Fill::Int(_) | Fill::Real(_) | Fill::Text(_) => true,
    };
    let same = |old: &Column, new: &Column| {
        pairs.same_form(&old.form, &new.form)
            && !pairs.narrowed(&old.form, &new.form)
            && super::pair::on_delete(&old.form) == super::pair::on_delete(&new.form)
            && old.required == new.required
            && old.default == new.default
    };
    !pair.gone_columns.is_empty()
        || !pair.new_columns.iter().all(|new| addable(new))
        || !pair.columns.iter().all(|(old, new)| same(old, new))
}

/// Through names that nobody has, since a table may take the name that another one had. References,
/// views and other programs' triggers follow.
fn rename_tables(connection: &Connection, pairs: &Pairs<'_>) -> rusqlite::Result<()> {
    let moved = || pairs.tables.iter().filter(|pair| pair.old.table != pair.new.table).enumerate();
    for (name, gone) in pairs.gone_names().filter(|(name, gone)| name != gone) {
        rename_table(connection, name, &gone)?;
    }
    for (at, pair) in moved() {
        rename_table(connection, &pair.old.table, &format!("trefoil_moving_{at}"))?;
    }
    for (at, pair) in moved() {
        rename_table(connection, &format!("trefoil_moving_{at}"), &pair.new.table)?;
    }
    for pair in pairs.tables.iter().filter(|pair| pair.old.name != pair.new.name) {
        let sql = "UPDATE \"trefoil_changes\" SET \"resource\" = ?2 WHERE \"resource\" = ?1";
        connection.execute(sql, [&pair.old.name, &pair.new.name])?;
    }
    Ok(())
}

/// A removed column gives way when a kept one takes its name.
fn rename_columns(connection: &Connection, pair: &TablePair<'_>) -> rusqlite::Result<()> {
    let table = &pair.new.table;
    let moved = || pair.columns.iter().filter(|(old, new)| old.column != new.column).enumerate();
    for (name, gone) in pair.gone_names().filter(|(name, gone)| name != gone) {
        rename_column(connection, table, name, &gone)?;
    }
    for (at, (old, _)) in moved() {
        rename_column(connection, table, &old.column, &format!("trefoil_moving_{at}"))?;
    }
    for (at, (_, new)) in moved() {
        rename_column(connection, table, &format!("trefoil_moving_{at}"), &new.column)?;
    }
    Ok(())
}

fn move_links(connection: &Connection, pairs: &Pairs<'_>) -> rusqlite::Result<()> {
    let moved: Vec<&LinkPair<'_>> = pairs.links.iter().filter(|pair| is_moved(pair)).collect();
    for (at, pair) in moved.iter().enumerate() {
        let temporary = format!("trefoil_moving_{at}");
        connection.execute_batch(&ddl::link(pairs.new, pair.new, &temporary))?;
        let (first, second) = match pair.swapped {
            false => (&pair.old.first, &pair.old.second),
            true => (&pair.old.second, &pair.old.first),
        };
        let copy = format!(
            "INSERT INTO {} SELECT {}, {} FROM {}",
            quoted(&temporary),
            quoted(&first.column),
            quoted(&second.column),
            quoted(&pair.old.table)
        );
        connection.execute_batch(&copy)?;
        drop_table(connection, &pair.old.table)?;
    }
    for (at, pair) in moved.iter().enumerate() {
        rename_table(connection, &format!("trefoil_moving_{at}"), &pair.new.table)?;
    }
    Ok(())
}

fn create_tables(connection: &Connection, model: &StoredModel, tables: &[&Table]) -> rusqlite::Result<()> {
    tables.iter().try_for_each(|table| connection.execute_batch(&ddl::table(model, table, &table.table)))
}

fn create_links(connection: &Connection, model: &StoredModel, links: &[&LinkTable]) -> rusqlite::Result<()> {
    links.iter().try_for_each(|link| connection.execute_batch(&ddl::link(model, link, &link.table)))
}

pub fn drop_table(connection: &Connection, table: &str) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("DROP TABLE {}", quoted(table)))
}

pub fn rename_table(connection: &Connection, from: &str, to: &str) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("ALTER TABLE {} RENAME TO {}", quoted(from), quoted(to)))
}

fn rename_column(connection: &Connection, table: &str, from: &str, to: &str) -> rusqlite::Result<()> {
    let (table, from, to) = (quoted(table), quoted(from), quoted(to));
    connection.execute_batch(&format!("ALTER TABLE {table} RENAME COLUMN {from} TO {to}"))
}
