//! Reads functions, triggers and foreign keys from PostgreSQL's catalog and brings ours up to date.
//!
//! Objects that are up to date are left alone, so that a start that changes nothing locks nothing.

use crate::migrate::MigrateError;
use crate::migrate::create_statements::{quote_name, quote_text, references_clause};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::postgres::database::PostgresMigration;
use crate::migrate::postgres::indexes;
use crate::migrate::postgres::sql_objects::{SCHEMA_OID, SqlFunction, SqlTrigger, shorten_name};
use crate::migrate::stored_model::{DeleteAction, StoredModel, StoredType};

/// A foreign key of a record's table. Those of link tables never change.
#[derive(Debug, PartialEq)]
struct ForeignKey {
    name: String,
    table: String,
    column: String,
    target: String,
    on_delete: DeleteAction,
}

pub fn relations(database: &PostgresMigration) -> Result<Vec<String>, MigrateError> {
    let sql = format!(
        "SELECT relname FROM pg_class WHERE relnamespace = {SCHEMA_OID} AND relkind IN ('r', 'p', 'v', 'm', 'f') \
         ORDER BY relname"
    );
    Ok(database.query_texts(&sql, &[])?.into_iter().flatten().collect())
}

pub fn find_columns(database: &PostgresMigration, table: &str) -> Result<Vec<String>, MigrateError> {
    let sql = format!(
        "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid \
         WHERE relnamespace = {SCHEMA_OID} AND relname = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    );
    Ok(database.query_texts(&sql, &[table])?.into_iter().flatten().collect())
}

/// The sequence of a table's ids.
pub fn id_sequence(database: &PostgresMigration, table: &str) -> Result<String, MigrateError> {
    let found = database.query_texts("SELECT pg_get_serial_sequence($1, 'id')", &[&quote_name(table)])?;
    let found = found.into_iter().flatten().find(|name| !name.is_empty());
    found.ok_or_else(|| MigrateError::Damaged(format!("the id of the table {table} has no sequence")))
}

/// Descriptions by PostgreSQL of other programs' objects that would be dropped with a column.
pub fn foreign_objects(
    database: &PostgresMigration,
    table: &str,
    column: &str,
    ours: &[String],
) -> Result<Vec<String>, MigrateError> {
    let ours: Vec<String> = ours.iter().map(|name| quote_text(name)).collect();
    let ours = if ours.is_empty() { "''".to_owned() } else { ours.join(", ") };
    let is_obsolete = indexes::is_obsolete_sql("i.relname");
    let sql = format!(
        "SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d \
         JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid \
         JOIN pg_class t ON t.oid = d.refobjid \
         LEFT JOIN pg_class i ON d.classid = 'pg_class'::regclass AND i.oid = d.objid \
         LEFT JOIN pg_constraint c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid \
         WHERE d.refclassid = 'pg_class'::regclass AND d.deptype = 'a' AND t.relnamespace = {SCHEMA_OID} \
         AND t.relname = $1 AND a.attname = $2 AND d.classid <> 'pg_attrdef'::regclass \
         AND coalesce(i.relname::text, '') NOT IN ({ours}) AND NOT coalesce({is_obsolete}, false) \
         AND NOT coalesce(c.contype = 'n' OR c.conname LIKE 'trefoil!_%' ESCAPE '!', false)"
    );
    Ok(database.query_texts(&sql, &[table, column])?.into_iter().flatten().collect())
}

pub fn sync_functions(database: &PostgresMigration, required: &[SqlFunction]) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = {SCHEMA_OID} AND proname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let found = database.query_texts(&sql, &[])?;
    for function in required {
        let body = database.with_schema(&function.body);
        if found.iter().any(|row| row[0] == function.name && row[1] == body) {
            continue;
        }
        let SqlFunction { name, parameters, return_type, language, .. } = function;
        database.execute_batch(&format!(
            "CREATE OR REPLACE FUNCTION {}.{}({parameters}) RETURNS {return_type} LANGUAGE {language} AS $trefoil${body}$trefoil$",
            database.schema,
            quote_name(name)
        ))?;
    }
    Ok(())
}

pub fn drop_functions(database: &PostgresMigration, functions: &[SqlFunction]) -> Result<(), MigrateError> {
    functions.iter().try_for_each(|function| {
        database.execute_batch(&format!(
            "DROP FUNCTION IF EXISTS {}.{}",
            database.schema,
            quote_name(&function.name)
        ))
    })
}

/// Creates and drops triggers. The text of a trigger is kept as its comment for comparison, since PostgreSQL returns
/// definitions reworded.
pub fn sync_triggers(
    database: &PostgresMigration,
    tables: &[&str],
    required: &[SqlTrigger],
) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT c.relname, t.tgname, coalesce(obj_description(t.oid, 'pg_trigger'), '') FROM pg_trigger t \
         JOIN pg_class c ON c.oid = t.tgrelid WHERE c.relnamespace = {SCHEMA_OID} AND NOT t.tgisinternal \
         AND t.tgenabled = ANY ($1) AND t.tgname LIKE 'trefoil!_%' ESCAPE '!'"
    );
    let create_sql = |trigger: &SqlTrigger| {
        let definition =
            database.with_schema(&trigger.definition).replace("{table}", &quote_name(&trigger.table));
        format!("CREATE TRIGGER {} {definition}", quote_name(&trigger.name))
    };
    let enabled = database.query_texts(&sql, &["{O,A}"])?;
    let disabled = database.query_texts(&sql, &["{D,R}"])?;
    let fits = |row: &Vec<String>, trigger: &SqlTrigger| {
        row[0] == trigger.table && row[1] == trigger.name && row[2] == create_sql(trigger)
    };
    let is_current = |row: &Vec<String>| required.iter().any(|trigger| fits(row, trigger));
    let is_on_table = |row: &&Vec<String>| tables.contains(&row[0].as_str());
    for row in enabled.iter().filter(|row| !is_current(row)).chain(&disabled).filter(is_on_table) {
        database.execute_batch(&format!(
            "DROP TRIGGER {} ON {}",
            quote_name(&row[1]),
            quote_name(&row[0])
        ))?;
    }
    for trigger in required.iter().filter(|trigger| !enabled.iter().any(|row| fits(row, trigger))) {
        let (name, table, sql) = (quote_name(&trigger.name), quote_name(&trigger.table), create_sql(trigger));
        database
            .execute_batch(&format!("{sql}; COMMENT ON TRIGGER {name} ON {table} IS {}", quote_text(&sql)))?;
    }
    Ok(())
}

/// Drops foreign keys that the new model does not have: they would block column type changes and dropping tables.
pub fn drop_outdated_references(database: &PostgresMigration, new: &StoredModel) -> Result<(), MigrateError> {
    let required = required_references(new);
    for key in
        find_references(database)?.iter().filter(|key| !required.iter().any(|other| other.is_same_key(key)))
    {
        let (table, name) = (quote_name(&key.table), quote_name(&key.name));
        database.execute_batch(&format!("ALTER TABLE {table} DROP CONSTRAINT {name}"))?;
    }
    Ok(())
}

pub fn sync_references(database: &PostgresMigration, new: &StoredModel) -> Result<(), MigrateError> {
    drop_outdated_references(database, new)?;
    let found = find_references(database)?;
    for key in required_references(new) {
        let (table, name, column) = (quote_name(&key.table), quote_name(&key.name), quote_name(&key.column));
        match found.iter().find(|other| key.is_same_key(other)) {
            Some(other) if other.name == key.name => {}
            Some(other) => {
                let old = quote_name(&other.name);
                database.execute_batch(&format!("ALTER TABLE {table} RENAME CONSTRAINT {old} TO {name}"))?;
            }
            None => {
                let to = new.tables.iter().find(|table| table.table == key.target);
                let to = references_clause(new, to.map_or("", |to| &to.name), key.on_delete);
                database.execute_batch(&format!(
                    "ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}){to}"
                ))?;
            }
        }
    }
    Ok(())
}

/// Makes foreign keys deferrable for imports, whose records come in any order. All other transactions still check them
/// with every statement.
pub fn make_references_deferrable(
    database: &PostgresMigration,
    new: &StoredModel,
) -> Result<(), MigrateError> {
    let sql = format!(
        "SELECT c.conname, t.relname FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid \
         WHERE c.contype = 'f' AND NOT c.condeferrable AND t.relnamespace = {SCHEMA_OID}"
    );
    for row in
        database.query_texts(&sql, &[])?.iter().filter(|row| new.table_names().any(|table| table == row[1]))
    {
        let (name, table) = (quote_name(&row[0]), quote_name(&row[1]));
        database.execute_batch(&format!("ALTER TABLE {table} ALTER CONSTRAINT {name} DEFERRABLE"))?;
    }
    Ok(())
}

fn find_references(database: &PostgresMigration) -> Result<Vec<ForeignKey>, MigrateError> {
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
    Ok(database.query_texts(&sql, &[])?.into_iter().map(reference).collect())
}

fn required_references(model: &StoredModel) -> Vec<ForeignKey> {
    let foreign_key = |table: &str, column: &str, to: &str, on_delete| ForeignKey {
        name: shorten_name(&format!("trefoil_reference_{column}")),
        table: table.to_owned(),
        column: column.to_owned(),
        target: model.table(to).map_or_else(String::new, |to| to.table.clone()),
        on_delete,
    };
    let columns =
        model.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    let keys = columns.filter_map(|(table, column)| match &column.form {
        StoredType::Reference { to, on_delete, .. } => {
            Some(foreign_key(&table.table, &column.column, to, *on_delete))
        }
        StoredType::Scalar(_) | StoredType::Enum(_) | StoredType::Embedded(_) | StoredType::List { .. } => {
            None
        }
    });
    keys.collect()
}

impl ForeignKey {
    fn is_same_key(&self, other: &ForeignKey) -> bool {
        (&self.table, &self.column, &self.target, self.on_delete)
            == (&other.table, &other.column, &other.target, other.on_delete)
    }
}
