//! `trefoil migrate`: shows or applies the steps that migrate a store to the schema.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};

use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation};
use trefoil_engine::ResolverRegistry;
use trefoil_server::load_application::load_application;
use trefoil_server::{StartError, lifecycle};
use trefoil_sql::migrate::MigrationMode;

use crate::application_argument::{folder_argument, open_app_and_config};
use crate::command_error::CommandError;
use crate::setting_flags;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let plan = Arg::new("plan")
        .long("plan")
        .action(ArgAction::SetTrue)
        .help("Show each step and the number of rows it affects");
    let apply = Arg::new("apply").long("apply").action(ArgAction::SetTrue).help("Apply the steps");
    let allow_drop = Arg::new("allow-drop")
        .long("allow-drop")
        .value_name("TYPE[.FIELD]")
        .action(ArgAction::Append)
        .conflicts_with("plan")
        .help("Allow the data of this type or field to be deleted; repeat for each one");
    let command = Command::new("migrate")
        .about("Migrate the stored records to a changed schema")
        .arg(folder_argument())
        .args([plan, apply, allow_drop])
        .group(ArgGroup::new("what").args(["plan", "apply"]).required(true));
    setting_flags::add_setting_flags(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    let mode = if matches.get_flag("plan") {
        MigrationMode::Plan
    } else {
        let allowed = matches.get_many::<String>("allow-drop").into_iter().flatten().cloned();
        MigrationMode::Apply { allow_drop: allowed.collect() }
    };
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failed)?;
    let migrated = runtime.block_on(migrate(&app, &resolved.config, mode, registry));
    print_output(&migrated.map_err(CommandError::Start)?)
}

/// Plans or applies the steps; returns the report.
async fn migrate(
    app: &App,
    config: &Config,
    mode: MigrationMode,
    registry: &ResolverRegistry,
) -> Result<String, StartError> {
    let application = load_application(app, registry)
        .map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))?;
    // If there is no store yet, it is not created just to be examined: an empty one in memory gives the same report.
    let in_memory = Config { database: DatabaseLocation::Memory, ..config.clone() };
    let (_lock, store) =
        lifecycle::open_store(if lifecycle::store_exists(config)? { config } else { &in_memory }).await?;
    Ok(lifecycle::migrate_store(&store, &application, app, mode)
        .await?
        .to_text(app.origin.argument().as_deref()))
}
