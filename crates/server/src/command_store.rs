//! Opens a store for a command that works beside whoever serves it.

use std::sync::Arc;

use crate::load_application::Understood;
use crate::{StartError, lifecycle};
use trefoil_application::App;
use trefoil_config::{Config, Database as Kind};
use trefoil_engine::{Engine, Feed, Registry};
use trefoil_sql::DataLock;
use trefoil_sql::migrate::{Mode, Report};

/// What the command is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing is made, and nothing changed.
    Read,
    /// A store that is not there is made, without the seed; tables follow the schema as at a start, unless a server is
    /// using the data folder: then they must fit already.
    Write,
}

/// A store in use by a command.
pub struct Beside {
    pub engine: Engine,
    _lock: Option<DataLock>,
}

pub async fn open(
    app: &App,
    config: &Config,
    registry: &Registry,
    understood: &Understood,
    purpose: Purpose,
) -> Result<Beside, StartError> {
    if config.database == Kind::Memory {
        let why = "memory: ends with its server; name a store with --data or --database";
        return Err(StartError::Settings(why.to_owned()));
    }
    if purpose == Purpose::Read && !lifecycle::is_there(config)? {
        let folder = config.data.display();
        return Err(StartError::Store(format!("there is no store in {folder} (--data, --database)")));
    }
    let lock = match purpose {
        Purpose::Read => None,
        Purpose::Write => lifecycle::try_lock(config)?,
    };
    let may_change = match (&config.database, purpose) {
        (_, Purpose::Read) | (Kind::Memory, _) => false,
        (Kind::Embedded, Purpose::Write) => lock.is_some(),
        (Kind::Postgres(_), Purpose::Write) => true,
    };
    let store = Arc::new(lifecycle::open_unlocked(config).await?);
    let mode = if may_change { Mode::Start } else { Mode::Plan };
    fits(&lifecycle::migrate(&store, understood, app, mode).await?, app)?;
    let engine = lifecycle::engine(understood, registry, &Feed::new(store), config);
    Ok(Beside { engine, _lock: lock })
}

/// What was only looked at must need no change.
fn fits(report: &Report, app: &App) -> Result<(), StartError> {
    if report.done || report.steps.is_empty() {
        return Ok(());
    }
    let folder = app.origin.argument().map(|folder| format!(" {folder}")).unwrap_or_default();
    let steps: String = report.steps.iter().map(|step| format!("\n  {step}")).collect();
    Err(StartError::Migrate(format!(
        "the store does not have the tables of this schema yet:{steps}\n\
         start the server, or run `trefoil migrate{folder} --apply`, and try again"
    )))
}
