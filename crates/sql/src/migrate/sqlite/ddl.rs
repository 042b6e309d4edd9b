//! SQLite's definitions: column types, the bookkeeping tables, and the triggers with their images.

use crate::migrate::ddl::{Definition, quoted, text};
use crate::migrate::migration_database::Spelling;
use crate::migrate::stored_model::{Column, Fill, Form, Table};
use crate::statements::dialect::{Comparison, Dialect};

/// Arguments that `json_object` takes on every SQLite are 100; a pair for each column.
const COLUMNS_PER_CALL: usize = 40;

/// Text order is time order: always six digits of a second, as `DateTime` is stored.
const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')";

/// What every store has, whatever the schema.
pub const BOOKKEEPING: &str = r#"
CREATE TABLE "trefoil_meta" ("key" TEXT PRIMARY KEY, "value" TEXT NOT NULL);
CREATE TABLE "trefoil_changes" (
  "number" INTEGER PRIMARY KEY AUTOINCREMENT,
  "resource" TEXT NOT NULL,
  "deed" TEXT NOT NULL,
  "record" INTEGER NOT NULL,
  "version" INTEGER NOT NULL,
  "at" TEXT NOT NULL,
  "image" TEXT NOT NULL
);
CREATE TABLE "trefoil_keys" (
  "key" TEXT PRIMARY KEY, "fingerprint" TEXT NOT NULL, "answer" BLOB NOT NULL, "at" INTEGER NOT NULL
);
CREATE INDEX "trefoil_keys_at_index" ON "trefoil_keys" ("at");
"#;

pub const SPELLING: Spelling = Spelling {
    id: "\"id\" INTEGER PRIMARY KEY AUTOINCREMENT",
    version: "\"_version\" INTEGER NOT NULL DEFAULT 1",
    integer: "INTEGER",
    link_end: " WITHOUT ROWID",
    now: NOW,
    inline_references: true,
    column_type,
    fill,
    reading: |_, name| name.to_owned(),
    identity,
};

fn fill(column: &Column) -> Option<String> {
    match &column.default {
        Fill::Nothing => None,
        Fill::Int(number) => Some(number.to_string()),
        Fill::Real(number) => Some(format!("{number:?}")),
        Fill::Text(value) => Some(text(value)),
        Fill::Created | Fill::Updated => Some(format!("({NOW})")),
    }
}

fn column_type(form: &Form) -> &'static str {
    match form {
        Form::Scalar(name) => match name.as_str() {
            "Int" | "Long" | "Boolean" => "INTEGER",
            "Float" => "REAL",
            _ => "TEXT",
        },
        Form::Enum(_) | Form::Embedded(_) | Form::List { .. } => "TEXT",
        Form::Reference { .. } => "INTEGER",
    }
}

/// Decimals are equal by value, not by how many zeros end them: `1.50` is `1.5`.
fn identity(form: &Form, name: &str) -> String {
    match form {
        Form::Scalar(scalar) if scalar == "Decimal" => Dialect::Sqlite.identity(Comparison::Decimal, name),
        Form::Scalar(_) | Form::Enum(_) | Form::Embedded(_) | Form::List { .. } | Form::Reference { .. } => {
            name.to_owned()
        }
    }
}

/// The triggers of a table. Their names begin with `trefoil_`, so that they are told from other programs'.
///
/// Deliberately absent: one before each insert that notices `INSERT OR REPLACE`. SQLite fires no delete
/// triggers for it unless `recursive_triggers` is on, so the record counts as created again, at version 1;
/// to notice it would cost every insert as much again.
pub fn triggers(table: &Table) -> Vec<Definition> {
    let mut list = vec![id_trigger(table), version_trigger(table)];
    let logging = |deed: &str, row: &str, when: &str| {
        let columns = ["resource", "deed", "record", "version", "at", "image"].map(quoted).join(", ");
        let (resource, image) = (text(&table.name), image(table, row));
        let values = format!("{resource}, '{deed}', {row}.\"id\", {row}.\"_version\", {NOW}, {image}");
        let body = format!("INSERT INTO \"trefoil_changes\" ({columns}) VALUES ({values})");
        trigger(table, deed, when, &body)
    };
    if table.logged.created {
        list.push(logging("created", "NEW", "AFTER INSERT ON {table}"));
    }
    // Whoever writes, exactly one update of a record changes its version: our own statement, or the one
    // that the version trigger adds to another program's.
    if table.logged.updated {
        list.push(logging(
            "updated",
            "NEW",
            "AFTER UPDATE ON {table} WHEN NEW.\"_version\" <> OLD.\"_version\"",
        ));
    }
    if table.logged.deleted {
        list.push(logging("deleted", "OLD", "AFTER DELETE ON {table}"));
    }
    list
}

/// Links, subscribers and caches know a record by its id.
fn id_trigger(table: &Table) -> Definition {
    let when = "BEFORE UPDATE OF \"id\" ON {table} WHEN NEW.\"id\" IS NOT OLD.\"id\"";
    trigger(table, "id", when, "SELECT RAISE(ABORT, 'the id of a record never changes')")
}

/// What Trefoil's own updates do by themselves: count the version up and keep `@updatedAt` true.
fn version_trigger(table: &Table) -> Definition {
    let mut sets = vec!["\"_version\" = \"_version\" + 1".to_owned()];
    for column in table.columns.iter().filter(|column| column.default == Fill::Updated) {
        let name = quoted(&column.column);
        sets.push(format!("{name} = CASE WHEN NEW.{name} IS OLD.{name} THEN {NOW} ELSE NEW.{name} END"));
    }
    let body = format!("UPDATE {} SET {} WHERE \"id\" = NEW.\"id\"", quoted(&table.table), sets.join(", "));
    let when = "AFTER UPDATE ON {table} WHEN NEW.\"_version\" = OLD.\"_version\"";
    trigger(table, "version", when, &body)
}

fn trigger(table: &Table, purpose: &str, when: &str, body: &str) -> Definition {
    let name = format!("trefoil_{}_{purpose}", table.table);
    let when = when.replace("{table}", &quoted(&table.table));
    let sql = format!("CREATE TRIGGER {} {when} BEGIN {body}; END", quoted(&name));
    Definition { name, sql }
}

/// The record as a JSON object of its columns. Values that no field can hold are null: another program's
/// write must not fail for them here, where they did not fail in the table.
fn image(table: &Table, row: &str) -> String {
    let own = [("id", None), ("_version", None)].into_iter();
    let columns = own.chain(table.columns.iter().map(|column| (column.column.as_str(), Some(&column.form))));
    let pairs: Vec<_> = columns.map(|(name, form)| (name, image_value(row, name, form))).collect();
    let mut groups = pairs.chunks(COLUMNS_PER_CALL);
    let list = |group: &[(&str, String)], prefix: &str| {
        let pairs: Vec<_> = group.iter().map(|(name, value)| format!("'{prefix}{name}', {value}")).collect();
        pairs.join(", ")
    };
    let first = format!("json_object({})", list(groups.next().unwrap_or_default(), ""));
    groups.fold(first, |object, group| format!("json_set({object}, {})", list(group, "$.")))
}

fn image_value(row: &str, column: &str, form: Option<&Form>) -> String {
    let value = format!("{row}.{}", quoted(column));
    match form.map(column_type) {
        None => value,
        // SQLite before 3.43 writes 15 digits of a number, which is not all of it.
        Some("REAL") => {
            let is_finite = format!("typeof({value}) = 'real' AND abs({value}) < 9e999");
            format!("CASE WHEN {is_finite} THEN json(printf('%!.17g', {value})) END")
        }
        Some(_) => format!("CASE WHEN typeof({value}) <> 'blob' THEN {value} END"),
    }
}
