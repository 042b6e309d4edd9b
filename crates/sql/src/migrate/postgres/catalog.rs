//! What PostgreSQL says it has, and the way from that to what is wanted: functions, triggers, references.
//!
//! What fits is left alone, so that a start which changes nothing locks nothing.

use crate::migrate::MigrateError;
use crate::migrate::ddl::{quote_name, quote_text, references_clause};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::postgres::{PostgresMigration, indexes};
use crate::migrate::stored_model::{DeleteAction, StoredModel, StoredType};

/// The schema that everything of ours is in.
pub const SCHEMA_OID: &str = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())";

/// PostgreSQL cuts longer names off.
pub const MAX_NAME_BYTES: usize = 63;

/// `{schema}` in the body stands for the schema: the caller's search path may be another program's.
#[derive(Debug, PartialEq)]
pub struct SqlFunction {
    pub name: String,
    pub parameters: &'static str,
    pub return_type: &'static str,
    pub body: String,
}

/// `{schema}` and `{table}` in the text stand for what they say.
#[derive(Debug, PartialEq)]
pub struct SqlTrigger {
    pub table: String,
    pub name: String,
    /// What follows the name.
    pub definition: String,
}

/// A foreign key of ours; those of link tables never change.
#[derive(Debug, PartialEq)]
struct ForeignKey {
    name: String,
    table: String,
    column: String,
    target: String,
    on_delete: DeleteAction,
}

impl SqlFunction {
    pub fn for_trigger(name: &str, body: &str) -> SqlFunction {
        SqlFunction { name: name.to_owned(), parameters: "", return_type: "trigger", body: body.to_owned() }
    }
}

/// A name that PostgreSQL takes whole.
pub fn shorten_name(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let hash = xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32;
    let kept: String = name.chars().take(MAX_NAME_BYTES - 9).collect();
    format!("{kept}_{hash:08x}")
}

pub fn relations(host: &PostgresMigration) -> Result<Vec<String>, MigrateError> {
    let sql = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = {SCHEMA_OID} AND relkind IN ('r', 'p', 'v', 'm', 'f') \
         ORDER BY relname"
    );
    Ok(host.query_texts(&sql, &[])?.into_iter().flatten().collect())
}

pub fn find_columns(host: &PostgresMigration, table: &str) -> Result<Vec<String>, MigrateError> {
    let sql = format!(
        "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
         WHERE relnamespace = {SCHEMA_OID} AND relname = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    );
    Ok(host.query_texts(&sql, &[table])?.into_iter().flatten().collect())
}

/// The sequence that gives a table's ids.
pub fn id_sequence(host: &PostgresMigration, table: &str) -> Result<String, MigrateError> {
    let found = host.query_texts("SELECT pg_get_serial_sequence($1, 'id')", &[&quote_name(table)])?;
    let found = found.into_iter().flatten().find(|name| !name.is_empty());
    found.ok_or_else(|| MigrateError::Damaged(format!("no sequence gives the ids of the table {table}")))
}

/// What another program has put on a column and would silently go with it, in PostgreSQL's words.
pub fn foreign_objects(
    host: &PostgresMigration,
    table: &str,
    column: &str,
    ours: &[String],
) -> Result<Vec<String>, MigrateError> {
    let ours: Vec<String> = ours.iter().map(|name| quote_text(name)).collect();
    let ours = if ours.is_empty() { "''".to_owned() } else { ours.join(", ") };
    let gone = indexes::is_obsolete_sql("i.relname");
    let sql = format!(
        "SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d \
         JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
         JOIN pg_class t ON t.oid = d.refobjid \
         LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid \
         LEFT JOIN pg_constraint c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid \
         WHERE d.refclassid = 'pg_class'::regclass AND d.deptype = 'a' AND t.relnamespace = {SCHEMA_OID} \
         AND t.relname = $1 AND a.attname = $2 AND d.classid <> 'pg_attrdef'::regclass \
         AND coalesce(i.relname::text, '') NOT IN ({ours}) AND NOT coalesce({gone}, false) \
         AND NOT coalesce(c.contype = 'n' OR c.conname LIKE 'trefoil!_%' ESCAPE '!', false)"
    );
    Ok(host.query_texts(&sql, &[table, column])?.into_iter().flatten().collect())
}

pub fn sync_functions(host: &PostgresMigration, wanted: &[SqlFunction]) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = {SCHEMA_OID} AND proname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let found = host.query_texts(&sql, &[])?;
    for function in wanted {
        let body = host.with_schema(&function.body);
        if found.iter().any(|row| row[0] == function.name && row[1] == body) {
            continue;
        }
        let SqlFunction { name, parameters: takes, return_type: gives, .. } = function;
        host.execute_batch(&format!(
            "CREATE OR REPLACE FUNCTION {}.{}({takes}) RETURNS {gives} LANGUAGE plpgsql AS $trefoil${body}$trefoil$",
            host.schema,
            quote_name(name)
        ))?;
    }
    Ok(())
}

pub fn drop_functions(host: &PostgresMigration, gone: &[SqlFunction]) -> Result<(), MigrateError> {
    gone.iter().try_for_each(|function| {
        host.execute_batch(&format!("DROP FUNCTION IF EXISTS {}.{}", host.schema, quote_name(&function.name)))
    })
}

/// The text of a trigger is kept as its comment, since PostgreSQL only gives it back in words of its own.
pub fn sync_triggers(
    host: &PostgresMigration,
    tables: &[&str],
    wanted: &[SqlTrigger],
) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT c.relname, t.tgname, coalesce(obj_description(t.oid, 'pg_trigger'), '') FROM pg_trigger t \
         JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = {SCHEMA_OID} AND NOT t.tgisinternal \
         AND t.tgenabled = ANY ($1) AND t.tgname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let made = |trigger: &SqlTrigger| {
        let when = host.with_schema(&trigger.definition).replace("{table}", &quote_name(&trigger.table));
        format!("CREATE TRIGGER {} {when}", quote_name(&trigger.name))
    };
    let awake = host.query_texts(&sql, &["{O,A}"])?;
    let asleep = host.query_texts(&sql, &["{D,R}"])?;
    let fits = |row: &Vec<String>, one: &SqlTrigger| {
        row[0] == one.table && row[1] == one.name && row[2] == made(one)
    };
    let kept = |row: &Vec<String>| wanted.iter().any(|one| fits(row, one));
    let ours = |row: &&Vec<String>| tables.contains(&row[0].as_str());
    for row in awake.iter().filter(|row| !kept(row)).chain(&asleep).filter(ours) {
        host.execute_batch(&format!("DROP TRIGGER {} ON {}", quote_name(&row[1]), quote_name(&row[0])))?;
    }
    for one in wanted.iter().filter(|one| !awake.iter().any(|row| fits(row, one))) {
        let (name, table, sql) = (quote_name(&one.name), quote_name(&one.table), made(one));
        host.execute_batch(&format!("{sql}; COMMENT ON TRIGGER {name} ON {table} IS {}", quote_text(&sql)))?;
    }
    Ok(())
}

/// Takes off what keeps columns from changing their type and tables from going.
pub fn drop_outdated_references(host: &PostgresMigration, new: &StoredModel) -> Result<(), MigrateError> {
    let wanted = required_references(new);
    for one in find_references(host)?.iter().filter(|one| !wanted.iter().any(|other| other.is_same_key(one)))
    {
        let (table, name) = (quote_name(&one.table), quote_name(&one.name));
        host.execute_batch(&format!("ALTER TABLE {table} DROP CONSTRAINT {name}"))?;
    }
    Ok(())
}

pub fn sync_references(host: &PostgresMigration, new: &StoredModel) -> Result<(), MigrateError> {
    drop_outdated_references(host, new)?;
    let found = find_references(host)?;
    for one in required_references(new) {
        let (table, name, column) = (quote_name(&one.table), quote_name(&one.name), quote_name(&one.column));
        match found.iter().find(|other| one.is_same_key(other)) {
            Some(other) if other.name == one.name => {}
            Some(other) => {
                let old = quote_name(&other.name);
                host.execute_batch(&format!("ALTER TABLE {table} RENAME CONSTRAINT {old} TO {name}"))?;
            }
            None => {
                let to = new.tables.iter().find(|table| table.table == one.target);
                let to = references_clause(new, to.map_or("", |to| &to.name), one.on_delete);
                host.execute_batch(&format!(
                    "ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}){to}"
                ))?;
            }
        }
    }
    Ok(())
}

/// An import brings records in any order, so references can be looked at in its end; for everyone else they are looked
/// at with every statement, as ever.
pub fn make_references_deferrable(host: &PostgresMigration, new: &StoredModel) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT c.conname, t.relname FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid \
         WHERE c.contype = 'f' AND NOT c.condeferrable AND t.relnamespace = {SCHEMA_OID}"
    );
    for row in
        host.query_texts(&sql, &[])?.iter().filter(|row| new.table_names().any(|table| table == row[1]))
    {
        let (name, table) = (quote_name(&row[0]), quote_name(&row[1]));
        host.execute_batch(&format!("ALTER TABLE {table} ALTER CONSTRAINT {name} DEFERRABLE"))?;
    }
    Ok(())
}

fn find_references(host: &PostgresMigration) -> Result<Vec<ForeignKey>, MigrateError> {
    let sql = format!(
        "SELECT c.conname, t.relname, a.attname, r.relname, c.confdeltype::text FROM pg_constraint c \
         JOIN pg_class t ON t.oid = c.conrelid JOIN pg_class r ON r.oid = c.confrelid \
         JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
         WHERE c.contype = 'f' AND t.relnamespace = {SCHEMA_OID} AND c.conname LIKE 'trefoil!_reference!_%' ESCAPE '!'"
    );
    let reference = |row: Vec<String>| ForeignKey {
        name: row[0].clone(),
        table: row[1].clone(),
        column: row[2].clone(),
        target: row[3].clone(),
        on_delete: match row[4].as_str() {
            "c" => DeleteAction::Cascade,
            "n" => DeleteAction::SetNull,
            _ => DeleteAction::Refuse,
        },
    };
    Ok(host.query_texts(&sql, &[])?.into_iter().map(reference).collect())
}

fn required_references(model: &StoredModel) -> Vec<ForeignKey> {
    let of = |table: &str, column: &str, to: &str, on_delete| ForeignKey {
        name: shorten_name(&format!("trefoil_reference_{column}")),
        table: table.to_owned(),
        column: column.to_owned(),
        target: model.table(to).map_or_else(String::new, |to| to.table.clone()),
        on_delete,
    };
    let columns =
        model.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    let wanted = columns.filter_map(|(table, column)| match &column.form {
        StoredType::Reference { to, on_delete } => Some(of(&table.table, &column.column, to, *on_delete)),
        StoredType::Scalar(_) | StoredType::Enum(_) | StoredType::Embedded(_) | StoredType::List { .. } => {
            None
        }
    });
    wanted.collect()
}

impl ForeignKey {
    fn is_same_key(&self, other: &ForeignKey) -> bool {
        (&self.table, &self.column, &self.target, self.on_delete)
            == (&other.table, &other.column, &other.target, other.on_delete)
    }
}
