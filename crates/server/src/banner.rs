//! The banner at the start: where to go, what is served, where the data is.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use trefoil_application::{App, AppOrigin};
use trefoil_config::{Config, DatabaseLocation, LogFormat};
use trefoil_engine::{CountMode, Engine, ListSlice, Listing, Operation, Outcome, PreparedSelection};
use trefoil_model::RecordTypeId;
use trefoil_model::error::Result;

use crate::accounts::application_accounts::ApplicationAccounts;
use crate::listen;
use crate::unreadable_tables::UnreadableTables;

/// The time limit for counting records, so that a large or busy store does not delay the address.
const COUNT_TIMEOUT: Duration = Duration::from_secs(3);

/// Writes the banner on a terminal, one log line elsewhere.
pub async fn show_banner(
    app: &App,
    config: &Config,
    engine: &Engine,
    addresses: &[SocketAddr],
    unreadable: &UnreadableTables,
    accounts: Option<&ApplicationAccounts>,
) {
    let url = listen::server_url(addresses, config.is_encrypted());
    let access = access_text(engine);
    let first_sign_in = match accounts {
        Some(accounts) => first_sign_in(accounts, &url).await,
        None => None,
    };
    if let Some(address) = addresses.iter().find(|address| listen::is_reachable(&[**address]))
        && access.is_none()
    {
        tracing::warn!(
            "everybody who reaches {address} may read and change everything: no @allow, no @account"
        );
    }
    let count = tokio::time::timeout(COUNT_TIMEOUT, count_all_records(engine, unreadable)).await;
    let records = count.unwrap_or_else(|_| format!("not counted within {COUNT_TIMEOUT:?}"));
    if !std::io::stderr().is_terminal() || config.log_format == LogFormat::Json {
        if let Some(access) = &access {
            tracing::info!("access: {access}");
        }
        if let Some(text) = &first_sign_in {
            tracing::info!("{text}");
        }
        tracing::info!(application = app.name, %url, records, data = data_location(config), "listening on {url}");
        return;
    }
    let text = banner_text(app, config, engine, (&url, &records, access, first_sign_in));
    // A closed terminal does not stop the server.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// `protected (5 types, 3 roles); sign in at /_/sign-in`; `None` if the application is open.
fn access_text(engine: &Engine) -> Option<String> {
    let access = engine.model().access.as_ref()?;
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    let (types, roles) = (engine.model().records.len(), access.roles.len());
    let sign_in = if access.account.is_some() { "; sign in at /_/sign-in" } else { "" };
    Some(format!("protected ({}, {}){sign_in}", counted(types, "type"), counted(roles, "role")))
}

/// Where nobody can sign in yet: how that is changed.
async fn first_sign_in(accounts: &ApplicationAccounts, url: &str) -> Option<String> {
    let service = &accounts.service;
    match service.make_first_link().await {
        Ok(Some(link)) => {
            let link = link.reveal();
            Some(format!(
                "there is no account yet; make the first one within an hour at {url}/_/link?token={link}"
            ))
        }
        Ok(None) if accounts.account.has_sign_up || !accounts.providers.is_empty() => None,
        Ok(None) => match service.has_passwords().await {
            Ok(false) => {
                Some("nobody can sign in yet; make a link with `trefoil user link LOGIN`".to_owned())
            }
            Ok(true) | Err(_) => None,
        },
        Err(error) => {
            tracing::warn!(%error, "cannot make a link for the first account");
            None
        }
    }
}

fn banner_text(
    app: &App,
    config: &Config,
    engine: &Engine,
    (url, records, access, first_sign_in): (&str, &str, Option<String>, Option<String>),
) -> String {
    let mut text = format!("\n  Trefoil {}   {}\n\n", env!("CARGO_PKG_VERSION"), app.name);
    let ide = if config.graphiql { "   open it in a browser for GraphiQL" } else { "" };
    let schema = match &app.origin {
        AppOrigin::Sample => "built in".to_owned(),
        AppOrigin::Folder(path) => path.display().to_string(),
    };
    let watching = if config.watch { ", reloaded when changed" } else { "" };
    let types = match engine.model().records.len() {
        1 => "1 record type".to_owned(),
        number => format!("{number} record types"),
    };
    let rows = [
        ("Pages", format!("{url}/   open it in a browser")),
        ("GraphQL", format!("{url}/graphql{ide}")),
        ("Docs", format!("{url}/docs   the REST API, to try out")),
        ("Schema", format!("{url}/graphql/schema.graphqls   {schema}, {types}{watching}")),
        ("Access", access.unwrap_or_default()),
        ("", first_sign_in.unwrap_or_default()),
        ("Records", records.to_owned()),
        ("Data", data_location(config)),
        ("Health", format!("{url}/health/ready   {url}/metrics")),
    ];
    let manifest_rows = [
        ("Lists", join_paths(app.manifest.plain_lists.iter().map(|list| &list.path))),
        ("Texts", join_paths(app.manifest.text_endpoints.iter().map(|text| &text.path))),
    ];
    let rows = rows.into_iter().chain(manifest_rows);
    for (label, value) in rows.filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "  {label:<9}{value}");
    }
    text + "\n  Press Ctrl-C to stop.\n\n"
}

/// Joins paths: `/items, /samples`.
fn join_paths<'a>(all_paths: impl Iterator<Item = &'a String>) -> String {
    let mut paths: Vec<&str> = all_paths.map(String::as_str).collect();
    paths.dedup();
    paths.join(", ")
}

fn data_location(config: &Config) -> String {
    match &config.database {
        DatabaseLocation::Memory => "in memory, lost when the server stops".to_owned(),
        DatabaseLocation::Embedded => format!("{} (SQLite)", config.data.join("trefoil.db").display()),
        DatabaseLocation::Postgres(url) => url.to_string(),
    }
}

/// The number of records of each type: `users 5, products 12`.
async fn count_all_records(engine: &Engine, unreadable: &UnreadableTables) -> String {
    let mut counts = Vec::new();
    for (position, record) in engine.model().records.iter().enumerate() {
        match count_records(engine, RecordTypeId(position)).await {
            Ok(Some(count)) => counts.push(format!("{} {count}", record.path)),
            Ok(None) => {}
            Err(error) => {
                unreadable.note(&record.path, &error);
                counts.push(format!("{} cannot be read", record.path));
            }
        }
    }
    counts.join(", ")
}

async fn count_records(engine: &Engine, record: RecordTypeId) -> Result<Option<u64>> {
    let listing = Listing {
        count: CountMode::Exact,
        slice: ListSlice::First { first: 1, after: None },
        ..Listing::default()
    };
    let selection = Arc::<PreparedSelection>::default();
    let operation = Operation::List { record, listing, selection: selection.clone() };
    Ok(match engine.collect(operation, selection).await?.outcome.transpose()? {
        Some(Outcome::Listed { total, .. }) => total,
        Some(
            Outcome::Found
            | Outcome::NotFound
            | Outcome::OutOfSight(_)
            | Outcome::Created { .. }
            | Outcome::Updated { .. }
            | Outcome::Deleted { .. }
            | Outcome::ChangedMany { .. }
            | Outcome::PlainList { .. },
        )
        | None => None,
    })
}
