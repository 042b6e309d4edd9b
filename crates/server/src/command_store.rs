//! Opens a store for a command, also while a server uses it.

use std::sync::Arc;

use trefoil_application::App;
use trefoil_config::{AuditMode, Config, DatabaseLocation};
use trefoil_engine::{AuditAction, AuditNote, AuditOrigin, ChangeFeed, Engine, ResolverRegistry};
use trefoil_sql::DataLock;
use trefoil_sql::migrate::{MigrationMode, MigrationReport};

use crate::load_application::LoadedApplication;
use crate::{StartError, lifecycle};

/// How a command uses the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAccess {
    /// Creates and changes nothing.
    Read,
    /// Creates a missing store, without the seed, and migrates tables as a start does, unless a server uses the data
    /// folder: then the tables must already fit.
    Write,
}

/// A store in use by a command.
pub struct CommandStore {
    pub engine: Engine,
    pub audit: AuditMode,
    _lock: Option<DataLock>,
}

impl CommandStore {
    /// The entry of the audit for what the command does with a key; `None` if there is no audit.
    pub fn key_note(&self, action: AuditAction, key: &str) -> Option<AuditNote> {
        let has_audit = self.audit != AuditMode::Off && self.engine.model().access.is_some();
        has_audit.then(|| AuditNote::new(action, &AuditOrigin::default()).about_key(key))
    }
}

pub async fn open_command_store(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    application: &LoadedApplication,
    access: CommandAccess,
) -> Result<CommandStore, StartError> {
    if config.database == DatabaseLocation::Memory {
        let reason = "memory: cannot be used here, as it is lost when its server stops; choose a store with --data or --database";
        return Err(StartError::Settings(reason.to_owned()));
    }
    if access == CommandAccess::Read && !lifecycle::store_exists(config)? {
        let folder = config.data.display();
        return Err(StartError::Store(format!("no store found in {folder} (--data, --database)")));
    }
    let lock = match access {
        CommandAccess::Read => None,
        CommandAccess::Write => lifecycle::try_lock_data(config)?,
    };
    let may_change = match (&config.database, access) {
        (_, CommandAccess::Read) | (DatabaseLocation::Memory, _) => false,
        (DatabaseLocation::Embedded, CommandAccess::Write) => lock.is_some(),
        (DatabaseLocation::Postgres(_), CommandAccess::Write) => true,
    };
    let store = Arc::new(lifecycle::open_store_unlocked(config).await?);
    let mode = if may_change { MigrationMode::Start } else { MigrationMode::Plan };
    refuse_pending_steps(&lifecycle::migrate_store(&store, application, app, mode).await?, app)?;
    let engine = lifecycle::build_engine(application, registry, &ChangeFeed::new(store), config);
    Ok(CommandStore { engine: engine.as_operator(), audit: config.accounts.audit, _lock: lock })
}

/// Refuses a store that would need changes but was not migrated.
fn refuse_pending_steps(report: &MigrationReport, app: &App) -> Result<(), StartError> {
    if report.is_applied || report.steps.is_empty() {
        return Ok(());
    }
    let folder = app.origin.argument().map(|folder| format!(" {folder}")).unwrap_or_default();
    let steps: String = report.steps.iter().map(|step| format!("\n  {step}")).collect();
    Err(StartError::Migrate(format!(
        "the store has not been migrated to this schema yet:{steps}\n\
         start the server or run `trefoil migrate{folder} --apply`, then try again"
    )))
}
