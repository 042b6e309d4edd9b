//! The connection of a migration on PostgreSQL, as the steps of the migration see it.

use trefoil_model::StoredValue;

use crate::migrate::MigrateError;
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::postgres::blocking_client::BlockingClient;

/// A database in the transaction of a migration, used from a blocking thread.
pub struct PostgresMigration {
    pub(super) client: BlockingClient,
    /// The quoted name of the schema.
    pub(super) schema: String,
}

impl PostgresMigration {
    /// Rows of text; null is read as an empty text.
    pub(super) fn query_texts(
        &self,
        sql: &str,
        parameters: &[&str],
    ) -> Result<Vec<Vec<String>>, MigrateError> {
        let parameters: Vec<StoredValue> =
            parameters.iter().map(|&text| StoredValue::Text(text.to_owned())).collect();
        let text = |cell| match cell {
            StoredValue::Text(text) => text,
            StoredValue::Null => String::new(),
            StoredValue::Int(number) => number.to_string(),
            StoredValue::Real(number) => number.to_string(),
        };
        Ok(self.query(sql, &parameters)?.into_iter().map(|row| row.into_iter().map(text).collect()).collect())
    }

    pub(super) fn with_schema(&self, sql: &str) -> String {
        sql.replace("{schema}", &self.schema)
    }
}
