//! Another program that writes to the same database, of either kind.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A connection that the store knows nothing of.
pub enum Outsider {
    /// Locked, so that several tasks may have it.
    File(Mutex<rusqlite::Connection>),
    Server(tokio_postgres::Client),
}

impl Outsider {
    pub fn file(path: &Path) -> Outsider {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        Outsider::File(Mutex::new(connection))
    }

    pub async fn server(url: &str) -> Outsider {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Outsider::Server(client)
    }

    /// Runs statements. What they find comes as text: `|` between columns, a line for each row.
    pub async fn run(&self, statements: &str) -> Result<String, String> {
        match self {
            Outsider::File(connection) => {
                file(&connection.lock().unwrap(), statements).map_err(|error| error.to_string())
            }
            Outsider::Server(client) => {
                let found = client.simple_query(statements).await.map_err(|error| error.to_string())?;
                let rows = found.iter().filter_map(|message| {
                    let SimpleQueryMessage::Row(row) = message else { return None };
                    let cells = (0..row.len()).map(|column| row.get(column).unwrap_or("null"));
                    Some(cells.collect::<Vec<_>>().join("|"))
                });
                Ok(rows.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Keeps everyone from writing, and no one from reading.
    pub async fn hold(&self) {
        let hold = match self {
            Outsider::File(_) => "BEGIN IMMEDIATE",
            Outsider::Server(_) => "BEGIN; LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE",
        };
        self.run(hold).await.unwrap();
    }

    pub async fn release(&self) {
        self.run("ROLLBACK").await.unwrap();
    }
}

fn file(connection: &rusqlite::Connection, statements: &str) -> rusqlite::Result<String> {
    let mut lines = Vec::new();
    let mut batch = rusqlite::Batch::new(connection, statements);
    while let Some(mut statement) = rusqlite::fallible_iterator::FallibleIterator::next(&mut batch)? {
        let width = statement.column_count();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let cell = |column| match row.get_ref(column).unwrap() {
                rusqlite::types::ValueRef::Null => "null".to_owned(),
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                rusqlite::types::ValueRef::Real(number) => number.to_string(),
                rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => {
                    String::from_utf8_lossy(bytes).into_owned()
                }
            };
            lines.push((0..width).map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    Ok(lines.join("\n"))
}
