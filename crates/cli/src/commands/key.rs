//! `trefoil key`: makes, lists and revokes API keys.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::{SignedDuration, Timestamp};

use trefoil_config::{DurationSyntax, IpNetwork, NetworkListSyntax, SettingSyntax};
use trefoil_credentials::{AccountReader, SecretToken, TokenKind};
use trefoil_engine::{ApiKeyRecord, AuditAction, Engine, KeyAccount, ResolverRegistry};
use trefoil_model::RecordId;
use trefoil_model::access::AccessModel;
use trefoil_model::naming::names::nearest_name;
use trefoil_server::StartError;
use trefoil_server::command_store::{self, CommandAccess, CommandStore};
use trefoil_server::load_application::load_application;

use crate::application_argument::{folder_argument, open_app_and_config};
use crate::command_error::CommandError;
use crate::store_arguments::{add_store_flags, block_on};
use crate::terminal_output::{print_note, print_output, text_table};

/// The longest name of a key.
const MAX_NAME: usize = 64;

pub fn command() -> Command {
    let name = |help| Arg::new("name").value_name("NAME").required(true).help(help);
    let role = Arg::new("role")
        .long("role")
        .value_name("ROLE")
        .action(ArgAction::Append)
        .value_delimiter(',')
        .help("A role that the key has; may be given several times");
    let account = Arg::new("as")
        .long("as")
        .value_name("LOGIN")
        .help("The account that the key acts as: `me` in rules. Without it the key has roles alone");
    let expires = Arg::new("expires")
        .long("expires")
        .value_name("TIME")
        .value_parser(|text: &str| DurationSyntax::read(text))
        .help("How long the key is good, such as 90d [until it is revoked]");
    let from = Arg::new("from")
        .long("from")
        .value_name("NETWORKS")
        .value_parser(|text: &str| NetworkListSyntax::read(text).map(NetworkSet))
        .help("Networks that the key may be used from, such as 10.0.0.0/8,::1 [any]");
    let add = Command::new("add").about("Make a key and print it, this once").args([
        name("What the key is called in lists and logs"),
        folder_argument(),
        role,
        account,
        expires,
        from,
    ]);
    let list = Command::new("list").about("Show all keys, never the secret").arg(folder_argument());
    let revoke = Command::new("revoke")
        .about("End a key, at once and on every node")
        .args([name("The key's name"), folder_argument()]);
    Command::new("key")
        .about("API keys: credentials of programs, sent as `Authorization: Bearer tfk_…`")
        .subcommands([add, list, revoke].map(add_store_flags))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
}

/// The networks of `--from`.
#[derive(Debug, Clone)]
struct NetworkSet(Vec<IpNetwork>);

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some(("add", matches)) => add(matches, registry),
        Some(("list", matches)) => list(matches, registry),
        Some(("revoke", matches)) => revoke(matches, registry),
        Some((other, _)) => unreachable!("clap knows no subcommand {other}"),
        None => unreachable!("clap requires a subcommand"),
    }
}

fn add(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let name = key_name(matches)?;
    with_store(matches, registry, CommandAccess::Write, async |store| {
        let engine = &store.engine;
        let Some(access) = &engine.model().access else {
            return Err(CommandError::usage(
                "the application is open: its schema has no @allow and no @account, so nobody is asked for a key",
            ));
        };
        let roles = known_roles(matches, access)?;
        let account = key_account(matches, engine).await?;
        let created = Timestamp::now();
        let expires = matches.get_one::<Duration>("expires").map(|lifetime| end_of(created, *lifetime));
        let networks = matches.get_one::<NetworkSet>("from").map(|set| set.0.as_slice()).unwrap_or_default();
        let networks = networks.iter().map(|network| format!("{}/{}", network.address, network.prefix));
        let record = ApiKeyRecord {
            name: name.clone(),
            roles,
            account,
            expires: expires.transpose()?,
            networks: networks.collect(),
            created,
            last_used: None,
        };
        let key = SecretToken::generate(TokenKind::ApiKey).map_err(CommandError::failed)?;
        let credentials = engine.credentials().map_err(CommandError::failed)?;
        let note = store.key_note(AuditAction::AddKey, &name).map(|note| match &record.account {
            Some(account) => note.about(account),
            None => note,
        });
        let hash = key.hash();
        if !credentials.add_api_key(&hash, &record, note).await.map_err(CommandError::failed)? {
            return Err(CommandError::usage(format!(
                "there is a key `{name}` already; revoke it first, or choose another name"
            )));
        }
        print_output(&format!("{}\n", key.reveal()))?;
        print_note(&format!("made the key `{name}`; it is not shown again"));
        Ok(())
    })
}

fn list(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    with_store(matches, registry, CommandAccess::Read, async |store| {
        let credentials = store.engine.credentials().map_err(CommandError::failed)?;
        let keys = credentials.list_api_keys().await.map_err(CommandError::failed)?;
        if keys.is_empty() {
            print_note("there are no keys; make one with `trefoil key add NAME --role ROLE`");
            return Ok(());
        }
        let head = ["name", "roles", "acts as", "expires", "from", "made", "last used"].map(str::to_owned);
        let rows = keys.iter().map(|key| key_cells(key, Timestamp::now()));
        print_output(&text_table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
    })
}

fn revoke(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let name = matches.get_one::<String>("name").cloned().unwrap_or_default();
    with_store(matches, registry, CommandAccess::Write, async |store| {
        let credentials = store.engine.credentials().map_err(CommandError::failed)?;
        let note = store.key_note(AuditAction::RevokeKey, &name);
        if credentials.revoke_api_key(&name, note).await.map_err(CommandError::failed)? {
            print_note(&format!("revoked the key `{name}`"));
            return Ok(());
        }
        let keys = credentials.list_api_keys().await.map_err(CommandError::failed)?;
        Err(unknown_key(&name, &keys))
    })
}

pub(crate) fn unknown_key(name: &str, keys: &[ApiKeyRecord]) -> CommandError {
    let nearest = nearest_name(name, keys.iter().map(|key| key.name.as_str()));
    let help = nearest.map(|nearest| format!("; did you mean `{nearest}`?"));
    CommandError::usage(format!("there is no key `{name}`{}", help.unwrap_or_default()))
}

/// Runs `work` with the application's store, also while a server uses it.
fn with_store(
    matches: &ArgMatches,
    registry: &ResolverRegistry,
    access: CommandAccess,
    work: impl AsyncFnOnce(CommandStore) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    let application = load_application(&app, registry)
        .map_err(|diagnostics| CommandError::Start(StartError::from_diagnostics(&app, &diagnostics)))?;
    block_on(async {
        let store =
            command_store::open_command_store(&app, &resolved.config, registry, &application, access).await;
        work(store.map_err(CommandError::Start)?).await
    })?
}

/// A name that is safe in logs and on command lines.
fn key_name(matches: &ArgMatches) -> Result<String, CommandError> {
    let name = matches.get_one::<String>("name").cloned().unwrap_or_default();
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.len() > MAX_NAME
        || !name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || !name.chars().all(is_safe)
    {
        return Err(CommandError::usage(format!(
            "{name:?} cannot be the name of a key: use up to {MAX_NAME} letters, digits, `-`, `_` and `.`"
        )));
    }
    Ok(name)
}

pub(crate) fn known_roles(matches: &ArgMatches, access: &AccessModel) -> Result<Vec<String>, CommandError> {
    let mut roles: Vec<String> =
        matches.get_many::<String>("role").map(|roles| roles.cloned().collect()).unwrap_or_default();
    let known = || access.roles.iter().map(String::as_str);
    let unknown = |role: &&String| !access.roles.contains(role);
    let mistakes: Vec<String> = roles
        .iter()
        .filter(unknown)
        .map(|role| {
            let help = match (nearest_name(role, known()), access.roles.as_slice()) {
                (Some(nearest), _) => format!("did you mean `{nearest}`?"),
                (None, []) => "it has none".to_owned(),
                (None, roles) => format!("it has {}", roles.join(", ")),
            };
            format!("the schema has no role `{role}`; {help}")
        })
        .collect();
    if !mistakes.is_empty() {
        return Err(CommandError::Usage(mistakes));
    }
    roles.sort();
    roles.dedup();
    Ok(roles)
}

async fn key_account(matches: &ArgMatches, engine: &Engine) -> Result<Option<KeyAccount>, CommandError> {
    let Some(login) = matches.get_one::<String>("as") else { return Ok(None) };
    let (reader, id) = find_account(login, engine).await?;
    Ok(Some(KeyAccount { type_name: reader.type_name().to_owned(), id }))
}

/// The account of `--as`.
pub(crate) async fn find_account(
    login: &str,
    engine: &Engine,
) -> Result<(AccountReader, RecordId), CommandError> {
    let reader = AccountReader::new(engine, &[]).ok_or_else(|| {
        CommandError::usage("--as: no type of the schema has @account, so there are no accounts")
    })?;
    let id = reader.find_login(login).await.map_err(CommandError::failed)?;
    let id = id.ok_or_else(|| CommandError::usage(format!("--as: there is no account {login:?}")))?;
    Ok((reader, id))
}

fn end_of(created: Timestamp, lifetime: Duration) -> Result<Timestamp, CommandError> {
    let lifetime = SignedDuration::try_from(lifetime).ok();
    let end = lifetime.and_then(|lifetime| created.checked_add(lifetime).ok());
    end.ok_or_else(|| CommandError::usage("--expires: that is beyond the year 9999"))
}

fn key_cells(key: &ApiKeyRecord, now: Timestamp) -> [String; 7] {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let expires = key.expires.map(|expires| {
        let day = expires.strftime("%Y-%m-%d").to_string();
        if expires <= now { format!("{day} (expired)") } else { day }
    });
    let account = key.account.as_ref().map(|account| format!("{} {}", account.type_name, account.id));
    [
        key.name.clone(),
        or_dash(key.roles.join(",")),
        or_dash(account.unwrap_or_default()),
        or_dash(expires.unwrap_or_default()),
        or_dash(key.networks.join(",")),
        key.created.strftime("%Y-%m-%d").to_string(),
        key.last_used.map_or_else(|| "never".to_owned(), |day| day.to_string()),
    ]
}
