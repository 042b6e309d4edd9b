//! SQLite's definitions: column types, the bookkeeping tables, and the triggers with their images.

use trefoil_engine::changes::CHANGED_COLUMNS;

use crate::api_keys::end_credentials;
use crate::migrate::create_statements::{ObjectDefinition, SQLITE_NOW, quote_name, quote_text};
use crate::migrate::migration_database::DdlDialect;
use crate::migrate::sqlite::search_index::search_triggers;
use crate::migrate::stored_model::{ColumnDefault, StoredColumn, StoredKey, StoredTable, StoredType};
use crate::statements::dialect::{Dialect, ValueComparison};

/// `json_object` takes at least 100 arguments on every SQLite; each column needs two.
const COLUMNS_PER_CALL: usize = 40;

/// The tables of every store, whatever the schema.
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

pub const SQLITE_DDL: DdlDialect = DdlDialect {
    id_column,
    version_column: "\"_version\" INTEGER NOT NULL DEFAULT 1",
    // The rows are in the tree of the key: one look-up finds a record, as with integers.
    table_suffix: |key| if key == StoredKey::Counted { "" } else { " WITHOUT ROWID" },
    link_table_suffix: " WITHOUT ROWID",
    now: SQLITE_NOW,
    inline_references: true,
    column_type,
    default_value,
    read_expression: |_, name| name.to_owned(),
    equality_key,
    case_key: |name| Dialect::Sqlite.equality_key(ValueComparison::IgnoreCase, name),
};

fn id_column(key: StoredKey) -> &'static str {
    match key {
        StoredKey::Counted => r#""id" INTEGER PRIMARY KEY AUTOINCREMENT"#,
        StoredKey::Text => r#""id" TEXT NOT NULL PRIMARY KEY"#,
        // UUIDs are looked up as texts: in another spelling, another program's record would never be found.
        StoredKey::Uuid => {
            r#""id" TEXT NOT NULL PRIMARY KEY CONSTRAINT "uuid_in_lower_case_with_hyphens" CHECK (length("id") = 36 AND "id" = lower("id"))"#
        }
    }
}

fn default_value(column: &StoredColumn) -> Option<String> {
    match &column.default {
        ColumnDefault::Nothing => None,
        ColumnDefault::Int(number) => Some(number.to_string()),
        ColumnDefault::Real(number) => Some(format!("{number:?}")),
        ColumnDefault::Text(value) => Some(quote_text(value)),
        ColumnDefault::Created | ColumnDefault::Updated => Some(format!("({SQLITE_NOW})")),
    }
}

fn column_type(stored_type: &StoredType) -> &'static str {
    match stored_type {
        StoredType::Scalar(name) => match name.as_str() {
            "Int" | "Long" | "Boolean" => "INTEGER",
            "Float" => "REAL",
            _ => "TEXT",
        },
        StoredType::Enum(_) | StoredType::Embedded(_) | StoredType::List { .. } => "TEXT",
        StoredType::Reference { key: StoredKey::Counted, .. } => "INTEGER",
        StoredType::Reference { key: StoredKey::Uuid | StoredKey::Text, .. } => "TEXT",
    }
}

/// Decimals are compared by value, regardless of trailing zeros: `1.50` equals `1.5`.
fn equality_key(stored_type: &StoredType, name: &str) -> String {
    match stored_type {
        StoredType::Scalar(scalar) if scalar == "Decimal" => {
            Dialect::Sqlite.equality_key(ValueComparison::Decimal, name)
        }
        StoredType::Scalar(_)
        | StoredType::Enum(_)
        | StoredType::Embedded(_)
        | StoredType::List { .. }
        | StoredType::Reference { .. } => name.to_owned(),
    }
}

/// The triggers of a table. The prefix `trefoil_` distinguishes them from those of other programs.
///
/// Deliberately without a trigger before inserts that detects `INSERT OR REPLACE`. SQLite fires no delete
/// triggers for it unless `recursive_triggers` is on, so the record counts as created again, at version 1;
/// detecting it would double the cost of every insert.
pub fn table_triggers(table: &StoredTable) -> Vec<ObjectDefinition> {
    let mut list = vec![id_trigger(table), version_trigger(table)];
    let logging = |kind: &str, row: &str, when: &str| {
        let columns = ["resource", "deed", "record", "version", "at", "image"].map(quote_name).join(", ");
        let (resource, image) = (quote_text(&table.name), image_expression(table, row));
        let id = if table.key == StoredKey::Counted { format!("{row}.\"id\"") } else { "0".to_owned() };
        let image = if kind == "updated" && table.logged.changed_columns {
            set_changed_columns(table, &image)
        } else {
            image
        };
        let values = format!("{resource}, '{kind}', {id}, {row}.\"_version\", {SQLITE_NOW}, {image}");
        let body = format!("INSERT INTO \"trefoil_changes\" ({columns}) VALUES ({values})");
        trigger(table, kind, when, &body)
    };
    if table.logged.created {
        list.push(logging("created", "NEW", "AFTER INSERT ON {table}"));
    }
    // Exactly one update of a record changes its version: our own statement, or the one that the version
    // trigger adds to another program's statement.
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
    if table.has_accounts {
        let body = end_credentials(table, "", "json_quote(OLD.\"id\")");
        list.push(trigger(table, "credentials", "AFTER DELETE ON {table}", &body));
    }
    list.extend(search_triggers(table));
    list
}

/// Refuses to change an id: links, subscribers and caches refer to records by id.
fn id_trigger(table: &StoredTable) -> ObjectDefinition {
    let when = "BEFORE UPDATE OF \"id\" ON {table} WHEN NEW.\"id\" IS NOT OLD.\"id\"";
    trigger(table, "id", when, "SELECT RAISE(ABORT, 'the id of a record never changes')")
}

/// Increments the version and sets `@updatedAt` for updates by other programs; Trefoil's own statements do both.
fn version_trigger(table: &StoredTable) -> ObjectDefinition {
    let mut sets = vec!["\"_version\" = \"_version\" + 1".to_owned()];
    for column in table.columns.iter().filter(|column| column.default == ColumnDefault::Updated) {
        let name = quote_name(&column.column);
        sets.push(format!(
            "{name} = CASE WHEN NEW.{name} IS OLD.{name} THEN {SQLITE_NOW} ELSE NEW.{name} END"
        ));
    }
    let mut body =
        format!("UPDATE {} SET {} WHERE \"id\" = NEW.\"id\"", quote_name(&table.table), sets.join(", "));
    if table.logged.changed_columns {
        // That update was logged, and changed the version only; the fields were changed by this one.
        let last = "\"number\" = (SELECT max(\"number\") FROM \"trefoil_changes\")";
        let image = set_changed_columns(table, "\"image\"");
        body += &format!("; UPDATE \"trefoil_changes\" SET \"image\" = {image} WHERE {last}");
    }
    let when = "AFTER UPDATE ON {table} WHEN NEW.\"_version\" = OLD.\"_version\"";
    trigger(table, "version", when, &body)
}

fn trigger(table: &StoredTable, purpose: &str, when: &str, body: &str) -> ObjectDefinition {
    let name = format!("trefoil_{}_{purpose}", table.table);
    let when = when.replace("{table}", &quote_name(&table.table));
    let sql = format!("CREATE TRIGGER {} {when} BEGIN {body}; END", quote_name(&name));
    ObjectDefinition { name, sql }
}

/// The image with the names of the columns that the update changes.
fn set_changed_columns(table: &StoredTable, image: &str) -> String {
    let differs = |column: &StoredColumn| {
        let name = quote_name(&column.column);
        format!("({}, NEW.{name} IS NOT OLD.{name})", quote_text(&column.column))
    };
    // A table without columns of its own has none that changes.
    let rows: Vec<String> = table.columns.iter().map(differs).collect();
    let rows = if rows.is_empty() { "('', 0)".to_owned() } else { rows.join(", ") };
    let changed = format!("SELECT json_group_array(column1) FROM (VALUES {rows}) WHERE column2");
    format!("json_set({image}, '$.\"{CHANGED_COLUMNS}\"', json(({changed})))")
}

/// The record as a JSON object of its columns. Values that no field can hold become null: a write of another
/// program that the table accepts must not fail in the trigger.
fn image_expression(table: &StoredTable, row: &str) -> String {
    let own = [("id", None), ("_version", None)].into_iter();
    let columns = own.chain(table.columns.iter().map(|column| (column.column.as_str(), Some(&column.form))));
    let pairs: Vec<_> =
        columns.map(|(name, stored_type)| (name, image_value(row, name, stored_type))).collect();
    let mut groups = pairs.chunks(COLUMNS_PER_CALL);
    let list = |group: &[(&str, String)], prefix: &str| {
        let pairs: Vec<_> = group.iter().map(|(name, value)| format!("'{prefix}{name}', {value}")).collect();
        pairs.join(", ")
    };
    let first = format!("json_object({})", list(groups.next().unwrap_or_default(), ""));
    groups.fold(first, |object, group| format!("json_set({object}, {})", list(group, "$.")))
}

fn image_value(row: &str, column: &str, stored_type: Option<&StoredType>) -> String {
    let value = format!("{row}.{}", quote_name(column));
    match stored_type.map(column_type) {
        None => value,
        // SQLite before 3.43 writes only 15 digits of a number, which loses precision.
        Some("REAL") => {
            let is_finite = format!("typeof({value}) = 'real' AND abs({value}) < 9e999");
            format!("CASE WHEN {is_finite} THEN json(printf('%!.17g', {value})) END")
        }
        Some(_) => format!("CASE WHEN typeof({value}) <> 'blob' THEN {value} END"),
    }
}
