//! A store to migrate, on either database, where every step has a connection of its own, like a separate program.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use trefoil_engine::ChangeKind;
use trefoil_model::{Model, RecordTypeId, SourceFile, parse_schema};
use trefoil_sql::migrate;
use trefoil_sql::migrate::{MigrateError, MigrationMode, MigrationReport};

use crate::support::postgres;

/// Scalars beyond GraphQL's own; an operation, without which there is no schema.
const COMMON: &str = "scalar Long scalar Decimal scalar Date scalar DateTime scalar UUID scalar JSON type Query { ping: Int }\n";

pub fn model(sdl: &str) -> Model {
    let file = SourceFile { name: "schema.graphqls".to_owned(), text: format!("{COMMON}{sdl}") };
    match parse_schema(&[file], &[]) {
        Ok((model, _)) => model,
        Err(found) => panic!("{found:#?}"),
    }
}

/// Every deed on every type.
pub fn everything(model: &Model) -> Vec<(RecordTypeId, ChangeKind)> {
    let deeds = [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted];
    (0..model.records.len()).flat_map(|at| deeds.map(|deed| (RecordTypeId(at), deed))).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

pub enum Store {
    Sqlite { _folder: TempDir, path: PathBuf },
    Postgres { url: String },
}

impl Store {
    pub fn empty(on: On) -> Self {
        match on {
            On::Sqlite => {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let path = folder.path().join("store.db");
                Store::Sqlite { _folder: folder, path }
            }
            On::Postgres => Store::Postgres { url: postgres::database() },
        }
    }

    /// A store with a schema and what `sql` puts into it.
    pub fn with(on: On, sdl: &str, sql: &str) -> Self {
        let store = Store::empty(on);
        store.start(sdl).expect("an empty store takes any schema");
        store.run(sql);
        store
    }

    pub fn prepare(
        &self,
        model: Model,
        logged: &[(RecordTypeId, ChangeKind)],
        mode: MigrationMode,
    ) -> Result<MigrationReport, MigrateError> {
        match self {
            Store::Sqlite { .. } => migrate::migrate_sqlite(&mut self.open(), &model, logged, &[], mode),
            Store::Postgres { url } => on_client(url, async |client| {
                migrate::postgres::migrate_postgres(client, &Arc::new(model), logged, &[], mode).await
            }),
        }
    }

    pub fn in_mode(&self, sdl: &str, mode: MigrationMode) -> Result<MigrationReport, MigrateError> {
        let model = model(sdl);
        let logged = everything(&model);
        self.prepare(model, &logged, mode)
    }

    pub fn start(&self, sdl: &str) -> Result<MigrationReport, MigrateError> {
        self.in_mode(sdl, MigrationMode::Start)
    }

    pub fn apply(&self, sdl: &str, allow_drop: &[&str]) -> Result<MigrationReport, MigrateError> {
        let allow_drop = allow_drop.iter().map(|&name| name.to_owned()).collect();
        self.in_mode(sdl, MigrationMode::Apply { allow_drop })
    }

    pub fn plan(&self, sdl: &str) -> String {
        self.in_mode(sdl, MigrationMode::Plan).expect("a plan").to_text(None)
    }

    /// The file, as a well-behaved other program would open it.
    pub fn open(&self) -> Connection {
        let Store::Sqlite { path, .. } = self else { panic!("a file is SQLite's") };
        let connection = Connection::open(path).expect("a database");
        connection.pragma_update(None, "foreign_keys", true).expect("a setting");
        connection
    }

    pub fn url(&self) -> &str {
        let Store::Postgres { url } = self else { panic!("a URL is PostgreSQL's") };
        url
    }

    pub fn run(&self, sql: &str) {
        if let Err(error) = self.try_run(sql) {
            panic!("{sql}: {error}");
        }
    }

    /// Says why these statements are refused.
    pub fn refusal(&self, sql: &str) -> String {
        self.try_run(sql).expect_err(sql)
    }

    fn try_run(&self, sql: &str) -> Result<(), String> {
        match self {
            Store::Sqlite { .. } => self.open().execute_batch(sql).map_err(|error| error.to_string()),
            Store::Postgres { url } => on_client(url, async |client| {
                number(client, sql).await;
                let done = client.batch_execute(sql).await;
                done.map_err(|error| {
                    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
                })
            }),
        }
    }

    /// One text a row, columns with `|` between them.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        match self {
            Store::Sqlite { .. } => rows(&self.open(), sql),
            Store::Postgres { url } => on_client(url, async |client| {
                number(client, sql).await;
                rows_of(client, sql).await
            }),
        }
    }

    /// Everything that is in the database, definitions and rows.
    pub fn dump(&self) -> Vec<String> {
        let mut lines = match self {
            Store::Sqlite { .. } => {
                self.rows("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
            }
            Store::Postgres { .. } => DEFINITIONS.iter().flat_map(|sql| self.rows(sql)).collect(),
        };
        for table in self.relations() {
            lines.extend(self.rows(&match self {
                Store::Sqlite { .. } => format!("SELECT '{table}', * FROM \"{table}\" ORDER BY 2"),
                Store::Postgres { .. } => format!("SELECT '{table}', t::text FROM \"{table}\" t ORDER BY 2"),
            }));
        }
        lines
    }

    /// The names of tables and views.
    pub fn relations(&self) -> Vec<String> {
        self.rows(match self {
            Store::Sqlite { .. } => {
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            }
            Store::Postgres { .. } => {
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
            }
        })
    }

    /// The indexes of a table, but that of its key; those that end in the id on PostgreSQL by the name of SQLite's.
    pub fn indexes(&self, table: &str) -> Vec<String> {
        self.rows(&match self {
            Store::Sqlite { .. } => {
                format!("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table}' AND sql NOT NULL ORDER BY name")
            }
            Store::Postgres { .. } => {
                format!("SELECT regexp_replace(indexname, '_by_id$', '') FROM pg_indexes WHERE tablename = '{table}' AND indexname NOT LIKE '%pkey' ORDER BY 1")
            }
        })
    }

    /// What stands beside the tables; a sequence keeps the name it had before a rename.
    pub fn definitions(&self) -> Vec<String> {
        match self {
            Store::Sqlite { .. } => self.rows(
                "SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql NOT NULL ORDER BY name",
            ),
            Store::Postgres { .. } => {
                let mut lines = self.rows("SELECT proname, regexp_replace(prosrc, '\\w+_id_seq', '', 'g') FROM pg_proc WHERE proname LIKE 'trefoil%' ORDER BY 1");
                lines.extend(self.rows(
                    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%pkey' ORDER BY 1",
                ));
                lines.extend(self.rows(
                    "SELECT conname, conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint \
                     WHERE contype = 'f' ORDER BY 1, 2",
                ));
                lines
            }
        }
    }
}

const DEFINITIONS: &[&str] = &[
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid) \
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped \
     ORDER BY c.relname, a.attnum",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint \
     WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "SELECT pg_get_triggerdef(t.oid), t.tgenabled::text FROM pg_trigger t WHERE NOT t.tgisinternal ORDER BY 1",
    "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1",
    "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1",
];

/// Runs something on a connection of its own.
pub fn on_client<T>(url: &str, work: impl AsyncFnOnce(&mut Client) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut client = connect(url).await;
        work(&mut client).await
    })
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect(url);
    tokio::spawn(connection);
    client
}

/// What is written of the log is read with its numbers.
async fn number(client: &Client, sql: &str) {
    if sql.contains("trefoil_changes") {
        client.batch_execute("SELECT trefoil_number_changes()").await.expect("numbered");
    }
}

/// Values look as they do on SQLite.
async fn rows_of(client: &Client, sql: &str) -> Vec<String> {
    let types: Vec<Type> =
        client.prepare(sql).await.expect(sql).columns().iter().map(|column| column.type_().clone()).collect();
    client.batch_execute("SET TIME ZONE 'UTC'").await.expect("a setting");
    let messages = client.simple_query(sql).await.expect(sql);
    let line = |message: &SimpleQueryMessage| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        let cell = |(at, ty)| row.get(at).map_or_else(|| "null".to_owned(), |text| shown_as(ty, text));
        Some(types.iter().enumerate().map(cell).collect::<Vec<_>>().join("|"))
    };
    messages.iter().filter_map(line).collect()
}

fn shown_as(ty: &Type, text: &str) -> String {
    match *ty {
        Type::BOOL => if text == "t" { "1" } else { "0" }.to_owned(),
        Type::FLOAT8 => format!("{:?}", text.parse::<f64>().expect("a number")),
        Type::TIMESTAMPTZ => {
            let text = text.trim_end_matches("+00").replace(' ', "T");
            let (second, fraction) = text.split_once('.').unwrap_or((&text, ""));
            format!("{second}.{fraction:0<6}Z")
        }
        _ => text.to_owned(),
    }
}

pub fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).expect(sql);
    let width = statement.column_count();
    let lines = statement.query_map([], |row| {
        let cells: Result<Vec<String>, _> = (0..width).map(|at| row.get(at).map(shown)).collect();
        cells.map(|cells| cells.join("|"))
    });
    lines.expect(sql).collect::<Result<_, _>>().expect(sql)
}

fn shown(value: Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("{bytes:?}"),
    }
}
