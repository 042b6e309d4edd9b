//! `trefoil migrate`: shows or carries out what it takes to bring a store to the schema.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};

use crate::{CommandError, folder_argument, print_output, setting_flags, settle};
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation};
use trefoil_engine::ResolverRegistry;
use trefoil_server::load_application::load_application;
use trefoil_server::{StartError, lifecycle};
use trefoil_sql::migrate::MigrationMode;

pub fn command() -> Command {
    let plan = Arg::new("plan")
        .long("plan")
        .action(ArgAction::SetTrue)
        .help("Show every step and the rows it touches");
    let apply = Arg::new("apply").long("apply").action(ArgAction::SetTrue).help("Carry the steps out");
    let allow_drop = Arg::new("allow-drop")
        .long("allow-drop")
        .value_name("TYPE[.FIELD]")
        .action(ArgAction::Append)
        .conflicts_with("plan")
        .help("Agree to lose this type or field; once for each loss");
    let command = Command::new("migrate")
        .about("Bring the stored records to a changed schema")
        .arg(folder_argument())
        .args([plan, apply, allow_drop])
        .group(ArgGroup::new("what").args(["plan", "apply"]).required(true));
    setting_flags::add_setting_flags(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, settled) = settle(matches)?;
    let mode = if matches.get_flag("plan") {
        MigrationMode::Plan
    } else {
        let allowed = matches.get_many::<String>("allow-drop").into_iter().flatten().cloned();
        MigrationMode::Apply { allow_drop: allowed.collect() }
    };
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failed)?;
    let migrated = runtime.block_on(migrate(&app, &settled.config, mode, registry));
    print_output(&migrated.map_err(CommandError::Start)?)
}

/// Carries the steps out or only tells them; the answer is what to show.
async fn migrate(
    app: &App,
    config: &Config,
    mode: MigrationMode,
    registry: &ResolverRegistry,
) -> Result<String, StartError> {
    let understood = load_application(app, registry)
        .map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))?;
    // Where there is no store yet, none is made only to be looked at: an empty one elsewhere tells the same.
    let nowhere = Config { database: DatabaseLocation::Memory, ..config.clone() };
    let (_lock, store) =
        lifecycle::open_store(if lifecycle::store_exists(config)? { config } else { &nowhere }).await?;
    Ok(lifecycle::migrate_store(&store, &understood, app, mode)
        .await?
        .to_text(app.origin.argument().as_deref()))
}
