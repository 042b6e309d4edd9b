//! The store that a command is about, and what all commands on whole stores share.

use clap::{Arg, ArgMatches, Command};

use crate::{Failure, setting_flags};
use trefoil_application::App;
use trefoil_config::{Config, Database, PostgresUrl};
use trefoil_engine::{Registry, resolvers};
use trefoil_server::load_application::understand;
use trefoil_server::{StartError, lifecycle};
use trefoil_sql::transfer::{Application, Place};

/// With the settings that say where a store is.
pub fn with_store(command: Command) -> Command {
    setting_flags::with_settings(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn overwrite_argument(help: &'static str) -> Arg {
    Arg::new("overwrite").long("overwrite").action(clap::ArgAction::SetTrue).help(help)
}

/// The application and its settings.
pub fn settle(matches: &ArgMatches) -> Result<(App, Config), Failure> {
    let (app, settled) = crate::settle(matches)?;
    Ok((app, settled.config))
}

/// What the application expects of its store.
pub fn application(app: &App, registry: &Registry) -> Result<Application, Failure> {
    let understood = understand(app, registry)
        .map_err(|diagnostics| Failure::Start(StartError::schema(app, &diagnostics)))?;
    let logged = resolvers::watched(&understood.bindings);
    Ok(Application::new(understood.model, &logged).called(&app.name, app.origin.argument()))
}

/// Where the settings say that the records are.
pub fn place(config: &Config) -> Result<Place, Failure> {
    match &config.database {
        Database::Embedded => Ok(Place::File(config.data.join(lifecycle::FILE))),
        Database::Postgres(url) => Ok(Place::Postgres(url.clone())),
        Database::Memory => {
            Err(Failure::usage("a store in memory is gone with its server: name another one"))
        }
    }
}

/// Where `--to` says: an address of PostgreSQL, `sqlite:FOLDER`, or `sqlite:` for the data folder of the settings.
pub fn target(text: &str, config: &Config) -> Result<Place, Failure> {
    if PostgresUrl::is_meant(text) {
        let url = PostgresUrl::read(text).map_err(|why| Failure::usage(format!("--to: {why}")))?;
        return Ok(Place::Postgres(url));
    }
    match text.strip_prefix("sqlite:") {
        Some("") => Ok(Place::File(config.data.join(lifecycle::FILE))),
        Some(folder) => Ok(Place::File(std::path::Path::new(folder).join(lifecycle::FILE))),
        // The text is not repeated: it may hold a password.
        None => Err(Failure::usage("--to: no such store; use \"postgres://…\" or \"sqlite:FOLDER\"")),
    }
}

/// A folder that is to hold a store has to be there first.
pub fn make_folder(place: &Place) -> Result<(), Failure> {
    match place {
        Place::File(path) => {
            let folder = path.parent().unwrap_or(path);
            lifecycle::create_durably(folder)
                .map_err(|error| Failure::run(format_args!("data folder {}: {error}", folder.display())))
        }
        Place::Postgres(_) => Ok(()),
    }
}

/// Runs to its end on a runtime of its own.
pub fn run<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    Ok(tokio::runtime::Runtime::new().map_err(Failure::run)?.block_on(work))
}
