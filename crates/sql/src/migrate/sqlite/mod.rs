//! Migration on SQLite, which adds columns in place and replaces a table for everything else.

pub(crate) mod catalog;
pub(crate) mod ddl;
pub(crate) mod rebuild;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params, params_from_iter};

use crate::migrate::ddl::{Definition, column, index, link, link_index, quoted};
use crate::migrate::migration_database::{Host, Spelling};
use crate::migrate::model_pairs::{LinkPair, Pairs, TablePair, on_delete};
use crate::migrate::sqlite::ddl::{BOOKKEEPING, SPELLING};
use crate::migrate::stored_model::{Column, Fill, StoredModel};
use crate::migrate::{MigrateError, Mode, Report, apply};
use crate::sqlite::plain_lists;
use trefoil_engine::Deed;
use trefoil_model::{Model, Stored, TypeId};

/// Brings the database behind `connection` to the shape of `model`, within what `mode` allows: all of it
/// or nothing. `logged` says which deeds go to the change log, `lists` which plain lists there are; one that is
/// there and not named keeps its values. After a `Database` error the connection is
/// not fit for use.
pub fn prepare(
    connection: &mut Connection,
    model: &Model,
    logged: &[(TypeId, Deed)],
    lists: &[String],
    mode: Mode,
) -> Result<Report, MigrateError> {
    let shape = StoredModel::of(model, logged);
    // Replacing a table must not cascade, and foreign keys cannot be switched inside a transaction.
    let enforced: bool = connection.pragma_query_value(None, "foreign_keys", |row| row.get(0))?;
    connection.pragma_update(None, "foreign_keys", false)?;
    // A quoted column that is gone would pass for text in another program's index.
    let lenient = connection.db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    let report = in_transaction(connection, model, &shape, lists, &mode);
    connection.pragma_update(None, "legacy_alter_table", false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, lenient)?;
    connection.pragma_update(None, "foreign_keys", enforced)?;
    report
}

fn in_transaction(
    connection: &mut Connection,
    model: &Model,
    shape: &StoredModel,
    lists: &[String],
    mode: &Mode,
) -> Result<Report, MigrateError> {
    let behavior = match mode {
        Mode::Plan => TransactionBehavior::Deferred,
        Mode::Start | Mode::Apply { .. } => TransactionBehavior::Immediate,
    };
    let transaction = connection.transaction_with_behavior(behavior)?;
    let report = crate::migrate::run(&Sqlite(&transaction), model, shape, lists, mode)?;
    transaction.commit()?;
    Ok(report)
}

/// Foreign keys are off.
pub struct Sqlite<'c>(pub(crate) &'c Connection);

impl Host for Sqlite<'_> {
    fn spelling(&self) -> &'static Spelling {
        &SPELLING
    }

    fn batch(&self, sql: &str) -> Result<(), MigrateError> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn rows(&self, sql: &str, parameters: &[Stored]) -> Result<Vec<Vec<Stored>>, MigrateError> {
        let mut statement = self.0.prepare(sql)?;
        let width = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get_ref(at).map(stored)).collect();
        let rows = statement.query_map(params_from_iter(parameters.iter().map(Bound)), read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn relations(&self) -> Result<Vec<String>, MigrateError> {
        Ok(crate::migrate::sqlite::catalog::relations(self.0)?)
    }

    fn columns(&self, table: &str) -> Result<Vec<String>, MigrateError> {
        Ok(crate::migrate::sqlite::catalog::columns(self.0, table)?
            .into_iter()
            .map(|found| found.name)
            .collect())
    }

    fn is_unused(&self, shape: &StoredModel) -> Result<bool, MigrateError> {
        let mut given = self.0.prepare("SELECT 1 FROM sqlite_sequence WHERE name = ?1 AND seq > 0")?;
        for table in shape.table_names() {
            if given.exists([table])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lists(&self, names: &[String]) -> Result<bool, MigrateError> {
        plain_lists::prepare(self.0, names)?;
        Ok(plain_lists::are_unused(self.0)?)
    }

    fn list_tables(&self) -> Result<(), MigrateError> {
        Ok(plain_lists::make_tables(self.0)?)
    }

    fn bookkeeping(&self) -> Result<(), MigrateError> {
        self.batch(BOOKKEEPING)
    }

    /// The transaction is the only one that writes.
    fn hold(&self, _pairs: &Pairs<'_>) -> Result<(), MigrateError> {
        Ok(())
    }

    /// No trigger of ours may see rows being copied.
    fn begin_change(&self, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
        Ok(crate::migrate::sqlite::catalog::drop_triggers(self.0, pairs.old)?)
    }

    /// From here on names in other tables, views and triggers stay as they are while tables are replaced.
    fn begin_replacing(&self, _pairs: &Pairs<'_>) -> Result<(), MigrateError> {
        Ok(self.0.pragma_update(None, "legacy_alter_table", true)?)
    }

    fn reshape(&self, model: &Model, pairs: &Pairs<'_>, pair: &TablePair<'_>) -> Result<(), MigrateError> {
        if needs_rebuild(pairs, pair) {
            return crate::migrate::sqlite::rebuild::table(self, model, pairs, pair);
        }
        let table = quoted(&pair.new.table);
        pair.new_columns.iter().try_for_each(|new| {
            self.batch(&format!("ALTER TABLE {table} ADD COLUMN {}", column(&SPELLING, pairs.new, new)))
        })
    }

    fn move_link(&self, pairs: &Pairs<'_>, pair: &LinkPair<'_>, temporary: &str) -> Result<(), MigrateError> {
        self.batch(&link(&SPELLING, pairs.new, pair.new, temporary))?;
        let (first, second) = pair.old_sides();
        self.batch(&format!(
            "INSERT INTO {} SELECT {}, {} FROM {}",
            quoted(temporary),
            quoted(&first.column),
            quoted(&second.column),
            quoted(&pair.old.table)
        ))?;
        apply::drop_table(self, &pair.old.table)
    }

    fn write_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError> {
        let sql = "UPDATE \"trefoil_changes\" SET \"image\" = ?2 WHERE \"number\" = ?1";
        let mut writing = self.0.prepare_cached(sql)?;
        for (number, image) in images {
            writing.execute(params![number, image])?;
        }
        Ok(())
    }

    fn settle(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError> {
        let of_table = |table| move |one| index(&SPELLING, table, one);
        let tables = new.tables.iter().flat_map(|table| table.indexes.iter().map(of_table(table)));
        let indexes: Vec<Definition> = tables.chain(new.links.iter().map(link_index)).collect();
        let outdated: Vec<&str> = old.into_iter().flat_map(StoredModel::index_names).collect();
        crate::migrate::sqlite::catalog::sync_indexes(self.0, &outdated, &indexes)?;
        let triggers: Vec<Definition> =
            new.tables.iter().flat_map(crate::migrate::sqlite::ddl::triggers).collect();
        Ok(crate::migrate::sqlite::catalog::sync_triggers(self.0, new, &triggers)?)
    }
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
            && on_delete(&old.form) == on_delete(&new.form)
            && old.required == new.required
            && old.default == new.default
    };
    !pair.gone_columns.is_empty()
        || !pair.new_columns.iter().all(|new| addable(new))
        || !pair.columns.iter().all(|(old, new)| same(old, new))
}

/// A value to bind.
struct Bound<'a>(&'a Stored);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(borrowed(self.0)))
    }
}

fn borrowed(stored: &Stored) -> ValueRef<'_> {
    match stored {
        Stored::Null => ValueRef::Null,
        Stored::Int(number) => ValueRef::Integer(*number),
        Stored::Real(number) => ValueRef::Real(*number),
        Stored::Text(text) => ValueRef::Text(text.as_bytes()),
    }
}

fn stored(value: ValueRef<'_>) -> Stored {
    match value {
        ValueRef::Null | ValueRef::Blob(_) => Stored::Null,
        ValueRef::Integer(number) => Stored::Int(number),
        ValueRef::Real(number) => Stored::Real(number),
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_or(Stored::Null, |text| Stored::Text(text.to_owned()))
        }
    }
}
