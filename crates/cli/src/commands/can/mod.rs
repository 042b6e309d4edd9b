//! `trefoil can`: whether somebody may do something, and which part of which rule decides.

mod asked_access;
mod explained_access;
mod explained_text;
mod named_actor;

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::ResolverRegistry;
use trefoil_server::StartError;
use trefoil_server::command_store::{self, CommandAccess, CommandStore};
use trefoil_server::load_application::{LoadedApplication, load_application};

use crate::application_argument::{AppSource, is_application, open_source_and_config};
use crate::command_error::CommandError;
use crate::commands::can::asked_access::AskedAccess;
use crate::commands::can::explained_access::{ExplainedAccess, explained_json};
use crate::commands::can::explained_text::explained_text;
use crate::commands::can::named_actor::NamedActor;
use crate::store_arguments::{add_store_flags, block_on};
use crate::terminal_output::print_output;

const ABOUT: &str = "Say whether somebody may do something, and which part of which rule decides";

const USAGE: &str = "trefoil can (--as LOGIN | --key NAME | --role R… | --anonymous) ACTION TYPE[/ID] [FIELD] [FOLDER]\n       trefoil can (…) read|write /PATH [FOLDER]\n       trefoil can (…) call Query|Mutation FIELD [FOLDER]";

const AFTER_HELP: &str = "A single argument after TYPE is the FOLDER if it is that of an application or could not be the name of a field.\n\
    The store is only opened for --as, --key and an ID. Exit codes: 0 yes, or it depends on the record; 1 no, or a failure; \
    2 invalid command line, setting or folder, or nothing of that name.";

pub fn command() -> Command {
    let action = Arg::new("action")
        .value_name("ACTION")
        .required(true)
        .help("read, create, update, delete; write, of a plain list; or call, for an operation with a resolver of its own");
    let target = Arg::new("type")
        .value_name("TYPE[/ID]")
        .required(true)
        .help("A type of the schema; with an ID, a record of it as the store has it. Or the path of a plain list or a text");
    let rest = |name, value_name, help| Arg::new(name).value_name(value_name).help(help);
    let login = Arg::new("as").long("as").value_name("LOGIN").help("As the account with this login");
    let key = Arg::new("key").long("key").value_name("NAME").help("As the API key of this name");
    let role = Arg::new("role")
        .long("role")
        .value_name("ROLE")
        .action(ArgAction::Append)
        .value_delimiter(',')
        .help("As somebody with this role and no account; may be given several times");
    let anonymous = Arg::new("anonymous")
        .long("anonymous")
        .action(ArgAction::SetTrue)
        .help("As somebody without a credential");
    let format = Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(["human", "json"]))
        .default_value("human")
        .help("Output format");
    let command = Command::new("can")
        .about(ABOUT)
        .override_usage(USAGE)
        .after_help(AFTER_HELP)
        .args([login, key, role, anonymous, format])
        .group(ArgGroup::new("actor").args(["as", "key", "role", "anonymous"]).required(true))
        .args([action, target])
        .arg(rest("field", "FIELD", "A field of the type, or the operation to call"))
        .arg(rest("folder", "FOLDER", "The application folder, as of other commands"));
    add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let (field, source) = field_and_source(text("field"), text("folder"));
    let (app, resolved) = open_source_and_config(&source, matches)?;
    let application = load_application(&app, registry)
        .map_err(|diagnostics| CommandError::Start(StartError::from_diagnostics(&app, &diagnostics)))?;
    if application.model.access.is_none() {
        return Err(CommandError::usage(
            "the application is open: its schema has no @allow and no @account, so everybody may do everything",
        ));
    }
    let action = text("action").unwrap_or_default();
    let asked =
        AskedAccess::read(&app.manifest, &application, action, text("type").unwrap_or_default(), field)?;
    let explained = block_on(explain(matches, registry, &app, &resolved.config, &application, asked))??;
    let is_json = text("format") == Some("json");
    let sources = [app.schema.clone(), app.other_files.clone()].concat();
    print_output(&match is_json {
        true => format!("{:#}\n", explained_json(&explained, &sources)),
        false => explained_text(&explained, &sources),
    })?;
    if explained.is_refused() { Err(CommandError::Reported) } else { Ok(()) }
}

/// FIELD and FOLDER are both optional.
fn field_and_source<'m>(first: Option<&'m str>, second: Option<&'m str>) -> (Option<&'m str>, AppSource) {
    let named = |folder: &str| AppSource::Named(PathBuf::from(folder));
    let is_name = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match (first, second) {
        (Some(field), Some(folder)) => (Some(field), named(folder)),
        (Some(folder), None) if !is_name(folder) || is_application(Path::new(folder)) => {
            (None, named(folder))
        }
        (field, _) => (field, AppSource::unnamed()),
    }
}

async fn explain(
    matches: &ArgMatches,
    registry: &ResolverRegistry,
    app: &App,
    config: &Config,
    application: &LoadedApplication,
    asked: AskedAccess,
) -> Result<ExplainedAccess, CommandError> {
    let needs_store = asked.has_id() || matches.contains_id("as") || matches.contains_id("key");
    let store = match needs_store {
        true => Some(open_store(registry, app, config, application).await?),
        false => None,
    };
    let engine = store.as_ref().map(|store| &store.engine);
    let model = engine.map_or(&application.model, |engine| engine.model());
    let actor = NamedActor::find(matches, model, engine).await?;
    ExplainedAccess::find(model, engine, &config.time_zone, actor, asked).await
}

async fn open_store(
    registry: &ResolverRegistry,
    app: &App,
    config: &Config,
    application: &LoadedApplication,
) -> Result<CommandStore, CommandError> {
    let access = CommandAccess::Read;
    let store = command_store::open_command_store(app, config, registry, application, access).await;
    store.map_err(CommandError::Start)
}
