//! Opens a store for a command that works beside whoever serves it.

use std::sync::Arc;

use crate::load_application::LoadedApplication;
use crate::{StartError, lifecycle};
use trefoil_application::App;
use trefoil_config::{Config, DatabaseLocation as Kind};
use trefoil_engine::{ChangeFeed, Engine, ResolverRegistry};
use trefoil_sql::DataLock;
use trefoil_sql::migrate::{MigrationMode, MigrationReport};

/// What the command is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAccess {
    /// Nothing is made, and nothing changed.
    Read,
    /// A store that is not there is made, without the seed; tables follow the schema as at a start, unless a server is
    /// using the data folder: then they must fit already.
    Write,
}

/// A store in use by a command.
pub struct CommandStore {
    pub engine: Engine,
    _lock: Option<DataLock>,
}

pub async fn open_command_store(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    understood: &LoadedApplication,
    purpose: CommandAccess,
) -> Result<CommandStore, StartError> {
    if config.database == Kind::Memory {
        let why = "memory: ends with its server; name a store with --data or --database";
        return Err(StartError::Settings(why.to_owned()));
    }
    if purpose == CommandAccess::Read && !lifecycle::store_exists(config)? {
        let folder = config.data.display();
        return Err(StartError::Store(format!("there is no store in {folder} (--data, --database)")));
    }
    let lock = match purpose {
        CommandAccess::Read => None,
        CommandAccess::Write => lifecycle::try_lock_data(config)?,
    };
    let may_change = match (&config.database, purpose) {
        (_, CommandAccess::Read) | (Kind::Memory, _) => false,
        (Kind::Embedded, CommandAccess::Write) => lock.is_some(),
        (Kind::Postgres(_), CommandAccess::Write) => true,
    };
    let store = Arc::new(lifecycle::open_store_unlocked(config).await?);
    let mode = if may_change { MigrationMode::Start } else { MigrationMode::Plan };
    refuse_pending_steps(&lifecycle::migrate_store(&store, understood, app, mode).await?, app)?;
    let engine = lifecycle::build_engine(understood, registry, &ChangeFeed::new(store), config);
    Ok(CommandStore { engine, _lock: lock })
}

/// What was only looked at must need no change.
fn refuse_pending_steps(report: &MigrationReport, app: &App) -> Result<(), StartError> {
    if report.is_applied || report.steps.is_empty() {
        return Ok(());
    }
    let folder = app.origin.argument().map(|folder| format!(" {folder}")).unwrap_or_default();
    let steps: String = report.steps.iter().map(|step| format!("\n  {step}")).collect();
    Err(StartError::Migrate(format!(
        "the store does not have the tables of this schema yet:{steps}\n\
         start the server, or run `trefoil migrate{folder} --apply`, and try again"
    )))
}
