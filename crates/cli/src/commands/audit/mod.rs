//! `trefoil audit`: who did what.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};
use serde_json::{Map, Value, json};

use trefoil_config::{DurationSyntax, SettingSyntax};
use trefoil_engine::{AuditEntry, AuditFilter, Engine, ResolverRegistry};
use trefoil_server::StartError;
use trefoil_server::command_store::{self, CommandAccess};
use trefoil_server::load_application::load_application;

use crate::application_argument::{folder_argument, open_app_and_config};
use crate::command_error::CommandError;
use crate::store_arguments::{add_store_flags, block_on};
use crate::terminal_output::{print_note, print_output, text_table};

/// Entries that are read at once, and the most in a table.
const PAGE: usize = 1_000;

pub fn command() -> Command {
    let since = Arg::new("since").long("since").value_name("TIME").value_parser(parse_since).help(
        "Only what was done since: a time such as 2026-11-14T09:30 (UTC), or how long ago, such as 24h",
    );
    let actor = Arg::new("actor")
        .long("actor")
        .value_name("ACTOR")
        .help("Only what this one did: account:7, key:ci, token:…, operator or anonymous");
    let type_name =
        Arg::new("type").long("type").value_name("TYPE").help("Only what was done to records of this type");
    let format = Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(["table", "ndjson"])
        .default_value("table")
        .help("A table of the last 1,000 entries, or all of them, a JSON object a line");
    let command = Command::new("audit")
        .about("Show who did what, the last first: sign-ins, credentials and writes, never values")
        .args([folder_argument(), since, actor, type_name, format]);
    add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    let application = load_application(&app, registry)
        .map_err(|diagnostics| CommandError::Start(StartError::from_diagnostics(&app, &diagnostics)))?;
    if application.model.access.is_none() {
        return Err(CommandError::usage(
            "the application is open: its schema has no @allow and no @account, so it has no audit",
        ));
    }
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let filter = AuditFilter {
        since: matches.get_one::<Timestamp>("since").copied(),
        actor: text("actor"),
        type_name: text("type"),
        ..AuditFilter::default()
    };
    let is_table = text("format").as_deref() == Some("table");
    block_on(async {
        let read = CommandAccess::Read;
        let store =
            command_store::open_command_store(&app, &resolved.config, registry, &application, read).await;
        let engine = store.map_err(CommandError::Start)?.engine;
        if is_table { print_table(&engine, filter).await } else { print_lines(&engine, filter).await }
    })?
}

fn parse_since(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = DurationSyntax::read(text) {
        return before_now(ago).ok_or_else(|| format!("{text:?} ago is before the first year"));
    }
    let local = text.parse::<civil::DateTime>().ok().and_then(|time| time.to_zoned(TimeZone::UTC).ok());
    let time = text.parse::<Timestamp>().ok().or_else(|| local.map(|time| time.timestamp()));
    time.ok_or_else(|| {
        format!("{text:?} is neither a time such as 2026-11-14T09:30 nor a duration such as 24h")
    })
}

fn before_now(ago: Duration) -> Option<Timestamp> {
    Timestamp::now().checked_sub(SignedDuration::try_from(ago).ok()?).ok()
}

async fn read(engine: &Engine, filter: AuditFilter) -> Result<Vec<AuditEntry>, CommandError> {
    let credentials = engine.credentials().map_err(CommandError::failed)?;
    credentials.read_audit(filter, PAGE).await.map_err(CommandError::failed)
}

async fn print_table(engine: &Engine, filter: AuditFilter) -> Result<(), CommandError> {
    let entries = read(engine, filter).await?;
    if entries.is_empty() {
        print_note("there are no such entries");
        return Ok(());
    }
    if entries.len() == PAGE {
        print_note(&format!("the last {PAGE} entries; `--format ndjson` prints all"));
    }
    let head = ["when (UTC)", "who", "did", "to", "fields", "from", "request"].map(str::to_owned);
    let rows = entries.iter().map(table_cells);
    print_output(&text_table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
}

fn table_cells(entry: &AuditEntry) -> [String; 7] {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let record = entry.type_name.as_deref().zip(entry.record_text());
    let mut subject = record.map(|(type_name, id)| format!("{type_name} {id}")).unwrap_or_default();
    if let Some(name) = &entry.name {
        subject = format!("key {name}");
    }
    let version = entry.version.map(|version| format!(" v{version}")).unwrap_or_default();
    let count = entry.count.map(|count| format!(" x{count}")).unwrap_or_default();
    [
        entry.time().strftime("%Y-%m-%d %H:%M:%S").to_string(),
        entry.actor.clone().unwrap_or_else(|| "anonymous".to_owned()),
        format!("{}{count}", entry.action),
        or_dash(format!("{subject}{version}")),
        or_dash(entry.fields.join(",")),
        or_dash(entry.address.clone().unwrap_or_default()),
        or_dash(entry.request.clone().unwrap_or_default()),
    ]
}

async fn print_lines(engine: &Engine, mut filter: AuditFilter) -> Result<(), CommandError> {
    loop {
        let entries = read(engine, filter.clone()).await?;
        let lines: String = entries.iter().map(|entry| format!("{}\n", json_line(entry))).collect();
        print_output(&lines)?;
        match entries.last() {
            Some(last) if entries.len() == PAGE => filter.before = Some(last.position),
            Some(_) | None => return Ok(()),
        }
    }
}

/// The entry without what it does not have.
fn json_line(entry: &AuditEntry) -> Value {
    let mut members = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        members.extend(value.map(|value| (name.to_owned(), value)));
    };
    let text = |text: &Option<String>| text.clone().map(Value::from);
    add("at", Some(json!(entry.time().to_string())));
    add("actor", text(&entry.actor));
    add("action", Some(json!(entry.action)));
    add("type", text(&entry.type_name));
    add("id", entry.record_text().map(Value::from));
    add("version", entry.version.map(Value::from));
    add("fields", (!entry.fields.is_empty()).then(|| json!(entry.fields)));
    add("key", text(&entry.name));
    add("count", entry.count.map(Value::from));
    add("address", text(&entry.address));
    add("request", text(&entry.request));
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations() {
        assert_eq!(parse_since("2026-11-14"), Ok("2026-11-14T00:00:00Z".parse().unwrap()));
        assert_eq!(parse_since("2026-11-14T10:30+01:00"), Ok("2026-11-14T09:30:00Z".parse().unwrap()));
        let hour = Timestamp::now() - parse_since("1h").unwrap();
        assert!((3_590..3_610).contains(&hour.get_seconds()), "{hour}");
        assert!(parse_since("yesterday").unwrap_err().contains("nor a duration"));
    }
}
