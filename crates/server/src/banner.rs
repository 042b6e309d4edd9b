//! What a person sees when the server is up: where to go, what is served, where the data is.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use crate::listen;
use crate::unreadable_tables::UnreadableTables;
use trefoil_application::{App, Origin};
use trefoil_config::{Config, Database, LogFormat};
use trefoil_engine::{Count, Engine, Listing, Operation, Outcome, Selection, Slice};
use trefoil_model::TypeId;
use trefoil_model::error::Result;

/// So long it is counted what there is; a store that is large or busy does not keep the address back.
const PATIENCE: Duration = Duration::from_secs(3);

/// Writes the banner on a terminal, one log line elsewhere.
pub async fn show(
    app: &App,
    config: &Config,
    engine: &Engine,
    addresses: &[SocketAddr],
    unreadable: &UnreadableTables,
) {
    let url = listen::url(addresses);
    let counted = tokio::time::timeout(PATIENCE, counts(engine, unreadable)).await;
    let records = counted.unwrap_or_else(|_| format!("not counted within {PATIENCE:?}"));
    if !std::io::stderr().is_terminal() || config.log_format == LogFormat::Json {
        tracing::info!(application = app.name, %url, records, data = data(config), "listening on {url}");
        return;
    }
    let text = text(app, config, engine, &url, &records);
    // A closed terminal is no reason not to serve.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

fn text(app: &App, config: &Config, engine: &Engine, url: &str, records: &str) -> String {
    let mut text = format!("\n  Trefoil {}   {}\n\n", env!("CARGO_PKG_VERSION"), app.name);
    let ide = if config.graphiql { "   open it in a browser for GraphiQL" } else { "" };
    let schema = match &app.origin {
        Origin::Sample => "built in".to_owned(),
        Origin::Folder(path) => path.display().to_string(),
    };
    let watching = if config.watch { ", watched for changes" } else { "" };
    let types = match engine.model().records.len() {
        1 => "1 record type".to_owned(),
        number => format!("{number} record types"),
    };
    let rows = [
        ("GraphQL", format!("{url}/graphql{ide}")),
        ("Schema", format!("{url}/graphql/schema.graphqls   {schema}, {types}{watching}")),
        ("Records", records.to_owned()),
        ("Data", data(config)),
        ("Health", format!("{url}/health/ready   {url}/metrics")),
    ];
    let declared = [
        ("Lists", paths(app.manifest.lists.iter().map(|list| &list.path))),
        ("Texts", paths(app.manifest.texts.iter().map(|text| &text.path))),
    ];
    let declared = declared.into_iter().filter(|(_, paths)| !paths.is_empty());
    for (label, value) in rows.into_iter().chain(declared) {
        let _ = writeln!(text, "  {label:<9}{value}");
    }
    text + "\n  Ctrl-C stops.\n\n"
}

/// `/items, /samples`.
fn paths<'a>(declared: impl Iterator<Item = &'a String>) -> String {
    let mut paths: Vec<&str> = declared.map(String::as_str).collect();
    paths.dedup();
    paths.join(", ")
}

fn data(config: &Config) -> String {
    match &config.database {
        Database::Memory => "in memory, gone when the server stops".to_owned(),
        Database::Embedded => format!("{} (SQLite)", config.data.join("trefoil.db").display()),
        Database::Postgres(url) => url.to_string(),
    }
}

/// `users 5, products 12`.
async fn counts(engine: &Engine, unreadable: &UnreadableTables) -> String {
    let mut words = Vec::new();
    for (position, record) in engine.model().records.iter().enumerate() {
        match count(engine, TypeId(position)).await {
            Ok(Some(count)) => words.push(format!("{} {count}", record.path)),
            Ok(None) => {}
            Err(error) => {
                unreadable.note(&record.path, &error);
                words.push(format!("{} cannot be read", record.path));
            }
        }
    }
    words.join(", ")
}

async fn count(engine: &Engine, record: TypeId) -> Result<Option<u64>> {
    let listing =
        Listing { count: Count::Exact, slice: Slice::First { first: 1, after: None }, ..Listing::default() };
    let selection = std::sync::Arc::new(Selection::default());
    let operation = Operation::List { record, listing, selection: selection.clone() };
    Ok(match engine.collect(operation, selection).await?.outcome.transpose()? {
        Some(Outcome::Listed { total, .. }) => total,
        Some(
            Outcome::Found
            | Outcome::Missing
            | Outcome::Created { .. }
            | Outcome::Updated { .. }
            | Outcome::Deleted { .. }
            | Outcome::Plain { .. },
        )
        | None => None,
    })
}
