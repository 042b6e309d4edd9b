//! The life of the process: open the store, bring it to the schema, bind, serve, reload, drain.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::file_watch::FolderWatcher;
use crate::http1::connection;
use crate::load_application::{LoadedApplication, load_application};
use crate::resource_router;
use crate::resource_router::ResourceRouter;
use crate::signals::TerminationSignals;
use crate::unreadable_tables::UnreadableTables;
use crate::{StartError, banner, listen, load_seed};
use trefoil_application::{App, AppOrigin};
use trefoil_config::Config;
use trefoil_engine::{ChangeFeed, Engine, PlanLimits, ResolverRegistry, resolvers};
use trefoil_graphql::{GraphqlService, GraphqlState};
use trefoil_http::host_check::AllowedHosts;
use trefoil_http::monitoring::health;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::response_cache::ResponseCache;
use trefoil_http::service::ServiceHandlers;
use trefoil_http::shutdown::Shutdown;
use trefoil_sql::migrate::{MigrateError, MigrationMode, MigrationReport};
use trefoil_sql::{DataLock, SqlStore, SqliteOptions, postgres, transfer};

/// How long a reload that changes tables waits for requests under way, and so how long it keeps others waiting. Those
/// that take longer are told to try again.
const OVERTAKEN: Duration = Duration::from_secs(5);

/// The file in the data folder that holds everything.
pub const DATABASE_FILE: &str = "trefoil.db";

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
        listen::server_url(&self.addresses)
    }

    /// Finishes what is in flight and ends.
    pub async fn stop(self) {
        self.shutdown.begin_draining();
        let _ = self.serving.await;
    }

    /// Runs until a signal, then drains.
    pub async fn until(self, signals: TerminationSignals) {
        signals.drain_on_signal(&self.shutdown, self.shutdown_delay);
        self.shutdown.wait_for_drain().await;
        self.stop().await;
    }
}

/// What one server is made of and a reload needs again.
struct ReloadContext {
    config: Arc<Config>,
    registry: ResolverRegistry,
    store: Arc<SqlStore>,
    feed: ChangeFeed,
    graphql: GraphqlService,
    resource_router: ResourceRouter,
    store_identity: String,
    streams: trefoil_rest::StreamSettings,
}

pub async fn start(app: App, config: Config, registry: ResolverRegistry) -> Result<Running, StartError> {
    let config = Arc::new(config);
    // Looked at before anything is read, so that no change falls between.
    let watch = match &app.origin {
        AppOrigin::Folder(folder) if config.watch => Some(FolderWatcher::new(folder)),
        AppOrigin::Folder(_) | AppOrigin::Sample => None,
    };
    let understood = load_application(&app, &registry)
        .map_err(|diagnostics| StartError::from_diagnostics(&app, &diagnostics))?;
    // Listening comes first: a taken port is known before anything is written.
    let listeners = listen::bind_listeners(&config).await.map_err(StartError::Listen)?;
    let (lock, store) = open_store(&config).await?;
    let store = Arc::new(store);
    let report = migrate_store(&store, &understood, &app, MigrationMode::Start).await?;
    let feed = ChangeFeed::with_cache_bytes(store.clone(), config.limits.event_cache / 2);
    let engine = build_engine(&understood, &registry, &feed, &config);
    if report.needs_seed {
        load_seed_once(&store, &engine, &understood, &app).await?;
    }
    log_warnings(&understood, &app);

    let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
    let answers = Arc::new(ResponseCache::new(engine.clone(), config.limits.answer_cache, &metrics));
    let face = GraphqlService::new(
        GraphqlState::new(engine.clone(), &config).with_response_cache(answers.clone()),
        &config,
    );
    let face = face.with_shutdown(&config, &metrics, &shutdown);
    let streams = trefoil_rest::StreamSettings {
        heartbeat: config.heartbeat,
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
    };
    // The name of the very last place belongs to this store and to no other, nor to an older self it was restored from.
    let identity = feed.event_id(i64::MAX).await.map_err(StartError::from_store_error)?;
    let front = resource_router::ResourceFaces::new(
        &app,
        engine.clone(),
        answers,
        &identity,
        streams.clone(),
        &config,
    );
    let front = ResourceRouter::new(front);
    let unreadable = UnreadableTables::default();
    let ready = ready_check(&store, &unreadable);
    let router = build_router(&face, &front, ready, &metrics, &shutdown);
    let addresses: Vec<SocketAddr> =
        listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let ground = ServiceHandlers {
        route_lookup: front.route_lookup(),
        error_page: front.error_page_renderer(),
        route_handler: front.request_handler(),
        direct_routes: vec![face.direct_handler()],
        hosts: AllowedHosts::new(&config, &addresses),
    };
    let router = trefoil_http::service::build_service(router, ground, &config, &metrics, &shutdown);
    let serving = tokio::spawn({
        let (config, shutdown) = (config.clone(), shutdown.clone());
        async move { connection::serve_connections(listeners, router, &config, &metrics, shutdown).await }
    });
    // Counting what there is may take its time, and nobody has to wait for it.
    tokio::spawn({
        let (config, engine, shutdown) = (config.clone(), engine.clone(), shutdown.clone());
        let addresses = addresses.clone();
        async move {
            tokio::select! {
                () = banner::show_banner(&app, &config, &engine, &addresses, &unreadable) => (),
                () = shutdown.wait_for_drain() => (),
            }
        }
    });
    if let Some(watch) = watch {
        let site = ReloadContext {
            config: config.clone(),
            registry,
            store,
            feed,
            graphql: face,
            resource_router: front,
            store_identity: identity,
            streams,
        };
        tokio::spawn(site.watch_and_reload(watch, shutdown.clone()));
    }
    Ok(Running { addresses, engine, shutdown, shutdown_delay: config.shutdown_delay, serving, _lock: lock })
}

/// Opens the store for a command that writes records as a server would: brought to the schema, with its seeds in.
pub async fn open_engine(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
) -> Result<(Option<DataLock>, Engine), StartError> {
    let understood = load_application(app, registry)
        .map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))?;
    let (lock, store) = open_store(config).await?;
    Ok((lock, prepare_engine(Arc::new(store), app, config, registry, &understood).await?))
}

async fn prepare_engine(
    store: Arc<SqlStore>,
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    understood: &LoadedApplication,
) -> Result<Engine, StartError> {
    let report = migrate_store(&store, understood, app, MigrationMode::Start).await?;
    let engine = build_engine(understood, registry, &ChangeFeed::new(store.clone()), config);
    if report.needs_seed {
        load_seed_once(&store, &engine, understood, app).await?;
    }
    Ok(engine)
}

/// Makes a new store with the seeds in it, and puts it in the place of the one that is there.
pub async fn recreate_store(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    path: &Path,
) -> Result<(), StartError> {
    let failed = |failed: transfer::TransferError| StartError::Store(failed.to_string());
    let understood = load_application(app, registry)
        .map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))?;
    let _lock = DataLock::acquire(path.parent().unwrap_or(path)).map_err(StartError::from_store_error)?;
    let partial = transfer::PartialStoreFile::create_beside(path).map_err(failed)?;
    let store = SqlStore::open_sqlite(Some(partial.path()), SqliteOptions::default())
        .map_err(StartError::from_store_error)?;
    // Closes the file with the last of those who have it.
    drop(prepare_engine(Arc::new(store), app, config, registry, &understood).await?);
    partial.replace_store(path).map_err(failed)
}

/// Brings the seeds in. Of several servers that find the store fresh one does, and the others wait for it.
async fn load_seed_once(
    store: &SqlStore,
    engine: &Engine,
    understood: &LoadedApplication,
    app: &App,
) -> Result<(), StartError> {
    let failed = |error: MigrateError| StartError::Migrate(error.text(app.origin.argument().as_deref()));
    let turn = store.lock_seeding().await.map_err(failed)?;
    if turn.is_some() && !migrate_store(store, understood, app, MigrationMode::Start).await?.needs_seed {
        return Ok(());
    }
    load_seed::load_seed(engine, app).await.map_err(StartError::Seed)?;
    store.mark_seeded().await.map_err(failed)
}

/// Loads the seed into a store in memory, only to see whether it fits the schema.
pub async fn check_seed(
    app: &App,
    understood: &LoadedApplication,
    registry: &ResolverRegistry,
) -> Result<(), StartError> {
    let config = Config { database: trefoil_config::DatabaseLocation::Memory, ..Config::default() };
    let store = Arc::new(open_store(&config).await?.1);
    migrate_store(&store, understood, app, MigrationMode::Start).await?;
    let engine = build_engine(understood, registry, &ChangeFeed::new(store), &config);
    load_seed::load_seed(&engine, app).await.map_err(StartError::Seed)
}

/// Whether the settings name a store that exists.
pub fn store_exists(config: &Config) -> Result<bool, StartError> {
    match &config.database {
        trefoil_config::DatabaseLocation::Memory => Ok(false),
        trefoil_config::DatabaseLocation::Embedded => {
            let found = config.data.join(DATABASE_FILE).try_exists();
            found
                .map_err(|error| StartError::Store(format!("data folder {}: {error}", config.data.display())))
        }
        // Only it can tell, and to look at it changes nothing.
        trefoil_config::DatabaseLocation::Postgres(_) => Ok(true),
    }
}

/// Opens the store that the settings name.
pub async fn open_store(config: &Config) -> Result<(Option<DataLock>, SqlStore), StartError> {
    let lock = match &config.database {
        trefoil_config::DatabaseLocation::Memory | trefoil_config::DatabaseLocation::Postgres(_) => None,
        trefoil_config::DatabaseLocation::Embedded => {
            create_data_folder(config)?;
            Some(DataLock::acquire(&config.data).map_err(StartError::from_store_error)?)
        }
    };
    Ok((lock, open_store_unlocked(config).await?))
}

/// The lock of the data folder, where there is one and no server has it.
pub fn try_lock_data(config: &Config) -> Result<Option<DataLock>, StartError> {
    match &config.database {
        trefoil_config::DatabaseLocation::Memory | trefoil_config::DatabaseLocation::Postgres(_) => Ok(None),
        trefoil_config::DatabaseLocation::Embedded => {
            create_data_folder(config)?;
            DataLock::try_acquire(&config.data).map_err(StartError::from_store_error)
        }
    }
}

fn create_data_folder(config: &Config) -> Result<(), StartError> {
    let folder = &config.data;
    create_folder_durably(folder)
        .map_err(|error| StartError::Store(format!("data folder {}: {error}", folder.display())))
}

/// Opens the store, whoever else uses it.
pub async fn open_store_unlocked(config: &Config) -> Result<SqlStore, StartError> {
    let options = SqliteOptions {
        keep_changes: config.keep_changes,
        keep_changes_for: config.keep_changes_for,
        ..SqliteOptions::default()
    };
    match &config.database {
        trefoil_config::DatabaseLocation::Memory => {
            SqlStore::open_sqlite(None, options).map_err(StartError::from_store_error)
        }
        trefoil_config::DatabaseLocation::Embedded => {
            let path = config.data.join(DATABASE_FILE);
            let store = SqlStore::open_sqlite(Some(&path), options);
            store.map_err(|error| {
                StartError::Store(format!("{}: {}", path.display(), StartError::from_store_error(error)))
            })
        }
        trefoil_config::DatabaseLocation::Postgres(url) => {
            let options = postgres::PostgresOptions {
                url: url.clone(),
                pool_size: config.database_connections,
                acquire_timeout: config.database_timeout,
                notify: config.database_notify,
                keep_changes: config.keep_changes,
                keep_changes_for: config.keep_changes_for,
            };
            let store = SqlStore::open_postgres(options).await;
            store.map_err(|why| StartError::Store(format!("database {why}")))
        }
    }
}

/// Creates a folder and the ones above it; each is synced into its parent, or a power cut could take the new folder
/// with everything that was acknowledged into it.
pub fn create_folder_durably(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder_durably(parent)?;
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
        Ok(()) | Err(_) => std::fs::File::open(parent)?.sync_all(),
    }
}

/// Brings the store's tables to the schema, as far as `mode` allows.
pub async fn migrate_store(
    store: &SqlStore,
    understood: &LoadedApplication,
    app: &App,
    mode: MigrationMode,
) -> Result<MigrationReport, StartError> {
    let watched = resolvers::subscribed_changes(&understood.bindings);
    let lists: Vec<String> = app.manifest.plain_lists.iter().map(|list| list.name().to_owned()).collect();
    store
        .migrate(&understood.model, &watched, &lists, mode)
        .await
        .map_err(|error| StartError::Migrate(error.text(app.origin.argument().as_deref())))
}

pub(crate) fn build_engine(
    understood: &LoadedApplication,
    registry: &ResolverRegistry,
    feed: &ChangeFeed,
    config: &Config,
) -> Engine {
    let clamp = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let limits = PlanLimits {
        page_size: clamp(config.limits.page_size),
        max_page_size: clamp(config.limits.max_page_size),
        conditions: config.limits.conditions,
    };
    Engine::new(understood.model.clone(), registry.clone(), feed.clone(), limits)
}

/// Ready is whoever reaches the store and could read all of it at the start.
fn ready_check(store: &Arc<SqlStore>, unreadable: &UnreadableTables) -> health::ReadinessCheck {
    let (store, unreadable) = (store.clone(), unreadable.clone());
    Arc::new(move || {
        let (store, unreadable) = (store.clone(), unreadable.clone());
        Box::pin(async move {
            trefoil_engine::Store::ping(store.as_ref()).await.map_err(|error| error.to_string())?;
            unreadable.check()
        })
    })
}

fn build_router(
    face: &GraphqlService,
    front: &ResourceRouter,
    ready: health::ReadinessCheck,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> axum::Router {
    health::health_router(ready, shutdown)
        .merge(trefoil_http::monitoring::metrics::metrics_router(metrics))
        .merge(face.router())
        .merge(front.router())
}

/// Says once in the log what is served otherwise than it may be meant.
fn log_warnings(understood: &LoadedApplication, app: &App) {
    for diagnostic in &understood.warnings {
        tracing::warn!("{diagnostic}");
    }
    for (operation, why) in understood.unanswered_operations() {
        tracing::warn!(operation, application = app.name, "{why}");
    }
}

/// Reads an application folder, on a thread that may wait for the disk.
async fn read(folder: PathBuf, registry: ResolverRegistry) -> Result<(App, LoadedApplication), StartError> {
    let read = move || {
        let app = App::load(&folder).map_err(StartError::Application)?;
        let understood = load_application(&app, &registry)
            .map_err(|diagnostics| StartError::from_diagnostics(&app, &diagnostics))?;
        Ok((app, understood))
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|error| Err(StartError::Store(format!("the schema cannot be read: {error}"))))
}

impl ReloadContext {
    /// Swaps a changed schema in while requests go on; a wrong one leaves the old in place.
    async fn watch_and_reload(self, mut watch: FolderWatcher, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = watch.wait_for_change() => {}
                () = shutdown.wait_for_drain() => return,
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
        let changes_tables =
            !migrate_store(&self.store, &understood, &app, MigrationMode::Plan).await?.steps.is_empty();
        let patience =
            if changes_tables { OVERTAKEN.min(self.config.limits.request_timeout) } else { Duration::ZERO };
        let closed = self.feed.gate().close(patience).await;
        // Subscriptions wait until tables, images and schema are of one form again.
        let _held = self.feed.begin_reload();
        if changes_tables {
            closed.retire_plans();
        }
        let migrated = migrate_store(&self.store, &understood, &app, MigrationMode::Start).await;
        if migrated.is_err() && changes_tables {
            closed.restore_plans();
        }
        migrated?;
        log_warnings(&understood, &app);
        let engine = build_engine(&understood, &self.registry, &self.feed, &self.config);
        let (identity, streams) = (&self.store_identity, self.streams.clone());
        // Another schema gives other answers to the same requests.
        let answers =
            Arc::new(ResponseCache::new(engine.clone(), self.config.limits.answer_cache, &streams.metrics));
        let config = &self.config;
        self.resource_router.swap(resource_router::ResourceFaces::new(
            &app,
            engine.clone(),
            answers.clone(),
            identity,
            streams,
            config,
        ));
        self.graphql.swap(GraphqlState::new(engine, &self.config).with_response_cache(answers));
        Ok(understood.model.records.len())
    }
}
