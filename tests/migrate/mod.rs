//! Schema changes on stored data: what is kept, what is refused and what other programs notice.

mod changes;
mod links;
mod refusals;
mod triggers;
mod types;

use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;
use trefoil::engine::Deed;
use trefoil::model::{Model, SourceFile, TypeId, parse};
use trefoil::sql::migrate::{MigrateError, Mode, Report, prepare};

/// Scalars beyond GraphQL's own; an operation, without which there is no schema.
const COMMON: &str =
    "scalar Long scalar Decimal scalar Date scalar DateTime scalar JSON type Query { ping: Int }\n";

fn model(sdl: &str) -> Model {
    let file = SourceFile { name: "schema.graphqls".to_owned(), text: format!("{COMMON}{sdl}") };
    match parse(&[file], &[]) {
        Ok((model, _)) => model,
        Err(found) => panic!("{found:#?}"),
    }
}

/// Every deed on every type.
fn everything(model: &Model) -> Vec<(TypeId, Deed)> {
    let deeds = [Deed::Created, Deed::Updated, Deed::Deleted];
    (0..model.records.len()).flat_map(|at| deeds.map(|deed| (TypeId(at), deed))).collect()
}

/// A database file, opened anew for every step as by separate programs.
struct Store {
    _folder: TempDir,
    path: PathBuf,
}

impl Store {
    fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("store.db");
        Store { _folder: folder, path }
    }

    /// A store with a schema and what `sql` puts into it.
    fn with(sdl: &str, sql: &str) -> Self {
        let store = Store::empty();
        store.start(sdl).expect("an empty store takes any schema");
        store.run(sql);
        store
    }

    fn prepare(&self, sdl: &str, mode: Mode) -> Result<Report, MigrateError> {
        let model = model(sdl);
        prepare(&mut self.open(), &model, &everything(&model), &[], mode)
    }

    fn start(&self, sdl: &str) -> Result<Report, MigrateError> {
        self.prepare(sdl, Mode::Start)
    }

    fn apply(&self, sdl: &str, allow_drop: &[&str]) -> Result<Report, MigrateError> {
        let allow_drop = allow_drop.iter().map(|&name| name.to_owned()).collect();
        self.prepare(sdl, Mode::Apply { allow_drop })
    }

    fn plan(&self, sdl: &str) -> String {
        self.prepare(sdl, Mode::Plan).expect("a plan").text(None)
    }

    /// As a well-behaved other program would.
    fn open(&self) -> Connection {
        let connection = Connection::open(&self.path).expect("a database");
        connection.pragma_update(None, "foreign_keys", true).expect("a setting");
        connection
    }

    fn run(&self, sql: &str) {
        self.open().execute_batch(sql).expect(sql);
    }

    /// One text a row, columns with `|` between them.
    fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.open(), sql)
    }

    /// Everything that is in the database, definitions and rows.
    fn dump(&self) -> Vec<String> {
        let connection = self.open();
        let mut lines = rows(&connection, "SELECT type, name, sql FROM sqlite_master ORDER BY type, name");
        for table in rows(&connection, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
            lines.extend(rows(&connection, &format!("SELECT '{table}', * FROM \"{table}\" ORDER BY 2")));
        }
        lines
    }
}

fn rows(connection: &Connection, sql: &str) -> Vec<String> {
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
