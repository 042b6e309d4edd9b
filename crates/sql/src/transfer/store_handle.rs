//! One side of a copy: an open store in either database, which is read or written in a transaction.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tokio_postgres::Client;

use crate::migrate::{StoredKey, StoredModel, quote_name, transfer_tables};
use crate::postgres::connect_for_maintenance;
use crate::transfer::copied_table::{CopiedRow, CopiedTable, CopiedValue, CredentialTables};
use crate::transfer::{StoreLocation, TransferError, postgres, sqlite};
use crate::{accounts, api_keys, audit};

pub enum StoreHandle {
    Sqlite(Connection),
    Postgres(Client),
}

impl StoreHandle {
    /// Opens an existing store.
    pub async fn open(location: &StoreLocation) -> Result<StoreHandle, TransferError> {
        Ok(match location {
            StoreLocation::File(path) => StoreHandle::Sqlite(sqlite::open_file(path)?),
            StoreLocation::Postgres(url) => {
                StoreHandle::Postgres(connect_for_maintenance(url).await.map_err(TransferError)?)
            }
        })
    }

    /// Up to `limit` rows after the key `after`, in the order of the key.
    pub async fn read_page(
        &self,
        table: &CopiedTable,
        after: &[CopiedValue],
        limit: usize,
    ) -> Result<Vec<CopiedRow>, TransferError> {
        let rows = match self {
            StoreHandle::Sqlite(connection) => sqlite::read_page(connection, table, after, limit),
            StoreHandle::Postgres(client) => postgres::read_page(client, table, after, limit).await,
        };
        rows.map_err(|error| error.with_context(format_args!("reading {}", table.name)))
    }

    pub async fn count_rows(&self, table: &CopiedTable) -> Result<u64, TransferError> {
        let sql = format!("SELECT count(*) FROM \"{}\"", table.name.replace('"', "\"\""));
        let count: i64 = match self {
            StoreHandle::Sqlite(connection) => connection.query_row(&sql, [], |row| row.get(0))?,
            StoreHandle::Postgres(client) => client.query_one(&sql, &[]).await?.try_get(0)?,
        };
        Ok(u64::try_from(count).unwrap_or(0))
    }

    pub async fn open_table_writer<'e>(
        &'e self,
        table: &CopiedTable,
    ) -> Result<TableWriter<'e>, TransferError> {
        Ok(match self {
            StoreHandle::Sqlite(connection) => {
                TableWriter::Sqlite(sqlite::prepare_insert(connection, table)?)
            }
            StoreHandle::Postgres(client) => {
                TableWriter::Postgres(postgres::CopyWriter::begin(client, table).await?)
            }
        })
    }

    /// Runs statements without results.
    pub async fn execute_batch(&self, sql: &str) -> Result<(), TransferError> {
        match self {
            StoreHandle::Sqlite(connection) => connection.execute_batch(sql)?,
            StoreHandle::Postgres(client) => client.batch_execute(sql).await?,
        }
        Ok(())
    }

    /// Creates the tables without indexes, references and triggers.
    pub async fn create_tables(&self, stored_model: &StoredModel) -> Result<(), TransferError> {
        match self {
            StoreHandle::Sqlite(connection) => {
                transfer_tables::create_sqlite_tables(connection, stored_model)?
            }
            StoreHandle::Postgres(client) => {
                transfer_tables::create_postgres_tables(client, stored_model).await?
            }
        }
        Ok(())
    }

    /// Adds indexes, references and triggers, after the rows.
    pub async fn finish_tables(&self, stored_model: &StoredModel) -> Result<(), TransferError> {
        match self {
            StoreHandle::Sqlite(connection) => {
                transfer_tables::finish_sqlite_tables(connection, stored_model)?
            }
            StoreHandle::Postgres(client) => {
                transfer_tables::finish_postgres_tables(client, stored_model).await?
            }
        }
        Ok(())
    }

    /// Creates the tables of credentials and of the audit without their triggers.
    pub async fn create_credentials(&self, tables: CredentialTables) -> Result<(), TransferError> {
        let (keys, accounts, audit) = match self {
            StoreHandle::Sqlite(_) => {
                (api_keys::CREATE_ON_SQLITE, accounts::CREATE_ON_SQLITE, audit::CREATE_ON_SQLITE)
            }
            StoreHandle::Postgres(_) => {
                (api_keys::CREATE_ON_POSTGRES, accounts::CREATE_ON_POSTGRES, audit::CREATE_ON_POSTGRES)
            }
        };
        if tables.api_keys {
            self.execute_batch(keys).await?;
        }
        if tables.audit {
            self.execute_batch(audit).await?;
        }
        if tables.accounts { self.execute_batch(accounts).await } else { Ok(()) }
    }

    /// Adds the triggers of credentials, after the rows: copied ones are in the copied log already.
    pub async fn log_credentials(&self, tables: CredentialTables) -> Result<(), TransferError> {
        let (keys, accounts) = match self {
            StoreHandle::Sqlite(_) => (api_keys::log_on_sqlite(), accounts::triggers_on_sqlite()),
            StoreHandle::Postgres(_) => (api_keys::log_on_postgres(), accounts::triggers_on_postgres()),
        };
        if tables.api_keys {
            self.execute_batch(&keys).await?;
        }
        if tables.accounts { self.execute_batch(&accounts).await } else { Ok(()) }
    }

    /// Ends all sessions and links of a store that nobody uses yet, without a word in its change log.
    pub async fn end_sessions(&self, tables: CredentialTables) -> Result<(), TransferError> {
        if !tables.accounts {
            return Ok(());
        }
        match self {
            StoreHandle::Sqlite(_) => {
                self.execute_batch(
                    "DROP TRIGGER IF EXISTS \"trefoil_sessions.deleted\"; \
                     DELETE FROM \"trefoil_sessions\"; DELETE FROM \"trefoil_links\"",
                )
                .await?;
                self.execute_batch(&accounts::triggers_on_sqlite()).await
            }
            // It fires no trigger of rows.
            StoreHandle::Postgres(_) => {
                self.execute_batch("TRUNCATE \"trefoil_sessions\", \"trefoil_links\"").await
            }
        }
    }

    /// The names in the table of API keys, which must be there.
    pub async fn api_key_names(&self) -> Result<Vec<String>, TransferError> {
        let sql = "SELECT \"name\" FROM \"trefoil_api_keys\" ORDER BY \"name\"";
        match self {
            StoreHandle::Sqlite(connection) => {
                let mut statement = connection.prepare(sql)?;
                let names = statement.query_map([], |row| row.get(0))?;
                Ok(names.collect::<rusqlite::Result<_>>()?)
            }
            StoreHandle::Postgres(client) => {
                let rows = client.query(sql, &[]).await?;
                rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
            }
        }
    }

    /// True if the database contains a store.
    pub async fn is_store(&self) -> Result<bool, TransferError> {
        self.has_table("trefoil_meta").await
    }

    /// True if the database contains this table of Trefoil's own.
    pub async fn has_table(&self, name: &str) -> Result<bool, TransferError> {
        Ok(match self {
            StoreHandle::Sqlite(connection) => {
                let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?1)";
                connection.query_row(sql, [name], |row| row.get(0))?
            }
            StoreHandle::Postgres(client) => {
                let sql = "SELECT to_regclass(quote_ident(current_schema()) || '.' || $1::text) IS NOT NULL";
                client.query_one(sql, &[&name]).await?.try_get(0)?
            }
        })
    }

    /// All entries of `trefoil_meta`.
    pub async fn read_meta(&self) -> Result<BTreeMap<String, String>, TransferError> {
        let sql = "SELECT \"key\", \"value\" FROM \"trefoil_meta\"";
        match self {
            StoreHandle::Sqlite(connection) => {
                let mut statement = connection.prepare(sql)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
            StoreHandle::Postgres(client) => {
                let rows = client.query(sql, &[]).await?;
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
            }
        }
    }

    pub async fn put_meta(&self, key: &str, value: &str) -> Result<(), TransferError> {
        let sql = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ($1, $2) \
                   ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\"";
        match self {
            StoreHandle::Sqlite(connection) => drop(connection.execute(sql, [key, value])?),
            StoreHandle::Postgres(client) => drop(client.execute(sql, &[&key, &value]).await?),
        }
        Ok(())
    }

    pub async fn remove_meta(&self, key: &str) -> Result<(), TransferError> {
        let sql = "DELETE FROM \"trefoil_meta\" WHERE \"key\" = $1";
        match self {
            StoreHandle::Sqlite(connection) => drop(connection.execute(sql, [key])?),
            StoreHandle::Postgres(client) => drop(client.execute(sql, &[&key]).await?),
        }
        Ok(())
    }

    /// The last id that each table of records has assigned.
    pub async fn id_counters(&self, stored_model: &StoredModel) -> Result<Vec<(String, i64)>, TransferError> {
        let mut counters = Vec::new();
        for table in stored_model.tables.iter().filter(|table| table.key == StoredKey::Counted) {
            let last = match self {
                StoreHandle::Sqlite(connection) => sqlite::last_id(connection, &table.table)?,
                StoreHandle::Postgres(client) => postgres::last_id(client, &table.table).await?,
            };
            counters.push((table.table.clone(), last));
        }
        Ok(counters)
    }

    /// True if there is a record whose id no counter counts.
    pub async fn has_uncounted_records(&self, stored_model: &StoredModel) -> Result<bool, TransferError> {
        for table in stored_model.tables.iter().filter(|table| table.key != StoredKey::Counted) {
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {})", quote_name(&table.table));
            let has_records: bool = match self {
                StoreHandle::Sqlite(connection) => connection.query_row(&sql, [], |row| row.get(0))?,
                StoreHandle::Postgres(client) => client.query_one(&sql, &[]).await?.try_get(0)?,
            };
            if has_records {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub async fn has_list_values(&self) -> Result<bool, TransferError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM \"trefoil_lists\" WHERE \"next\" <> 0 OR \"length\" <> 0)";
        Ok(match self {
            StoreHandle::Sqlite(connection) => connection.query_row(sql, [], |row| row.get(0))?,
            StoreHandle::Postgres(client) => client.query_one(sql, &[]).await?.try_get(0)?,
        })
    }

    /// The number of the last change.
    pub async fn last_change(&self) -> Result<i64, TransferError> {
        match self {
            StoreHandle::Sqlite(connection) => Ok(sqlite::last_id(connection, "trefoil_changes")?),
            StoreHandle::Postgres(client) => postgres::last_change(client).await,
        }
    }

    /// Sets the last ids and the last change number.
    pub async fn set_counters(
        &self,
        counters: &[(String, i64)],
        last_change: i64,
    ) -> Result<(), TransferError> {
        match self {
            StoreHandle::Sqlite(connection) => {
                for (table, last) in counters {
                    sqlite::set_last_id(connection, table, *last)?;
                }
                Ok(sqlite::set_last_id(connection, "trefoil_changes", last_change)?)
            }
            StoreHandle::Postgres(client) => postgres::set_counters(client, counters, last_change).await,
        }
    }
}

/// Writes the rows of one table.
pub enum TableWriter<'e> {
    Sqlite(rusqlite::Statement<'e>),
    Postgres(postgres::CopyWriter),
}

impl TableWriter<'_> {
    pub async fn write_rows(&mut self, rows: &[CopiedRow]) -> Result<(), TransferError> {
        match self {
            TableWriter::Sqlite(statement) => Ok(sqlite::insert_rows(statement, rows)?),
            TableWriter::Postgres(writer) => writer.write_rows(rows).await,
        }
    }

    pub async fn finish(self) -> Result<(), TransferError> {
        match self {
            TableWriter::Sqlite(_) => Ok(()),
            TableWriter::Postgres(writer) => writer.finish().await,
        }
    }
}
