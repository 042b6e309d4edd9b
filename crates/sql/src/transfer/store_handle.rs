//! One side of a copy: a store that is read from or written to, in a transaction, whichever database it is in.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tokio_postgres::Client;

use crate::migrate::{StoredModel, transfer_tables};
use crate::transfer::copied_table::{Datum, Row, Section};
use crate::transfer::{Failed, Place, postgres, sqlite};

pub enum End {
    Sqlite(Connection),
    Postgres(Client),
}

impl End {
    /// The store that is there.
    pub async fn open(place: &Place) -> Result<End, Failed> {
        Ok(match place {
            Place::File(path) => End::Sqlite(sqlite::open(path)?),
            Place::Postgres(url) => End::Postgres(crate::postgres::alone(url).await.map_err(Failed)?),
        })
    }

    /// Rows behind `after` in the order of the key.
    pub async fn page(&self, section: &Section, after: &[Datum], limit: usize) -> Result<Vec<Row>, Failed> {
        let read = match self {
            End::Sqlite(connection) => sqlite::page(connection, section, after, limit),
            End::Postgres(client) => postgres::page(client, section, after, limit).await,
        };
        read.map_err(|failed| failed.while_doing(format_args!("reading {}", section.table)))
    }

    pub async fn count(&self, section: &Section) -> Result<u64, Failed> {
        let sql = format!("SELECT count(*) FROM \"{}\"", section.table.replace('"', "\"\""));
        let count: i64 = match self {
            End::Sqlite(connection) => connection.query_row(&sql, [], |row| row.get(0))?,
            End::Postgres(client) => client.query_one(&sql, &[]).await?.try_get(0)?,
        };
        Ok(u64::try_from(count).unwrap_or(0))
    }

    pub async fn begin_writing<'e>(&'e self, section: &Section) -> Result<Sink<'e>, Failed> {
        Ok(match self {
            End::Sqlite(connection) => Sink::Sqlite(sqlite::insertion(connection, section)?),
            End::Postgres(client) => Sink::Postgres(postgres::Copying::begin(client, section).await?),
        })
    }

    /// Statements without an answer.
    pub async fn run(&self, sql: &str) -> Result<(), Failed> {
        match self {
            End::Sqlite(connection) => connection.execute_batch(sql)?,
            End::Postgres(client) => client.batch_execute(sql).await?,
        }
        Ok(())
    }

    /// Tables of this shape with nothing beside them.
    pub async fn lay_out(&self, shape: &StoredModel) -> Result<(), Failed> {
        match self {
            End::Sqlite(connection) => transfer_tables::lay_out_sqlite(connection, shape)?,
            End::Postgres(client) => transfer_tables::lay_out_postgres(client, shape).await?,
        }
        Ok(())
    }

    /// Indexes, references and triggers, once the rows are in.
    pub async fn finish(&self, shape: &StoredModel) -> Result<(), Failed> {
        match self {
            End::Sqlite(connection) => transfer_tables::finish_sqlite(connection, shape)?,
            End::Postgres(client) => transfer_tables::finish_postgres(client, shape).await?,
        }
        Ok(())
    }

    /// Whether there is a store at all.
    pub async fn is_store(&self) -> Result<bool, Failed> {
        Ok(match self {
            End::Sqlite(connection) => {
                let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'trefoil_meta')";
                connection.query_row(sql, [], |row| row.get(0))?
            }
            End::Postgres(client) => {
                let sql = "SELECT to_regclass(quote_ident(current_schema()) || '.trefoil_meta') IS NOT NULL";
                client.query_one(sql, &[]).await?.try_get(0)?
            }
        })
    }

    /// What the store has on record about itself.
    pub async fn meta(&self) -> Result<BTreeMap<String, String>, Failed> {
        let sql = "SELECT \"key\", \"value\" FROM \"trefoil_meta\"";
        match self {
            End::Sqlite(connection) => {
                let mut statement = connection.prepare(sql)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
            End::Postgres(client) => {
                let rows = client.query(sql, &[]).await?;
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
            }
        }
    }

    pub async fn put_meta(&self, key: &str, value: &str) -> Result<(), Failed> {
        let sql = "INSERT INTO \"trefoil_meta\" (\"key\", \"value\") VALUES ($1, $2) \
                   ON CONFLICT (\"key\") DO UPDATE SET \"value\" = excluded.\"value\"";
        match self {
            End::Sqlite(connection) => drop(connection.execute(sql, [key, value])?),
            End::Postgres(client) => drop(client.execute(sql, &[&key, &value]).await?),
        }
        Ok(())
    }

    pub async fn remove_meta(&self, key: &str) -> Result<(), Failed> {
        let sql = "DELETE FROM \"trefoil_meta\" WHERE \"key\" = $1";
        match self {
            End::Sqlite(connection) => drop(connection.execute(sql, [key])?),
            End::Postgres(client) => drop(client.execute(sql, &[&key]).await?),
        }
        Ok(())
    }

    /// The last id that each table of records has given.
    pub async fn counters(&self, shape: &StoredModel) -> Result<Vec<(String, i64)>, Failed> {
        let mut counters = Vec::new();
        for table in &shape.tables {
            let last = match self {
                End::Sqlite(connection) => sqlite::counter(connection, &table.table)?,
                End::Postgres(client) => postgres::counter(client, &table.table).await?,
            };
            counters.push((table.table.clone(), last));
        }
        Ok(counters)
    }

    pub async fn has_list_values(&self) -> Result<bool, Failed> {
        let sql = "SELECT EXISTS (SELECT 1 FROM \"trefoil_lists\" WHERE \"next\" <> 0 OR \"length\" <> 0)";
        Ok(match self {
            End::Sqlite(connection) => connection.query_row(sql, [], |row| row.get(0))?,
            End::Postgres(client) => client.query_one(sql, &[]).await?.try_get(0)?,
        })
    }

    /// The number of the last change.
    pub async fn last_change(&self) -> Result<i64, Failed> {
        match self {
            End::Sqlite(connection) => Ok(sqlite::counter(connection, "trefoil_changes")?),
            End::Postgres(client) => postgres::last_change(client).await,
        }
    }

    /// Ids and numbers go on behind these.
    pub async fn set_counters(&self, counters: &[(String, i64)], last_change: i64) -> Result<(), Failed> {
        match self {
            End::Sqlite(connection) => {
                for (table, last) in counters {
                    sqlite::set_counter(connection, table, *last)?;
                }
                Ok(sqlite::set_counter(connection, "trefoil_changes", last_change)?)
            }
            End::Postgres(client) => postgres::set_counters(client, counters, last_change).await,
        }
    }
}

/// Takes the rows of one table.
pub enum Sink<'e> {
    Sqlite(rusqlite::Statement<'e>),
    Postgres(postgres::Copying),
}

impl Sink<'_> {
    pub async fn write(&mut self, rows: &[Row]) -> Result<(), Failed> {
        match self {
            Sink::Sqlite(statement) => Ok(sqlite::insert(statement, rows)?),
            Sink::Postgres(copying) => copying.write(rows).await,
        }
    }

    pub async fn finish(self) -> Result<(), Failed> {
        match self {
            Sink::Sqlite(_) => Ok(()),
            Sink::Postgres(copying) => copying.finish().await,
        }
    }
}
