//! `trefoil user`: makes accounts and links for passwords, and ends sessions.

use std::io::Read as _;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::Timestamp;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_credentials::{AccountRefusal, AccountService, NewAccountMaker, SecretToken, SignInState};
use trefoil_engine::{Engine, ListSlice, Listing, ResolverRegistry};
use trefoil_model::error::{Error, PathSegment, Violation};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::values::csv_cell::{DecimalPoint, parse_cell};
use trefoil_model::{RecordId, Value};
use trefoil_server::StartError;
use trefoil_server::command_store::{self, CommandAccess};
use trefoil_server::load_application::load_application;

use crate::application_argument::{folder_argument, open_app_and_config};
use crate::command_error::CommandError;
use crate::store_arguments::{add_store_flags, block_on};
use crate::terminal_output::{print_note, print_output, text_table};

/// The most accounts that are listed.
const MAX_LISTED: i64 = 1_000;

pub fn command() -> Command {
    let login = || Arg::new("login").value_name("LOGIN").help("What the account signs in with");
    let set = Arg::new("set")
        .long("set")
        .value_name("FIELD=VALUE")
        .action(ArgAction::Append)
        .help("A field of the account, such as role=ADMIN; may be given several times");
    let stdin = Arg::new("password-stdin")
        .long("password-stdin")
        .action(ArgAction::SetTrue)
        .help("Read the password from standard input instead of printing a link that sets it");
    let add = Command::new("add")
        .about("Make an account, and print a link that sets its password, once")
        .args([login().required(true), folder_argument(), set, stdin]);
    let link = Command::new("link")
        .about("Print a link for a new password of an account; the one before is not good any more")
        .args([login().required(true), folder_argument()]);
    let list = Command::new("list").about("Show the accounts").arg(folder_argument());
    let sessions = Command::new("sessions")
        .about("Show where an account is signed in")
        .args([login().required(true), folder_argument()]);
    let all = Arg::new("all").long("all").action(ArgAction::SetTrue).help("End the sessions of all accounts");
    let end = Command::new("end").about("End all sessions of an account, at once and on every node").args([
        login().required_unless_present("all"),
        folder_argument(),
        all,
    ]);
    Command::new("user")
        .about("Accounts: people who sign in")
        .subcommands([add, link, list, sessions, end].map(add_store_flags))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some(("add", matches)) => add(matches, registry),
        Some(("link", matches)) => link(matches, registry),
        Some(("list", matches)) => list(matches, registry),
        Some(("sessions", matches)) => sessions(matches, registry),
        Some(("end", matches)) => end(matches, registry),
        Some((other, _)) => unreachable!("clap knows no subcommand {other}"),
        None => unreachable!("clap requires a subcommand"),
    }
}

/// The accounts of an application, for one command.
struct CommandAccounts {
    engine: Engine,
    service: AccountService,
    config: Config,
}

/// Runs `work` with the application's accounts, also while a server uses their store.
fn with_accounts(
    matches: &ArgMatches,
    registry: &ResolverRegistry,
    access: CommandAccess,
    work: impl AsyncFnOnce(CommandAccounts) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    let application = load_application(&app, registry)
        .map_err(|diagnostics| CommandError::Start(StartError::from_diagnostics(&app, &diagnostics)))?;
    block_on(async {
        let store =
            command_store::open_command_store(&app, &resolved.config, registry, &application, access).await;
        let store = store.map_err(CommandError::Start)?;
        let service = service_of(&app, &resolved.config, &store.engine)?;
        work(CommandAccounts { engine: store.engine.clone(), service, config: resolved.config.clone() }).await
    })?
}

fn service_of(app: &App, config: &Config, engine: &Engine) -> Result<AccountService, CommandError> {
    let state = SignInState::new(&config.accounts).map_err(CommandError::failed)?;
    AccountService::new(engine, &config.accounts, &app.name, Arc::new(state)).ok_or_else(|| {
        CommandError::usage("no type of the schema has @account, so there are no accounts to sign in with")
    })
}

fn add(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let login = login_of(matches);
    let password = match matches.get_flag("password-stdin") {
        true => Some(read_password()?),
        false => None,
    };
    with_accounts(matches, registry, CommandAccess::Write, async |accounts| {
        let fields = account_fields(&accounts, &login, matches)?;
        if let Some(password) = password {
            let passwords = (&*password, &*password);
            let (engine, maker) = (&accounts.engine, NewAccountMaker::Operator);
            let made = accounts.service.create_account(engine, maker, fields, passwords).await;
            made.map_err(refused)?;
            print_note(&format!("made the account {login}; it signs in at /_/sign-in"));
            return Ok(());
        }
        let made = accounts.service.create_with_link(&accounts.engine, fields).await.map_err(refused)?;
        print_note(&format!("made the account {login}"));
        print_link(&accounts, &made)
    })
}

fn link(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    with_accounts(matches, registry, CommandAccess::Write, async |accounts| {
        let login = login_of(matches);
        let id = find(&accounts, &login).await?;
        if accounts.service.find_usable(&id).await.map_err(failed)?.is_none() {
            let detail = format!("{login} cannot sign in: `if` of @account does not hold for it");
            return Err(CommandError::usage(detail));
        }
        print_link(&accounts, &accounts.service.make_link(&id).await.map_err(failed)?)
    })
}

fn print_link(accounts: &CommandAccounts, token: &SecretToken) -> Result<(), CommandError> {
    print_output(&format!("{}\n", link_address(&accounts.config, token)))?;
    print_note("the link sets the password, once; put another host in it where the server is reached by one");
    Ok(())
}

/// The link at the address that the settings name.
fn link_address(config: &Config, token: &SecretToken) -> String {
    let scheme = if config.is_encrypted() { "https" } else { "http" };
    let is_name = |host: &&str| !host.is_empty() && !["0.0.0.0", "::", "[::]"].contains(host);
    let host = config.host.split(',').map(str::trim).find(is_name).unwrap_or("localhost");
    format!("{scheme}://{host}:{}/_/link?token={}", config.port, token.reveal())
}

fn list(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    with_accounts(matches, registry, CommandAccess::Read, async |accounts| {
        let reader = accounts.service.reader();
        let listing =
            Listing { slice: ListSlice::Range { offset: 0, limit: Some(MAX_LISTED) }, ..Listing::default() };
        let found = accounts.engine.list(reader.type_name(), listing).await.map_err(failed)?;
        if found.is_empty() {
            print_note("there is no account; make one with `trefoil user add LOGIN`");
            return Ok(());
        }
        let mut rows = vec![["id", "login", "roles", "password", "sessions"].map(str::to_owned)];
        for fields in &found {
            if let Some(id) = accounts.service.id_in(fields) {
                rows.push(account_row(&accounts, &id, fields).await.map_err(failed)?);
            }
        }
        if found.len() as i64 == MAX_LISTED {
            print_note(&format!("the first {MAX_LISTED} accounts"));
        }
        print_output(&text_table(&rows))
    })
}

async fn account_row(
    accounts: &CommandAccounts,
    id: &RecordId,
    fields: &Value,
) -> Result<[String; 5], Error> {
    let service = &accounts.service;
    let usable = service.find_usable(id).await?;
    let (login, roles) = match &usable {
        Some(account) => (account.login.clone(), account.roles.join(",")),
        None => (format!("{} (cannot sign in)", login_in(accounts, fields)), String::new()),
    };
    let password = if service.has_password(id).await? { "yes" } else { "no" };
    let sessions = service.sessions(id, None).await?.len();
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    Ok([id.to_string(), or_dash(login), or_dash(roles), password.to_owned(), sessions.to_string()])
}

/// The login in the fields of an account, whether or not it can be used.
fn login_in<'f>(accounts: &CommandAccounts, fields: &'f Value) -> &'f str {
    let reader = accounts.service.reader();
    let name = &accounts.engine.model().record(reader.record()).field(reader.login()).name;
    let members = if let Value::Object(members) = fields { members.as_slice() } else { &[] };
    members.iter().find(|(own, _)| own == name).and_then(|(_, value)| value.as_str()).unwrap_or_default()
}

fn sessions(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    with_accounts(matches, registry, CommandAccess::Read, async |accounts| {
        let id = find(&accounts, &login_of(matches)).await?;
        let found = accounts.service.sessions(&id, None).await.map_err(failed)?;
        if found.is_empty() {
            print_note("it is not signed in anywhere");
            return Ok(());
        }
        let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M UTC").to_string();
        let head = ["since", "last seen", "until", "from", "by"].map(str::to_owned);
        let rows = found.into_iter().map(|listed| {
            let session = listed.session;
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            [
                time(session.created),
                time(session.seen),
                time(session.expires),
                or_dash(session.address),
                or_dash(session.browser),
            ]
        });
        print_output(&text_table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
    })
}

fn end(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let is_all = matches.get_flag("all");
    if is_all && matches.contains_id("login") && matches.contains_id("folder") {
        return Err(CommandError::usage(
            "--all ends the sessions of everybody: leave out the login, or --all",
        ));
    }
    with_accounts(matches, registry, CommandAccess::Write, async |accounts| {
        if is_all {
            accounts.service.end_all_sessions().await.map_err(failed)?;
            print_note("ended the sessions of all accounts");
            return Ok(());
        }
        let login = login_of(matches);
        let id = find(&accounts, &login).await?;
        accounts.service.end_sessions(&id, None).await.map_err(failed)?;
        print_note(&format!("ended the sessions of {login}"));
        Ok(())
    })
}

fn login_of(matches: &ArgMatches) -> String {
    matches.get_one::<String>("login").cloned().unwrap_or_default()
}

async fn find(accounts: &CommandAccounts, login: &str) -> Result<RecordId, CommandError> {
    let found = accounts.service.reader().find_login(login).await.map_err(failed)?;
    found.ok_or_else(|| CommandError::usage(format!("there is no account {login:?}")))
}

/// The fields of a new account: its login and what `--set` says.
fn account_fields(
    accounts: &CommandAccounts,
    login: &str,
    matches: &ArgMatches,
) -> Result<Value, CommandError> {
    let reader = accounts.service.reader();
    let record = accounts.engine.model().record(reader.record());
    let mut fields = vec![(record.field(reader.login()).input_name.clone(), Value::from(login))];
    let mut mistakes = Vec::new();
    for text in matches.get_many::<String>("set").into_iter().flatten() {
        let Some((name, value)) = text.split_once('=') else {
            mistakes.push(format!("--set {text:?} is not FIELD=VALUE"));
            continue;
        };
        let names = || record.fields.iter().filter(|field| field.is_writable());
        match names().find(|field| field.input_name == name || field.name == name) {
            Some(field) => match parse_cell(field, value, DecimalPoint::Dot) {
                Ok(value) => fields.push((field.input_name.clone(), value)),
                Err(mistake) => mistakes.push(format!("--set {name}: {mistake}")),
            },
            None => {
                let nearest = nearest_name(name, names().map(|field| field.input_name.as_str()));
                let help = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
                mistakes.push(format!("--set: {} has no field `{name}`{help}", record.name));
            }
        }
    }
    if mistakes.is_empty() { Ok(Value::Object(fields)) } else { Err(CommandError::Usage(mistakes)) }
}

/// The first line of standard input.
fn read_password() -> Result<String, CommandError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(CommandError::failed)?;
    let line = text.split('\n').next().unwrap_or_default();
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn failed(error: Error) -> CommandError {
    match error.violations() {
        [] => CommandError::failed(error),
        violations => CommandError::Usage(violations.iter().map(violation_line).collect()),
    }
}

/// `email: is taken`.
fn violation_line(violation: &Violation) -> String {
    let field = violation.path.first().and_then(|segment| match segment {
        PathSegment::Field(name) => Some(format!("{name}: ")),
        PathSegment::Index(_) => None,
    });
    format!("{}{}", field.unwrap_or_default(), violation.message)
}

fn refused(refusal: AccountRefusal) -> CommandError {
    match refusal {
        AccountRefusal::Mistake(mistake) => CommandError::usage(format!("the password: {mistake}")),
        AccountRefusal::Failed(error) => failed(error),
        AccountRefusal::Wrong | AccountRefusal::Later { .. } | AccountRefusal::Busy { .. } => {
            CommandError::failed("the account was not made")
        }
    }
}
