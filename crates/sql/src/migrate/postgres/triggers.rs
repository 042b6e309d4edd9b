//! The triggers of a record's table on PostgreSQL, and the functions they call.

use trefoil_engine::ChangeKind;
use trefoil_engine::changes::CHANGED_COLUMNS;

use crate::api_keys::end_credentials;
use crate::audit::WriteAction;
use crate::audit::origin_setting::audit_statements;
use crate::migrate::create_statements::{quote_name, quote_text};
use crate::migrate::postgres::ddl::POSTGRES_DDL;
use crate::migrate::postgres::sql_objects::{SqlFunction, SqlTrigger, shorten_name};
use crate::migrate::stored_model::{ColumnDefault, StoredColumn, StoredKey, StoredTable, StoredType};
use crate::statements::search::search_index::{
    COUNT_FUNCTION, WORDS_FUNCTION, count_function_body, words_function_body,
};

/// The functions that the triggers of all tables share.
pub fn shared_functions() -> Vec<SqlFunction> {
    vec![refuse_function(), count_version_function(), pass_id_function()]
}

/// The functions of full-text indexes, for all tables.
pub fn search_functions() -> [SqlFunction; 2] {
    let language = "sql IMMUTABLE PARALLEL SAFE";
    [
        SqlFunction {
            name: WORDS_FUNCTION.to_owned(),
            parameters: "text",
            return_type: "tsvector",
            language,
            body: words_function_body(),
        },
        SqlFunction {
            name: COUNT_FUNCTION.to_owned(),
            parameters: "text, text[]",
            return_type: "bigint",
            language,
            body: count_function_body(),
        },
    ]
}

/// The functions of one table; `sequence` is the sequence of its ids, if they are counted.
pub fn table_functions(table: &StoredTable, sequence: Option<&str>) -> Vec<SqlFunction> {
    let mut list = vec![created_function(table, sequence)];
    list.extend(version_function(table));
    if table.logged.updated || table.is_audited {
        list.push(table_function(table, "updated", &noted_change(table, ChangeKind::Updated)));
    }
    if table.logged.deleted || table.is_audited {
        list.push(table_function(table, "deleted", &noted_change(table, ChangeKind::Deleted)));
    }
    if table.has_accounts {
        let end = end_credentials(table, "{schema}.", "to_json(OLD.\"id\")::text");
        list.push(table_function(table, "credentials", &format!("  {end};\n")));
    }
    list
}

/// The triggers of one table. Their names are the same on every table.
pub fn table_triggers(table: &StoredTable) -> Vec<SqlTrigger> {
    let own = |kind: &str, when: &str| {
        trigger(&table.table, kind, when, "FOR EACH ROW", &table_function_name(table, kind), "")
    };
    let version = version_function(table).unwrap_or_else(count_version_function).name;
    let mut list = vec![
        // Links, subscribers and caches refer to records by id.
        trigger(
            &table.table,
            "id",
            "BEFORE UPDATE",
            "FOR EACH ROW WHEN (NEW.\"id\" IS DISTINCT FROM OLD.\"id\")",
            "trefoil_refuse",
            "the id of a record never changes",
        ),
        // Increments the version and sets `@updatedAt` for updates by other programs; Trefoil's own statements do both.
        trigger(
            &table.table,
            "version",
            "BEFORE UPDATE",
            "FOR EACH ROW WHEN (NEW.\"_version\" = OLD.\"_version\")",
            &version,
            "",
        ),
        own("created", "AFTER INSERT"),
    ];
    if table.logged.updated || table.is_audited {
        list.push(own("updated", "AFTER UPDATE"));
    }
    if table.logged.deleted || table.is_audited {
        list.push(own("deleted", "AFTER DELETE"));
    }
    if table.logged.deleted {
        list.push(trigger(
            &table.table,
            "truncate",
            "BEFORE TRUNCATE",
            "FOR EACH STATEMENT",
            "trefoil_refuse",
            "TRUNCATE would leave these deletions out of the change log: use DELETE",
        ));
    }
    if table.has_accounts {
        list.push(own("credentials", "AFTER DELETE"));
    }
    list
}

pub fn trigger(
    table: &str,
    purpose: &str,
    when: &str,
    rows: &str,
    function: &str,
    argument: &str,
) -> SqlTrigger {
    let argument = if argument.is_empty() { String::new() } else { quote_text(argument) };
    SqlTrigger {
        table: table.to_owned(),
        name: format!("trefoil_{purpose}"),
        definition: format!(
            "{when} ON {{table}} {rows} EXECUTE FUNCTION {{schema}}.{}({argument})",
            quote_name(function)
        ),
    }
}

fn refuse_function() -> SqlFunction {
    let body =
        "\nBEGIN\n  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';\nEND\n";
    SqlFunction::for_trigger("trefoil_refuse", body)
}

fn count_version_function() -> SqlFunction {
    let body = "\nBEGIN\n  NEW.\"_version\" := OLD.\"_version\" + 1;\n  RETURN NEW;\nEND\n";
    SqlFunction::for_trigger("trefoil_count_version", body)
}

/// The function of the version trigger if the table has `@updatedAt` fields.
fn version_function(table: &StoredTable) -> Option<SqlFunction> {
    let updated_columns = || table.columns.iter().filter(|column| column.default == ColumnDefault::Updated);
    updated_columns().next()?;
    let sets: String = updated_columns()
        .map(|column| {
            let name = quote_name(&column.column);
            format!(
                "  IF NEW.{name} IS NOT DISTINCT FROM OLD.{name} THEN\n    NEW.{name} := clock_timestamp();\n  END IF;\n"
            )
        })
        .collect();
    let body = format!("\nBEGIN\n  NEW.\"_version\" := OLD.\"_version\" + 1;\n{sets}  RETURN NEW;\nEND\n");
    Some(SqlFunction::for_trigger(&table_function_name(table, "version"), &body))
}

/// The function of the insert trigger. It checks for an id chosen by the client itself: a WHEN condition on the trigger
/// would be parsed for every statement, which costs 7 µs an insert instead of 2.
fn created_function(table: &StoredTable, sequence: Option<&str>) -> SqlFunction {
    let pass = sequence.map(quote_text).map_or_else(String::new, |sequence| {
        format!(
            "  IF NEW.\"id\" > coalesce(pg_sequence_last_value({sequence}::regclass), 0) THEN\n    \
             PERFORM {{schema}}.\"trefoil_pass_id\"({sequence}::regclass, NEW.\"id\");\n  END IF;\n"
        )
    });
    let noted = noted_change(table, ChangeKind::Created);
    table_function(table, "created", &format!("{pass}{noted}"))
}

/// Advances the sequence past an id that a client chose. Never backwards, and under a lock, since `setval` does not
/// compare with the current value. A short distance is covered by `nextval`, since others may draw ids meanwhile.
fn pass_id_function() -> SqlFunction {
    let body = r#"
DECLARE last bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('trefoil_pass_id', given::oid::bigint));
  last := coalesce(pg_sequence_last_value(given), 0);
  IF id - last > 10000 THEN
    PERFORM setval(given, id);
  ELSE
    WHILE last < id LOOP
      last := nextval(given);
    END LOOP;
  END IF;
END
"#;
    SqlFunction {
        name: "trefoil_pass_id".to_owned(),
        parameters: "given regclass, id bigint",
        return_type: "void",
        language: "plpgsql",
        body: body.to_owned(),
    }
}

fn table_function_name(table: &StoredTable, purpose: &str) -> String {
    shorten_name(&format!("trefoil_{}_{purpose}", table.table))
}

/// A trigger function that runs after the change.
fn table_function(table: &StoredTable, purpose: &str, statements: &str) -> SqlFunction {
    let body = format!("\nBEGIN\n{statements}  RETURN NULL;\nEND\n");
    SqlFunction::for_trigger(&table_function_name(table, purpose), &body)
}

/// The statements that log a change and note it in the audit, as far as the table's are.
fn noted_change(table: &StoredTable, kind: ChangeKind) -> String {
    let (is_logged, row, action) = match kind {
        ChangeKind::Created => (table.logged.created, "NEW", WriteAction::Create),
        ChangeKind::Updated => (table.logged.updated, "NEW", WriteAction::Update),
        ChangeKind::Deleted => (table.logged.deleted, "OLD", WriteAction::Delete),
    };
    let log = if is_logged { log_statement(table, kind.name(), row) } else { String::new() };
    match table.is_audited {
        // Logged or not, the text has the types of the columns.
        true => format!("  -- {}\n{log}{}", column_types(table), audit_statements(table, action)),
        false => log,
    }
}

/// Sessions cache the column types of a function until its text changes, so the text contains them.
fn column_types(table: &StoredTable) -> String {
    let typed = |column: &StoredColumn| {
        format!("{} {}", quote_name(&column.column), (POSTGRES_DDL.column_type)(&column.form))
    };
    table.columns.iter().map(typed).collect::<Vec<_>>().join(", ")
}

/// The statement that logs a change, with a sequence value drawn while the record is still locked.
fn log_statement(table: &StoredTable, kind: &str, row: &str) -> String {
    let types = column_types(table);
    let columns = ["resource", "deed", "record", "version", "at", "image"].map(quote_name).join(", ");
    let id = if table.key == StoredKey::Counted { "i.\"id\"" } else { "0" };
    let is_told = kind == "updated" && table.logged.changed_columns;
    let changed = if is_told { changed_columns(table) } else { String::new() };
    format!(
        "  -- {types}\n  INSERT INTO {{schema}}.\"trefoil_unnumbered\" ({columns})\n  \
         SELECT {}, '{kind}', {id}, i.\"_version\", clock_timestamp(), row_to_json(i.*)\n  \
         FROM (SELECT {}) AS i;\n",
        quote_text(&table.name),
        image_columns(table, row) + &changed
    )
}

/// The record's columns in the stored form. Values that no field can hold become null: a write of another program that
/// the table accepts must not fail in the trigger.
fn image_columns(table: &StoredTable, row: &str) -> String {
    let own = ["id", "_version"].map(|name| format!("{row}.{0} AS {0}", quote_name(name)));
    let columns = table.columns.iter().map(|column| image_value(row, column));
    own.into_iter().chain(columns).collect::<Vec<_>>().join(", ")
}

/// The names of the columns that the update changes, as another column of the image. Texts are compared, so that what is
/// written otherwise counts as changed, as on SQLite.
fn changed_columns(table: &StoredTable) -> String {
    let differs = |column: &StoredColumn| {
        let name = quote_name(&column.column);
        let [new, old] = ["NEW", "OLD"].map(|row| format!("CAST({row}.{name} AS text)"));
        format!("({}, {new} IS DISTINCT FROM {old})", quote_text(&column.column))
    };
    let rows: Vec<String> = table.columns.iter().map(differs).collect();
    let rows = if rows.is_empty() { "('', false)".to_owned() } else { rows.join(", ") };
    format!(
        ", array_to_json(ARRAY(SELECT c.name FROM (VALUES {rows}) AS c(name, differs) WHERE c.differs)) AS {}",
        quote_name(CHANGED_COLUMNS)
    )
}

fn image_value(row: &str, column: &StoredColumn) -> String {
    let name = quote_name(&column.column);
    let value = format!("{row}.{name}");
    let read = (POSTGRES_DDL.read_expression)(&column.form, &value);
    let non_finite_types = [StoredType::Scalar("Float".to_owned()), StoredType::Scalar("Decimal".to_owned())];
    match non_finite_types.contains(&column.form) {
        // The difference is not 0 for infinity and NaN.
        true => format!("CASE WHEN {value} - {value} = 0 THEN {read} END AS {name}"),
        false => format!("{read} AS {name}"),
    }
}
