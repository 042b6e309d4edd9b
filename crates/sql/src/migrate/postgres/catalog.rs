//! What PostgreSQL says it has, and the way from that to what is wanted: functions, triggers, references.
//!
//! What fits is left alone, so that a start which changes nothing locks nothing.

use crate::migrate::MigrateError;
use crate::migrate::ddl::{quoted, references, text};
use crate::migrate::migration_database::Host;
use crate::migrate::postgres::{Postgres, indexes};
use crate::migrate::stored_model::{Action, Form, StoredModel};

/// The schema that everything of ours is in.
pub const OURS: &str = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())";

/// PostgreSQL cuts longer names off.
pub const LONGEST_NAME: usize = 63;

/// `{schema}` in the body stands for the schema: the caller's search path may be another program's.
#[derive(Debug, PartialEq)]
pub struct Function {
    pub name: String,
    pub takes: &'static str,
    pub gives: &'static str,
    pub body: String,
}

/// `{schema}` and `{table}` in the text stand for what they say.
#[derive(Debug, PartialEq)]
pub struct Trigger {
    pub table: String,
    pub name: String,
    /// What follows the name.
    pub when: String,
}

/// A foreign key of ours; those of link tables never change.
#[derive(Debug, PartialEq)]
struct Reference {
    name: String,
    table: String,
    column: String,
    to: String,
    on_delete: Action,
}

impl Function {
    pub fn of_trigger(name: &str, body: &str) -> Function {
        Function { name: name.to_owned(), takes: "", gives: "trigger", body: body.to_owned() }
    }
}

/// A name that PostgreSQL takes whole.
pub fn short(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    let hash = xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32;
    let kept: String = name.chars().take(LONGEST_NAME - 9).collect();
    format!("{kept}_{hash:08x}")
}

pub fn relations(host: &Postgres) -> Result<Vec<String>, MigrateError> {
    let sql = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = {OURS} AND relkind IN ('r', 'p', 'v', 'm', 'f') \
         ORDER BY relname"
    );
    Ok(host.texts(&sql, &[])?.into_iter().flatten().collect())
}

pub fn columns(host: &Postgres, table: &str) -> Result<Vec<String>, MigrateError> {
    let sql = format!(
        "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
         WHERE relnamespace = {OURS} AND relname = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    );
    Ok(host.texts(&sql, &[table])?.into_iter().flatten().collect())
}

/// The sequence that gives a table's ids.
pub fn sequence(host: &Postgres, table: &str) -> Result<String, MigrateError> {
    let found = host.texts("SELECT pg_get_serial_sequence($1, 'id')", &[&quoted(table)])?;
    let found = found.into_iter().flatten().find(|name| !name.is_empty());
    found.ok_or_else(|| MigrateError::Damaged(format!("no sequence gives the ids of the table {table}")))
}

/// What another program has put on a column and would silently go with it, in PostgreSQL's words.
pub fn foreign_parts(
    host: &Postgres,
    table: &str,
    column: &str,
    ours: &[String],
) -> Result<Vec<String>, MigrateError> {
    let ours: Vec<String> = ours.iter().map(|name| text(name)).collect();
    let ours = if ours.is_empty() { "''".to_owned() } else { ours.join(", ") };
    let gone = indexes::is_gone("i.relname");
    let sql = format!(
        "SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d \
         JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
         JOIN pg_class t ON t.oid = d.refobjid \
         LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid \
         LEFT JOIN pg_constraint c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid \
         WHERE d.refclassid = 'pg_class'::regclass AND d.deptype = 'a' AND t.relnamespace = {OURS} \
         AND t.relname = $1 AND a.attname = $2 AND d.classid <> 'pg_attrdef'::regclass \
         AND coalesce(i.relname::text, '') NOT IN ({ours}) AND NOT coalesce({gone}, false) \
         AND NOT coalesce(c.contype = 'n' OR c.conname LIKE 'trefoil!_%' ESCAPE '!', false)"
    );
    Ok(host.texts(&sql, &[table, column])?.into_iter().flatten().collect())
}

pub fn sync_functions(host: &Postgres, wanted: &[Function]) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = {OURS} AND proname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let found = host.texts(&sql, &[])?;
    for function in wanted {
        let body = host.placed(&function.body);
        if found.iter().any(|row| row[0] == function.name && row[1] == body) {
            continue;
        }
        let Function { name, takes, gives, .. } = function;
        host.batch(&format!(
            "CREATE OR REPLACE FUNCTION {}.{}({takes}) RETURNS {gives} LANGUAGE plpgsql AS $trefoil${body}$trefoil$",
            host.schema,
            quoted(name)
        ))?;
    }
    Ok(())
}

pub fn drop_functions(host: &Postgres, gone: &[Function]) -> Result<(), MigrateError> {
    gone.iter().try_for_each(|function| {
        host.batch(&format!("DROP FUNCTION IF EXISTS {}.{}", host.schema, quoted(&function.name)))
    })
}

/// The text of a trigger is kept as its comment, since PostgreSQL only gives it back in words of its own.
pub fn sync_triggers(host: &Postgres, tables: &[&str], wanted: &[Trigger]) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT c.relname, t.tgname, coalesce(obj_description(t.oid, 'pg_trigger'), '') FROM pg_trigger t \
         JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = {OURS} AND NOT t.tgisinternal \
         AND t.tgenabled = ANY ($1) AND t.tgname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let made = |trigger: &Trigger| {
        let when = host.placed(&trigger.when).replace("{table}", &quoted(&trigger.table));
        format!("CREATE TRIGGER {} {when}", quoted(&trigger.name))
    };
    let awake = host.texts(&sql, &["{O,A}"])?;
    let asleep = host.texts(&sql, &["{D,R}"])?;
    let fits =
        |row: &Vec<String>, one: &Trigger| row[0] == one.table && row[1] == one.name && row[2] == made(one);
    let kept = |row: &Vec<String>| wanted.iter().any(|one| fits(row, one));
    let ours = |row: &&Vec<String>| tables.contains(&row[0].as_str());
    for row in awake.iter().filter(|row| !kept(row)).chain(&asleep).filter(ours) {
        host.batch(&format!("DROP TRIGGER {} ON {}", quoted(&row[1]), quoted(&row[0])))?;
    }
    for one in wanted.iter().filter(|one| !awake.iter().any(|row| fits(row, one))) {
        let (name, table, sql) = (quoted(&one.name), quoted(&one.table), made(one));
        host.batch(&format!("{sql}; COMMENT ON TRIGGER {name} ON {table} IS {}", text(&sql)))?;
    }
    Ok(())
}

/// Takes off what keeps columns from changing their type and tables from going.
pub fn drop_outdated_references(host: &Postgres, new: &StoredModel) -> Result<(), MigrateError> {
    let wanted = wanted_references(new);
    for one in found_references(host)?.iter().filter(|one| !wanted.iter().any(|other| other.is_like(one))) {
        let (table, name) = (quoted(&one.table), quoted(&one.name));
        host.batch(&format!("ALTER TABLE {table} DROP CONSTRAINT {name}"))?;
    }
    Ok(())
}

pub fn sync_references(host: &Postgres, new: &StoredModel) -> Result<(), MigrateError> {
    drop_outdated_references(host, new)?;
    let found = found_references(host)?;
    for one in wanted_references(new) {
        let (table, name, column) = (quoted(&one.table), quoted(&one.name), quoted(&one.column));
        match found.iter().find(|other| one.is_like(other)) {
            Some(other) if other.name == one.name => {}
            Some(other) => {
                let old = quoted(&other.name);
                host.batch(&format!("ALTER TABLE {table} RENAME CONSTRAINT {old} TO {name}"))?;
            }
            None => {
                let to = new.tables.iter().find(|table| table.table == one.to);
                let to = references(new, to.map_or("", |to| &to.name), one.on_delete);
                host.batch(&format!("ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}){to}"))?;
            }
        }
    }
    Ok(())
}

/// An import brings records in any order, so references can be looked at in its end; for everyone else they are looked
/// at with every statement, as ever.
pub fn let_references_wait(host: &Postgres, new: &StoredModel) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT c.conname, t.relname FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid \
         WHERE c.contype = 'f' AND NOT c.condeferrable AND t.relnamespace = {OURS}"
    );
    for row in host.texts(&sql, &[])?.iter().filter(|row| new.table_names().any(|table| table == row[1])) {
        let (name, table) = (quoted(&row[0]), quoted(&row[1]));
        host.batch(&format!("ALTER TABLE {table} ALTER CONSTRAINT {name} DEFERRABLE"))?;
    }
    Ok(())
}

fn found_references(host: &Postgres) -> Result<Vec<Reference>, MigrateError> {
    let sql = format!(
        "SELECT c.conname, t.relname, a.attname, r.relname, c.confdeltype::text FROM pg_constraint c \
         JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class r ON r.oid = c.confrelid \
         JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
         WHERE c.contype = 'f' AND t.relnamespace = {OURS} AND c.conname LIKE 'trefoil!_reference!_%' ESCAPE '!'"
    );
    let reference = |row: Vec<String>| Reference {
        name: row[0].clone(),
        table: row[1].clone(),
        column: row[2].clone(),
        to: row[3].clone(),
        on_delete: match row[4].as_str() {
            "c" => Action::Cascade,
            "n" => Action::SetNull,
            _ => Action::Refuse,
        },
    };
    Ok(host.texts(&sql, &[])?.into_iter().map(reference).collect())
}

fn wanted_references(model: &StoredModel) -> Vec<Reference> {
    let of = |table: &str, column: &str, to: &str, on_delete| Reference {
        name: short(&format!("trefoil_reference_{column}")),
        table: table.to_owned(),
        column: column.to_owned(),
        to: model.table(to).map_or_else(String::new, |to| to.table.clone()),
        on_delete,
    };
    let columns =
        model.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    let wanted = columns.filter_map(|(table, column)| match &column.form {
        Form::Reference { to, on_delete } => Some(of(&table.table, &column.column, to, *on_delete)),
        Form::Scalar(_) | Form::Enum(_) | Form::Embedded(_) | Form::List { .. } => None,
    });
    wanted.collect()
}

impl Reference {
    fn is_like(&self, other: &Reference) -> bool {
        (&self.table, &self.column, &self.to, self.on_delete)
            == (&other.table, &other.column, &other.to, other.on_delete)
    }
}
