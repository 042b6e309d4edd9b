//! The trait for the parts of a migration that differ between databases.

use trefoil_model::{Model, StoredValue};

use crate::migrate::MigrateError;
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::stored_model::{StoredColumn, StoredKey, StoredModel, StoredType};

/// A database inside the transaction of one migration.
pub trait MigrationDatabase {
    fn ddl_dialect(&self) -> &'static DdlDialect;

    /// Runs statements that take no parameters and return no rows.
    fn execute_batch(&self, sql: &str) -> Result<(), MigrateError>;

    /// Parameters are `$1`, `$2` …, first named in this order. Values that no field can hold are read as null.
    fn query(&self, sql: &str, parameters: &[StoredValue]) -> Result<Vec<Vec<StoredValue>>, MigrateError>;

    /// The names of all tables and views.
    fn relations(&self) -> Result<Vec<String>, MigrateError>;

    /// The columns of a table; empty if there is no such table.
    fn column_names(&self, table: &str) -> Result<Vec<String>, MigrateError>;

    /// True if no record was ever stored: the start that created the tables may have ended before it seeded them.
    fn is_unused(&self, stored_model: &StoredModel) -> Result<bool, MigrateError>;

    /// Creates the plain lists that are missing. True if no list ever had a value.
    fn create_lists(&self, names: &[String]) -> Result<bool, MigrateError>;

    /// Creates the tables of the plain lists, without the triggers that maintain their counts.
    fn create_list_tables(&self) -> Result<(), MigrateError>;

    /// Creates the tables that every store has.
    fn create_bookkeeping_tables(&self) -> Result<(), MigrateError>;

    /// Locks out other writers of the tables whose rows are about to be checked and changed.
    fn lock_tables(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError>;

    /// Called before anything is renamed.
    fn begin_change(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError>;

    /// Called after everything is renamed and before tables are dropped.
    fn begin_replacing(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError>;

    /// Changes the columns of a table to the new ones. Tables and columns already have their new names.
    fn alter_table(
        &self,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<(), MigrateError>;

    /// Moves the pairs of a link to a table with the new definition, named `temporary`.
    fn rebuild_link(
        &self,
        pairs: &ModelPairs<'_>,
        pair: &LinkPair<'_>,
        temporary: &str,
    ) -> Result<(), MigrateError>;

    /// Replaces images in the change log, by change number.
    fn update_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError>;

    /// Describes the indexes that [`Self::sync_objects`] would rebuild although both models have them. Only work that
    /// takes long is reported.
    fn index_rebuilds(&self, _old: &StoredModel, _new: &StoredModel) -> Result<Vec<String>, MigrateError> {
        Ok(Vec::new())
    }

    /// Brings indexes, foreign keys and triggers to those of `new`, whatever exists.
    fn sync_objects(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError>;
}

/// How a database spells its definitions.
pub struct DdlDialect {
    /// The whole definition of `id`.
    pub id_column: fn(StoredKey) -> &'static str,
    pub version_column: &'static str,
    /// Ends the definition of a record's table.
    pub table_suffix: fn(StoredKey) -> &'static str,
    /// Ends the definition of a link table.
    pub link_table_suffix: &'static str,
    /// An expression for the current time, as text in the stored form.
    pub now: &'static str,
    /// True if a column's definition includes its foreign key. Otherwise
    /// [`MigrationDatabase::sync_objects`] adds it once all tables exist.
    pub inline_references: bool,
    pub column_type: fn(&StoredType) -> &'static str,
    /// The default as an expression.
    pub default_value: fn(&StoredColumn) -> Option<String>,
    /// An expression for a column's value in the stored form, from the quoted column name.
    pub read_expression: fn(&StoredType, &str) -> String,
    /// An expression that is the same for equal values, from the quoted column name.
    pub equality_key: fn(&StoredType, &str) -> String,
    /// The expression of a text column that is the same for texts that differ only in case.
    pub case_key: fn(&str) -> String,
}

impl DdlDialect {
    /// The expression that selects the id of a table. Its name differs from the column's, so that `ORDER BY` means the
    /// column.
    pub fn read_id(&self, key: StoredKey) -> String {
        format!("{} AS \"read_id\"", (self.read_expression)(&key.column_form(), "\"id\""))
    }
}

/// Rows read in one query of [`for_each_page`].
const PAGE_ROWS: usize = 1_000;

/// Visits all rows of a query, a page at a time in the order of `key`. The query selects `key` first and ends in a
/// condition.
pub fn for_each_page(
    database: &dyn MigrationDatabase,
    query: &str,
    key: &str,
    mut visit: impl FnMut(Vec<Vec<StoredValue>>) -> Result<(), MigrateError>,
) -> Result<(), MigrateError> {
    let order = format!("ORDER BY \"{key}\" LIMIT {PAGE_ROWS}");
    let mut rows = database.query(&format!("{query} {order}"), &[])?;
    let next_page = format!("{query} AND \"{key}\" > $1 {order}");
    while let Some(last @ (StoredValue::Int(_) | StoredValue::Text(_))) =
        rows.last().and_then(|row| row.first())
    {
        let last = last.clone();
        visit(rows)?;
        rows = database.query(&next_page, &[last])?;
    }
    Ok(())
}
