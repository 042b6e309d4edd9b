//! The life of the process: open the store, bring it to the schema, bind, serve, reload, drain.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::file_watch::Watch;
use crate::http1::connection;
use crate::load_application::{Understood, understand};
use crate::resource_router;
use crate::resource_router::Front;
use crate::signals::Signals;
use crate::unreadable_tables::UnreadableTables;
use crate::{StartError, banner, listen, load_seed};
use trefoil_application::{App, Origin};
use trefoil_config::Config;
use trefoil_engine::{Engine, Feed, PlanLimits, Registry, resolvers};
use trefoil_graphql::{Face, Served};
use trefoil_http::host_check::AllowedHosts;
use trefoil_http::monitoring::health;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::response_cache::Answers;
use trefoil_http::service::Ground;
use trefoil_http::shutdown::Shutdown;
use trefoil_sql::migrate::{MigrateError, Mode, Report};
use trefoil_sql::{DataLock, Database, Options, postgres, transfer};

/// How long a reload that changes tables waits for requests under way, and so how long it keeps others waiting. Those
/// that take longer are told to try again.
const OVERTAKEN: Duration = Duration::from_secs(5);

/// The file in the data folder that holds everything.
pub const FILE: &str = "trefoil.db";

/// A server that listens.
pub struct Running {
    pub addresses: Vec<SocketAddr>,
    pub engine: Engine,
    shutdown: Shutdown,
    shutdown_delay: Duration,
    serving: tokio::task::JoinHandle<()>,
    /// Held as long as the server runs: one server a data folder.
    _lock: Option<DataLock>,
}

impl Running {
    /// Where the first address can be reached.
    pub fn url(&self) -> String {
        listen::url(&self.addresses)
    }

    /// Finishes what is in flight and ends.
    pub async fn stop(self) {
        self.shutdown.drain();
        let _ = self.serving.await;
    }

    /// Runs until a signal, then drains.
    pub async fn until(self, signals: Signals) {
        signals.obey(&self.shutdown, self.shutdown_delay);
        self.shutdown.draining().await;
        self.stop().await;
    }
}

/// What one server is made of and a reload needs again.
struct Site {
    config: Arc<Config>,
    registry: Registry,
    store: Arc<Database>,
    feed: Feed,
    face: Face,
    front: Front,
    identity: String,
    streams: trefoil_rest::Streams,
}

pub async fn start(app: App, config: Config, registry: Registry) -> Result<Running, StartError> {
    let config = Arc::new(config);
    // Looked at before anything is read, so that no change falls between.
    let watch = match &app.origin {
        Origin::Folder(folder) if config.watch => Some(Watch::new(folder)),
        Origin::Folder(_) | Origin::Sample => None,
    };
    let understood =
        understand(&app, &registry).map_err(|diagnostics| StartError::schema(&app, &diagnostics))?;
    // Listening comes first: a taken port is known before anything is written.
    let listeners = listen::bind(&config).await.map_err(StartError::Listen)?;
    let (lock, store) = open(&config).await?;
    let store = Arc::new(store);
    let report = migrate(&store, &understood, &app, Mode::Start).await?;
    let feed = Feed::keeping(store.clone(), config.limits.event_cache / 2);
    let engine = engine(&understood, &registry, &feed, &config);
    if report.fresh {
        fill(&store, &engine, &understood, &app).await?;
    }
    warn(&understood, &app);

    let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
    let answers = Arc::new(Answers::new(engine.clone(), config.limits.answer_cache, &metrics));
    let face = Face::new(Served::new(engine.clone(), &config).reusing(answers.clone()), &config);
    let face = face.within(&config, &metrics, &shutdown);
    let streams = trefoil_rest::Streams {
        heartbeat: config.heartbeat,
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
    };
    // The name of the very last place belongs to this store and to no other, nor to an older self it was restored from.
    let identity = feed.id(i64::MAX).await.map_err(StartError::store)?;
    let front =
        resource_router::Served::new(&app, engine.clone(), answers, &identity, streams.clone(), &config);
    let front = Front::new(front);
    let unreadable = UnreadableTables::default();
    let ready = ready_check(&store, &unreadable);
    let router = router(&face, &front, ready, &metrics, &shutdown);
    let addresses: Vec<SocketAddr> =
        listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let ground = Ground {
        owners: front.owners(),
        errors: front.errors(),
        owned: front.handler(),
        direct: vec![face.direct()],
        hosts: AllowedHosts::new(&config, &addresses),
    };
    let router = trefoil_http::service::wrap(router, ground, &config, &metrics, &shutdown);
    let serving = tokio::spawn({
        let (config, shutdown) = (config.clone(), shutdown.clone());
        async move { connection::serve(listeners, router, &config, &metrics, shutdown).await }
    });
    // Counting what there is may take its time, and nobody has to wait for it.
    tokio::spawn({
        let (config, engine, shutdown) = (config.clone(), engine.clone(), shutdown.clone());
        let addresses = addresses.clone();
        async move {
            tokio::select! {
                () = banner::show(&app, &config, &engine, &addresses, &unreadable) => (),
                () = shutdown.draining() => (),
            }
        }
    });
    if let Some(watch) = watch {
        let site = Site { config: config.clone(), registry, store, feed, face, front, identity, streams };
        tokio::spawn(site.follow(watch, shutdown.clone()));
    }
    Ok(Running { addresses, engine, shutdown, shutdown_delay: config.shutdown_delay, serving, _lock: lock })
}

/// Opens the store for a command that writes records as a server would: brought to the schema, with its seeds in.
pub async fn ready(
    app: &App,
    config: &Config,
    registry: &Registry,
) -> Result<(Option<DataLock>, Engine), StartError> {
    let understood =
        understand(app, registry).map_err(|diagnostics| StartError::schema(app, &diagnostics))?;
    let (lock, store) = open(config).await?;
    Ok((lock, prepared(Arc::new(store), app, config, registry, &understood).await?))
}

async fn prepared(
    store: Arc<Database>,
    app: &App,
    config: &Config,
    registry: &Registry,
    understood: &Understood,
) -> Result<Engine, StartError> {
    let report = migrate(&store, understood, app, Mode::Start).await?;
    let engine = engine(understood, registry, &Feed::new(store.clone()), config);
    if report.fresh {
        fill(&store, &engine, understood, app).await?;
    }
    Ok(engine)
}

/// Makes a new store with the seeds in it, and puts it in the place of the one that is there.
pub async fn make_anew(
    app: &App,
    config: &Config,
    registry: &Registry,
    path: &Path,
) -> Result<(), StartError> {
    let failed = |failed: transfer::Failed| StartError::Store(failed.to_string());
    let understood =
        understand(app, registry).map_err(|diagnostics| StartError::schema(app, &diagnostics))?;
    let _lock = DataLock::take(path.parent().unwrap_or(path)).map_err(StartError::store)?;
    let partial = transfer::Partial::beside(path).map_err(failed)?;
    let store = Database::sqlite(Some(partial.path()), Options::default()).map_err(StartError::store)?;
    // Closes the file with the last of those who have it.
    drop(prepared(Arc::new(store), app, config, registry, &understood).await?);
    partial.replace(path).map_err(failed)
}

/// Brings the seeds in. Of several servers that find the store fresh one does, and the others wait for it.
async fn fill(
    store: &Database,
    engine: &Engine,
    understood: &Understood,
    app: &App,
) -> Result<(), StartError> {
    let failed = |error: MigrateError| StartError::Migrate(error.text(app.origin.argument().as_deref()));
    let turn = store.seeding().await.map_err(failed)?;
    if turn.is_some() && !migrate(store, understood, app, Mode::Start).await?.fresh {
        return Ok(());
    }
    load_seed::load(engine, app).await.map_err(StartError::Seed)?;
    store.seeded().await.map_err(failed)
}

/// Loads the seed into a store in memory, only to see whether it fits the schema.
pub async fn rehearse_seed(
    app: &App,
    understood: &Understood,
    registry: &Registry,
) -> Result<(), StartError> {
    let config = Config { database: trefoil_config::Database::Memory, ..Config::default() };
    let store = Arc::new(open(&config).await?.1);
    migrate(&store, understood, app, Mode::Start).await?;
    let engine = engine(understood, registry, &Feed::new(store), &config);
    load_seed::load(&engine, app).await.map_err(StartError::Seed)
}

/// Whether the settings name a store that exists.
pub fn is_there(config: &Config) -> Result<bool, StartError> {
    match &config.database {
        trefoil_config::Database::Memory => Ok(false),
        trefoil_config::Database::Embedded => {
            let found = config.data.join(FILE).try_exists();
            found
                .map_err(|error| StartError::Store(format!("data folder {}: {error}", config.data.display())))
        }
        // Only it can tell, and to look at it changes nothing.
        trefoil_config::Database::Postgres(_) => Ok(true),
    }
}

/// Opens the store that the settings name.
pub async fn open(config: &Config) -> Result<(Option<DataLock>, Database), StartError> {
    let lock = match &config.database {
        trefoil_config::Database::Memory | trefoil_config::Database::Postgres(_) => None,
        trefoil_config::Database::Embedded => {
            make_folder(config)?;
            Some(DataLock::take(&config.data).map_err(StartError::store)?)
        }
    };
    Ok((lock, open_unlocked(config).await?))
}

/// The lock of the data folder, where there is one and no server has it.
pub fn try_lock(config: &Config) -> Result<Option<DataLock>, StartError> {
    match &config.database {
        trefoil_config::Database::Memory | trefoil_config::Database::Postgres(_) => Ok(None),
        trefoil_config::Database::Embedded => {
            make_folder(config)?;
            DataLock::try_take(&config.data).map_err(StartError::store)
        }
    }
}

fn make_folder(config: &Config) -> Result<(), StartError> {
    let folder = &config.data;
    create_durably(folder)
        .map_err(|error| StartError::Store(format!("data folder {}: {error}", folder.display())))
}

/// Opens the store, whoever else uses it.
pub async fn open_unlocked(config: &Config) -> Result<Database, StartError> {
    let options = Options {
        keep_changes: config.keep_changes,
        keep_changes_for: config.keep_changes_for,
        ..Options::default()
    };
    match &config.database {
        trefoil_config::Database::Memory => Database::sqlite(None, options).map_err(StartError::store),
        trefoil_config::Database::Embedded => {
            let path = config.data.join(FILE);
            let store = Database::sqlite(Some(&path), options);
            store.map_err(|error| {
                StartError::Store(format!("{}: {}", path.display(), StartError::store(error)))
            })
        }
        trefoil_config::Database::Postgres(url) => {
            let options = postgres::Options {
                url: url.clone(),
                connections: config.database_connections,
                patience: config.database_timeout,
                notify: config.database_notify,
                keep_changes: config.keep_changes,
                keep_changes_for: config.keep_changes_for,
            };
            let store = Database::postgres(options).await;
            store.map_err(|why| StartError::Store(format!("database {why}")))
        }
    }
}

/// Creates a folder and the ones above it; each is synced into its parent, or a power cut could take the new folder
/// with everything that was acknowledged into it.
pub fn create_durably(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_durably(parent)?;
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
        Ok(()) | Err(_) => std::fs::File::open(parent)?.sync_all(),
    }
}

/// Brings the store's tables to the schema, as far as `mode` allows.
pub async fn migrate(
    store: &Database,
    understood: &Understood,
    app: &App,
    mode: Mode,
) -> Result<Report, StartError> {
    let watched = resolvers::watched(&understood.bindings);
    let lists: Vec<String> = app.manifest.lists.iter().map(|list| list.name().to_owned()).collect();
    store
        .migrate(&understood.model, &watched, &lists, mode)
        .await
        .map_err(|error| StartError::Migrate(error.text(app.origin.argument().as_deref())))
}

pub(crate) fn engine(understood: &Understood, registry: &Registry, feed: &Feed, config: &Config) -> Engine {
    let clamp = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let limits = PlanLimits {
        page_size: clamp(config.limits.page_size),
        max_page_size: clamp(config.limits.max_page_size),
        conditions: config.limits.conditions,
    };
    Engine::new(understood.model.clone(), registry.clone(), feed.clone(), limits)
}

/// Ready is whoever reaches the store and could read all of it at the start.
fn ready_check(store: &Arc<Database>, unreadable: &UnreadableTables) -> health::Ready {
    let (store, unreadable) = (store.clone(), unreadable.clone());
    Arc::new(move || {
        let (store, unreadable) = (store.clone(), unreadable.clone());
        Box::pin(async move {
            trefoil_engine::Store::ping(store.as_ref()).await.map_err(|error| error.to_string())?;
            unreadable.check()
        })
    })
}

fn router(
    face: &Face,
    front: &Front,
    ready: health::Ready,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> axum::Router {
    health::router(ready, shutdown)
        .merge(trefoil_http::monitoring::metrics::router(metrics))
        .merge(face.router())
        .merge(front.router())
}

/// Says once in the log what is served otherwise than it may be meant.
fn warn(understood: &Understood, app: &App) {
    for diagnostic in &understood.warnings {
        tracing::warn!("{diagnostic}");
    }
    for (operation, why) in understood.missing() {
        tracing::warn!(operation, application = app.name, "{why}");
    }
}

/// Reads an application folder, on a thread that may wait for the disk.
async fn read(folder: PathBuf, registry: Registry) -> Result<(App, Understood), StartError> {
    let read = move || {
        let app = App::load(&folder).map_err(StartError::Application)?;
        let understood =
            understand(&app, &registry).map_err(|diagnostics| StartError::schema(&app, &diagnostics))?;
        Ok((app, understood))
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|error| Err(StartError::Store(format!("the schema cannot be read: {error}"))))
}

impl Site {
    /// Swaps a changed schema in while requests go on; a wrong one leaves the old in place.
    async fn follow(self, mut watch: Watch, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = watch.changed() => {}
                () = shutdown.draining() => return,
            }
            match self.reload(watch.folder()).await {
                Ok(types) => tracing::info!(types, "the changed schema is served"),
                Err(error) => {
                    tracing::error!("the schema is not reloaded, the old one is still served:\n{error}");
                }
            }
        }
    }

    /// To requests it is one step: they wait at the gate from before the tables change until every face is exchanged.
    async fn reload(&self, folder: &Path) -> Result<usize, StartError> {
        let (app, understood) = read(folder.to_owned(), self.registry.clone()).await?;
        let changes_tables = !migrate(&self.store, &understood, &app, Mode::Plan).await?.steps.is_empty();
        let patience =
            if changes_tables { OVERTAKEN.min(self.config.limits.request_timeout) } else { Duration::ZERO };
        let closed = self.feed.gate().close(patience).await;
        // Subscriptions wait until tables, images and schema are of one form again.
        let _held = self.feed.hold();
        if changes_tables {
            closed.retire_plans();
        }
        let migrated = migrate(&self.store, &understood, &app, Mode::Start).await;
        if migrated.is_err() && changes_tables {
            closed.restore_plans();
        }
        migrated?;
        warn(&understood, &app);
        let engine = engine(&understood, &self.registry, &self.feed, &self.config);
        let (identity, streams) = (&self.identity, self.streams.clone());
        // Another schema gives other answers to the same requests.
        let answers =
            Arc::new(Answers::new(engine.clone(), self.config.limits.answer_cache, &streams.metrics));
        let config = &self.config;
        self.front.swap(resource_router::Served::new(
            &app,
            engine.clone(),
            answers.clone(),
            identity,
            streams,
            config,
        ));
        self.face.swap(Served::new(engine, &self.config).reusing(answers));
        Ok(understood.model.records.len())
    }
}
