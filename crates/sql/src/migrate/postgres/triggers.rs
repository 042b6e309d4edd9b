//! The triggers of a record's table on PostgreSQL, and the functions they call.

use crate::migrate::ddl::{quoted, text};
use crate::migrate::postgres::catalog::{Function, Trigger, short};
use crate::migrate::postgres::ddl::SPELLING;
use crate::migrate::stored_model::{Column, Fill, Form, Table};

/// The functions that the triggers of all tables share.
pub fn shared() -> Vec<Function> {
    vec![refuse(), count_version(), pass_id()]
}

/// The functions of one table; `sequence` is the one that gives its ids.
pub fn functions(table: &Table, sequence: &str) -> Vec<Function> {
    let mut list = vec![created(table, sequence)];
    list.extend(version_function(table));
    if table.logged.updated {
        list.push(own_function(table, "updated", &log(table, "updated", "NEW")));
    }
    if table.logged.deleted {
        list.push(own_function(table, "deleted", &log(table, "deleted", "OLD")));
    }
    list
}

/// A trigger's name need not be unique beyond its table.
pub fn triggers(table: &Table) -> Vec<Trigger> {
    let own = |deed: &str, when: &str| trigger(table, deed, when, "FOR EACH ROW", &own_name(table, deed), "");
    let version = version_function(table).unwrap_or_else(count_version).name;
    let mut list = vec![
        // Links, subscribers and caches know a record by its id.
        trigger(
            table,
            "id",
            "BEFORE UPDATE",
            "FOR EACH ROW WHEN (NEW.\"id\" IS DISTINCT FROM OLD.\"id\")",
            "trefoil_refuse",
            "the id of a record never changes",
        ),
        // What Trefoil's own updates do by themselves: count the version up and keep `@updatedAt` true.
        trigger(
            table,
            "version",
            "BEFORE UPDATE",
            "FOR EACH ROW WHEN (NEW.\"_version\" = OLD.\"_version\")",
            &version,
            "",
        ),
        own("created", "AFTER INSERT"),
    ];
    if table.logged.updated {
        list.push(own("updated", "AFTER UPDATE"));
    }
    if table.logged.deleted {
        list.push(own("deleted", "AFTER DELETE"));
        list.push(trigger(
            table,
            "truncate",
            "BEFORE TRUNCATE",
            "FOR EACH STATEMENT",
            "trefoil_refuse",
            "TRUNCATE would leave these deletions out of the change log: use DELETE",
        ));
    }
    list
}

fn trigger(table: &Table, purpose: &str, when: &str, rows: &str, calls: &str, argument: &str) -> Trigger {
    let argument = if argument.is_empty() { String::new() } else { text(argument) };
    Trigger {
        table: table.table.clone(),
        name: format!("trefoil_{purpose}"),
        when: format!("{when} ON {{table}} {rows} EXECUTE FUNCTION {{schema}}.{}({argument})", quoted(calls)),
    }
}

fn refuse() -> Function {
    let body =
        "\nBEGIN\n  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';\nEND\n";
    Function::of_trigger("trefoil_refuse", body)
}

fn count_version() -> Function {
    let body = "\nBEGIN\n  NEW.\"_version\" := OLD.\"_version\" + 1;\n  RETURN NEW;\nEND\n";
    Function::of_trigger("trefoil_count_version", body)
}

/// Only of tables that have a field which is to follow each change.
fn version_function(table: &Table) -> Option<Function> {
    let followed = || table.columns.iter().filter(|column| column.default == Fill::Updated);
    followed().next()?;
    let sets: String = followed()
        .map(|column| {
            let name = quoted(&column.column);
            format!(
                "  IF NEW.{name} IS NOT DISTINCT FROM OLD.{name} THEN\n    NEW.{name} := clock_timestamp();\n  END IF;\n"
            )
        })
        .collect();
    let body = format!("\nBEGIN\n  NEW.\"_version\" := OLD.\"_version\" + 1;\n{sets}  RETURN NEW;\nEND\n");
    Some(Function::of_trigger(&own_name(table, "version"), &body))
}

/// Whether an id was chosen is asked here and not in the trigger's condition, which would be read anew for every
/// statement: 2 us an insert instead of 7.
fn created(table: &Table, sequence: &str) -> Function {
    let sequence = text(sequence);
    let pass = format!(
        "  IF NEW.\"id\" > coalesce(pg_sequence_last_value({sequence}::regclass), 0) THEN\n    \
         PERFORM {{schema}}.\"trefoil_pass_id\"({sequence}::regclass, NEW.\"id\");\n  END IF;\n"
    );
    let log = if table.logged.created { log(table, "created", "NEW") } else { String::new() };
    own_function(table, "created", &format!("{pass}{log}"))
}

/// After a record with an id that somebody chose, ids go on behind it. Only forward, and one at a time: a sequence that
/// is set cannot say where it was. A short way is gone step by step, since others may take ids meanwhile.
fn pass_id() -> Function {
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
    Function {
        name: "trefoil_pass_id".to_owned(),
        takes: "given regclass, id bigint",
        gives: "void",
        body: body.to_owned(),
    }
}

fn own_name(table: &Table, purpose: &str) -> String {
    short(&format!("trefoil_{}_{purpose}", table.table))
}

/// What a trigger does after the deed.
fn own_function(table: &Table, purpose: &str, statements: &str) -> Function {
    let body = format!("\nBEGIN\n{statements}  RETURN NULL;\nEND\n");
    Function::of_trigger(&own_name(table, purpose), &body)
}

/// Writes a change with the place it takes in the order of all, while the record is still locked.
fn log(table: &Table, deed: &str, row: &str) -> String {
    let typed =
        |column: &Column| format!("{} {}", quoted(&column.column), (SPELLING.column_type)(&column.form));
    // A session that ran the function knows the types of its columns; it only learns of others when the text differs.
    let types = table.columns.iter().map(typed).collect::<Vec<_>>().join(", ");
    let columns = ["resource", "deed", "record", "version", "at", "image"].map(quoted).join(", ");
    format!(
        "  -- {types}\n  INSERT INTO {{schema}}.\"trefoil_unnumbered\" ({columns})\n  \
         SELECT {}, '{deed}', i.\"id\", i.\"_version\", clock_timestamp(), row_to_json(i.*)\n  \
         FROM (SELECT {}) AS i;\n",
        text(&table.name),
        image(table, row)
    )
}

/// The record's columns in the stored form. Values that no field can hold are null: another program's write must not
/// fail for them here, where they did not fail in the table.
fn image(table: &Table, row: &str) -> String {
    let own = ["id", "_version"].map(|name| format!("{row}.{0} AS {0}", quoted(name)));
    let columns = table.columns.iter().map(|column| image_value(row, column));
    own.into_iter().chain(columns).collect::<Vec<_>>().join(", ")
}

fn image_value(row: &str, column: &Column) -> String {
    let name = quoted(&column.column);
    let value = format!("{row}.{name}");
    let read = (SPELLING.reading)(&column.form, &value);
    let may_be_no_number = [Form::Scalar("Float".to_owned()), Form::Scalar("Decimal".to_owned())];
    match may_be_no_number.contains(&column.form) {
        // What is infinite, or not a number, is not so far from itself.
        true => format!("CASE WHEN {value} - {value} = 0 THEN {read} END AS {name}"),
        false => format!("{read} AS {name}"),
    }
}
