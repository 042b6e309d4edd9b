//! What a migration asks of the database it runs on; everything else about it is the same on all of them.

use crate::migrate::MigrateError;
use crate::migrate::model_pairs::{LinkPair, ModelPairs, TablePair};
use crate::migrate::stored_model::{StoredColumn, StoredModel, StoredType};
use trefoil_model::{Model, StoredValue};

/// A database inside the transaction of one migration.
pub trait MigrationDatabase {
    fn ddl_dialect(&self) -> &'static DdlDialect;

    /// Statements without parameters and without an answer.
    fn execute_batch(&self, sql: &str) -> Result<(), MigrateError>;

    /// Parameters are `$1`, `$2` …, first named in this order. What no field can hold comes as null.
    fn query(&self, sql: &str, parameters: &[StoredValue]) -> Result<Vec<Vec<StoredValue>>, MigrateError>;

    /// Tables and views.
    fn relations(&self) -> Result<Vec<String>, MigrateError>;

    /// The columns of a table; none where there is no table.
    fn column_names(&self, table: &str) -> Result<Vec<String>, MigrateError>;

    /// No record was ever kept: the start that made the tables may have ended before its seeds were in.
    fn is_unused(&self, shape: &StoredModel) -> Result<bool, MigrateError>;

    /// Makes the plain lists that are missing; says whether none ever had a value.
    fn create_lists(&self, names: &[String]) -> Result<bool, MigrateError>;

    /// The tables of the plain lists, without what keeps their counts.
    fn create_list_tables(&self) -> Result<(), MigrateError>;

    /// The tables that every store has.
    fn create_bookkeeping_tables(&self) -> Result<(), MigrateError>;

    /// Keeps others from writing where rows are about to be judged and changed.
    fn lock_tables(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError>;

    /// Before anything is renamed.
    fn begin_change(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError>;

    /// After everything is renamed and before tables go.
    fn begin_replacing(&self, pairs: &ModelPairs<'_>) -> Result<(), MigrateError>;

    /// Gives a table the columns of its new shape; tables and columns have their new names by now.
    fn alter_table(
        &self,
        model: &Model,
        pairs: &ModelPairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<(), MigrateError>;

    /// Takes the pairs of a link to a table of the new shape that is called `temporary`.
    fn rebuild_link(
        &self,
        pairs: &ModelPairs<'_>,
        pair: &LinkPair<'_>,
        temporary: &str,
    ) -> Result<(), MigrateError>;

    /// Replaces images in the log, by their numbers.
    fn update_images(&self, images: &[(i64, String)]) -> Result<(), MigrateError>;

    /// What `settle` would make anew though both shapes have it, in words; only what takes long is worth telling.
    fn index_rebuilds(&self, _old: &StoredModel, _new: &StoredModel) -> Result<Vec<String>, MigrateError> {
        Ok(Vec::new())
    }

    /// Indexes, references and triggers as the shape wants them, whatever is there.
    fn sync_objects(&self, old: Option<&StoredModel>, new: &StoredModel) -> Result<(), MigrateError>;
}

/// What definitions look like.
pub struct DdlDialect {
    /// The whole definitions of `id` and `_version`.
    pub id_column: &'static str,
    pub version_column: &'static str,
    /// The type of a column that holds an id.
    pub id_type: &'static str,
    /// What ends the definition of a link table.
    pub link_table_suffix: &'static str,
    /// The time, as text in the stored form.
    pub now: &'static str,
    /// Whether a column's definition says what it refers to. Where not, `settle` adds it once all tables are there.
    pub inline_references: bool,
    pub column_type: fn(&StoredType) -> &'static str,
    /// The default as an expression.
    pub default_value: fn(&StoredColumn) -> Option<String>,
    /// A column's value in the stored form; the name is quoted.
    pub read_expression: fn(&StoredType, &str) -> String,
    /// What two equal values have in common; the name is quoted.
    pub equality_key: fn(&StoredType, &str) -> String,
}

/// How many rows are looked at together.
const PAGE_ROWS: usize = 1_000;

/// Runs a query that ends in a condition over all of its rows, a page at a time in the order of `key`, which it
/// selects first.
pub fn for_each_page(
    host: &dyn MigrationDatabase,
    query: &str,
    key: &str,
    mut visit: impl FnMut(Vec<Vec<StoredValue>>) -> Result<(), MigrateError>,
) -> Result<(), MigrateError> {
    let sql = format!("{query} AND \"{key}\" > $1 ORDER BY \"{key}\" LIMIT {PAGE_ROWS}");
    let mut last = i64::MIN;
    loop {
        let rows = host.query(&sql, &[StoredValue::Int(last)])?;
        match rows.last().and_then(|row| row.first()) {
            Some(StoredValue::Int(key)) => last = *key,
            Some(StoredValue::Null | StoredValue::Real(_) | StoredValue::Text(_)) | None => return Ok(()),
        }
        visit(rows)?;
    }
}
