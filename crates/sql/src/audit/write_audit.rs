//! [`WriteAudit`]: temporary triggers of the connection that writes to SQLite, which ask a function whose work it is.
//!
//! Other programs that write to the file have none of them, and are in no entry.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ToSqlOutput;

use trefoil_engine::{AuditOrigin, StoreJob};

use crate::audit::WriteAction;
use crate::migrate::create_statements::{quote_name, quote_text};
use crate::migrate::stored_model::{StoredKey, StoredModel, StoredTable};

/// The function that the triggers ask, with the number of what they ask for.
const ASKING_FUNCTION: &str = "trefoil_asking";

const AT: &str = "trefoil_asking(0)";
const NEXT_NUMBER: &str = "trefoil_asking(1)";
const ACTOR: &str = "trefoil_asking(2)";
const ADDRESS: &str = "trefoil_asking(3)";
const REQUEST: &str = "trefoil_asking(4)";
const LAST_NUMBER: &str = "trefoil_asking(5)";

const TRIGGER_PREFIX: &str = "trefoil_audit.";

/// Notes what the writer writes.
#[derive(Default)]
pub struct WriteAudit {
    asking: Arc<Mutex<Option<AskingRequest>>>,
    triggers: Mutex<AuditTriggers>,
}

/// Whose work it is that the writer does now.
struct AskingRequest {
    at: i64,
    /// Of the last entry.
    number: i64,
    actor: Option<String>,
    address: Option<String>,
    request: Option<String>,
}

#[derive(Default)]
struct AuditTriggers {
    /// The hash of the model whose triggers the connection has.
    model: Option<u64>,
    /// The time of the last request: each has its own.
    last: i64,
    /// Tells apart what other processes write at the same time.
    first_number: Option<i64>,
}

/// Ends with the work.
pub struct AuditScope<'a>(&'a WriteAudit);

impl Drop for AuditScope<'_> {
    fn drop(&mut self) {
        *self.0.asking.lock() = None;
    }
}

impl WriteAudit {
    /// Prepares a new connection.
    pub fn register(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.triggers.lock().model = None;
        let asking = self.asking.clone();
        connection.create_scalar_function(ASKING_FUNCTION, 1, FunctionFlags::SQLITE_UTF8, move |context| {
            let mut asking = asking.lock();
            let Some(asking) = asking.as_mut() else { return Ok(None) };
            let text = |text: &Option<String>| text.clone().map(|text| ToSqlOutput::Owned(text.into()));
            Ok(match context.get::<i64>(0)? {
                0 => Some(asking.at.into()),
                1 => {
                    asking.number += 1;
                    Some(asking.number.into())
                }
                2 => text(&asking.actor),
                3 => text(&asking.address),
                4 => text(&asking.request),
                _ => Some(asking.number.into()),
            })
        })
    }

    /// Whose work it is until the scope ends; nobody's if the audit does not note it.
    pub fn begin(&self, origin: Option<&AuditOrigin>) -> AuditScope<'_> {
        if let Some(origin) = origin {
            let (at, number) = self.triggers.lock().next_position();
            let (actor, address) = (origin.actor(), origin.address());
            let request = origin.request().map(str::to_owned);
            *self.asking.lock() = Some(AskingRequest { at, number, actor, address, request });
        }
        AuditScope(self)
    }

    /// Makes the triggers for a job, if the connection does not have them.
    pub fn prepare(&self, connection: &Connection, job: &StoreJob) -> rusqlite::Result<()> {
        if job.origin.is_none() || self.triggers.lock().model == Some(job.model.hash) {
            return Ok(());
        }
        self.drop_triggers(connection)?;
        for table in &StoredModel::from_model(&job.model, &[]).tables {
            connection.execute_batch(&triggers(table))?;
        }
        // Those that are made in a transaction go if it is rolled back.
        if connection.is_autocommit() {
            self.triggers.lock().model = Some(job.model.hash);
        }
        Ok(())
    }

    /// Drops the triggers, before a change of the tables.
    pub fn drop_triggers(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.triggers.lock().model = None;
        let sql =
            "SELECT name FROM temp.sqlite_schema WHERE type = 'trigger' AND substr(name, 1, length(?1)) = ?1";
        let mut statement = connection.prepare(sql)?;
        let names = statement.query_map([TRIGGER_PREFIX], |row| row.get(0))?;
        for name in names.collect::<rusqlite::Result<Vec<String>>>()? {
            connection.execute_batch(&format!("DROP TRIGGER temp.{}", quote_name(&name)))?;
        }
        Ok(())
    }
}

impl AuditTriggers {
    fn next_position(&mut self) -> (i64, i64) {
        self.last = Timestamp::now().as_microsecond().max(self.last + 1);
        let random = || i64::from(uuid::Uuid::new_v4().as_fields().0 >> 1) << 32;
        (self.last, *self.first_number.get_or_insert_with(random))
    }
}

/// The triggers of one table. An entry that is there already costs no write its success.
///
/// An update that leaves the version as it is, of another record's deletion or links, is followed by the one of the version
/// trigger. The first of them knows the fields, and they are one entry.
fn triggers(table: &StoredTable) -> String {
    let trigger = |purpose: &str, when: &str, entry: &str| {
        let name = quote_name(&format!("{TRIGGER_PREFIX}{}.{purpose}", table.table));
        let on = quote_name(&table.table);
        let (when, event) =
            (when.strip_prefix("UPDATE").map_or("", str::trim), when.split(' ').next().unwrap_or(when));
        let when = if when.is_empty() { String::new() } else { format!(" AND {when}") };
        format!(
            "CREATE TEMP TRIGGER {name} AFTER {event} ON {on} WHEN {AT} IS NOT NULL{when} BEGIN {entry}; END;\n"
        )
    };
    let own_version = "NEW.\"_version\"";
    let update = entry(table, WriteAction::Update, own_version);
    let name = quote_text(&table.name);
    let id = id_text(table, "NEW");
    let once = format!(
        "{update} WHERE NOT EXISTS (SELECT 1 FROM trefoil_audit WHERE at = {AT} AND number = {LAST_NUMBER} \
         AND action = 'update' AND type = {name} AND record = {id} AND version = {own_version})"
    );
    [
        trigger("created", "INSERT", &entry(table, WriteAction::Create, own_version)),
        trigger("updated", "UPDATE NEW.\"_version\" <> OLD.\"_version\"", &once),
        trigger(
            "touched",
            "UPDATE NEW.\"_version\" = OLD.\"_version\"",
            &entry(table, WriteAction::Update, "OLD.\"_version\" + 1"),
        ),
        trigger("deleted", "DELETE", &entry(table, WriteAction::Delete, "OLD.\"_version\"")),
    ]
    .concat()
}

fn entry(table: &StoredTable, action: WriteAction, version: &str) -> String {
    let fields = action.changed_fields(table, |column| format!("NEW.{column} IS NOT OLD.{column}"));
    let (action_name, type_name) = (quote_text(action.name()), quote_text(&table.name));
    let id = id_text(table, action.row());
    format!(
        "INSERT OR IGNORE INTO trefoil_audit (at, number, actor, address, request, action, type, record, version, fields) \
         SELECT {AT}, {NEXT_NUMBER}, {ACTOR}, {ADDRESS}, {REQUEST}, {action_name}, {type_name}, {id}, {version}, {fields}"
    )
}

/// The id as JSON.
fn id_text(table: &StoredTable, row: &str) -> String {
    match table.key {
        StoredKey::Counted => format!("CAST({row}.\"id\" AS TEXT)"),
        StoredKey::Uuid | StoredKey::Text => format!("json_quote({row}.\"id\")"),
    }
}
