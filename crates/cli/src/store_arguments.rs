//! Arguments and helpers of the commands on whole stores.

use clap::{Arg, ArgMatches, Command};

use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation, PostgresUrl};
use trefoil_engine::{ResolverRegistry, binding};
use trefoil_server::load_application::load_application;
use trefoil_server::{StartError, lifecycle};
use trefoil_sql::transfer::{ExpectedSchema, StoreLocation};

use crate::application_argument::open_app_and_config;
use crate::command_error::CommandError;
use crate::setting_flags;

/// The command with the flags that locate a store.
pub fn add_store_flags(command: Command) -> Command {
    setting_flags::add_setting_flags(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn overwrite_argument(help: &'static str) -> Arg {
    Arg::new("overwrite").long("overwrite").action(clap::ArgAction::SetTrue).help(help)
}

/// The application and its settings.
pub fn load_app_and_config(matches: &ArgMatches) -> Result<(App, Config), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    Ok((app, resolved.config))
}

/// The schema that the application expects of its store.
pub fn transfer_application(app: &App, registry: &ResolverRegistry) -> Result<ExpectedSchema, CommandError> {
    let application = load_application(app, registry)
        .map_err(|diagnostics| CommandError::Start(StartError::from_diagnostics(app, &diagnostics)))?;
    let logged_changes = binding::logged_changes(&application.model, &application.bindings);
    Ok(ExpectedSchema::new(application.model, &logged_changes).with_name(&app.name, app.origin.argument()))
}

/// The configured store.
pub fn store_location(config: &Config) -> Result<StoreLocation, CommandError> {
    match &config.database {
        DatabaseLocation::Embedded => Ok(StoreLocation::File(config.data.join(lifecycle::DATABASE_FILE))),
        DatabaseLocation::Postgres(url) => Ok(StoreLocation::Postgres(url.clone())),
        DatabaseLocation::Memory => Err(CommandError::usage(
            "`memory:` cannot be used here: it is lost when its server stops; choose another database",
        )),
    }
}

/// The store of `--to`: a PostgreSQL URL, `sqlite:FOLDER`, or `sqlite:` for the configured data folder.
pub fn parse_store_location(text: &str, config: &Config) -> Result<StoreLocation, CommandError> {
    if PostgresUrl::has_postgres_scheme(text) {
        let url =
            PostgresUrl::parse(text).map_err(|reason| CommandError::usage(format!("--to: {reason}")))?;
        return Ok(StoreLocation::Postgres(url));
    }
    match text.strip_prefix("sqlite:") {
        Some("") => Ok(StoreLocation::File(config.data.join(lifecycle::DATABASE_FILE))),
        Some(folder) => Ok(StoreLocation::File(std::path::Path::new(folder).join(lifecycle::DATABASE_FILE))),
        // The text is not repeated: it may contain a password.
        None => {
            Err(CommandError::usage("--to: unknown kind of store; use \"postgres://…\" or \"sqlite:FOLDER\""))
        }
    }
}

/// Creates the folder of a store, if it has one.
pub fn create_store_folder(location: &StoreLocation) -> Result<(), CommandError> {
    match location {
        StoreLocation::File(path) => {
            let folder = path.parent().unwrap_or(path);
            lifecycle::create_folder_durably(folder).map_err(|error| {
                CommandError::failed(format_args!("data folder {}: {error}", folder.display()))
            })
        }
        StoreLocation::Postgres(_) => Ok(()),
    }
}

/// Runs `work` on a new runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CommandError> {
    Ok(tokio::runtime::Runtime::new().map_err(CommandError::failed)?.block_on(work))
}
