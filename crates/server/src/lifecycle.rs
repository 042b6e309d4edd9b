//! The life of a server: open the store, migrate it to the schema, bind, serve, reload, drain.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trefoil_application::{App, AppOrigin, VisibilitySettings};
use trefoil_config::{AuditMode, Config, DatabaseLocation};
use trefoil_credentials::SignInState;
use trefoil_engine::{ChangeFeed, Engine, PlanLimits, ResolverRegistry, binding};
use trefoil_graphql::{GraphqlService, GraphqlState};
use trefoil_http::host_check::AllowedHosts;
use trefoil_http::monitoring::health;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::protected_mode::ProtectedMode;
use trefoil_http::response_cache::ResponseCache;
use trefoil_http::routing::{RouteTable, ServedRoute};
use trefoil_http::service::ServiceHandlers;
use trefoil_http::shutdown::Shutdown;
use trefoil_sql::migrate::{MigrateError, MigrationMode, MigrationReport};
use trefoil_sql::{DataLock, SqlStore, SqliteOptions, transfer};

use crate::accounts::application_accounts::ApplicationAccounts;
use crate::accounts::{account_routes, audit_keeping};
use crate::authentication::{ApplicationCredentials, ServerAuthenticator};
use crate::file_watch::FileWatcher;
use crate::http1::connection;
use crate::listen::tls::TlsTerminator;
use crate::load_application::{LoadedApplication, load_application};
use crate::routes::{ResourceRouter, ResourceState};
use crate::signals::TerminationSignals;
use crate::unreadable_tables::UnreadableTables;
use crate::{StartError, banner, listen, load_seed};

pub use crate::open_store::{
    DATABASE_FILE, create_folder_durably, open_store, open_store_unlocked, store_exists, try_lock_data,
};

/// How long a reload that changes tables waits for running requests, while new ones wait. Requests that take longer get
/// an error and may retry.
const RELOAD_GRACE: Duration = Duration::from_secs(5);

/// A server that is listening.
pub struct Running {
    pub addresses: Vec<SocketAddr>,
    is_encrypted: bool,
    pub engine: Engine,
    fixed_routes: Vec<ServedRoute>,
    resource_router: ResourceRouter,
    shutdown: Shutdown,
    shutdown_delay: Duration,
    serving: tokio::task::JoinHandle<()>,
    /// Writes the rest of the audit when the server drains.
    audit: tokio::task::JoinHandle<()>,
    /// Held while the server runs: one server per data folder.
    _lock: Option<DataLock>,
}

impl Running {
    /// The URL of the first address.
    pub fn url(&self) -> String {
        listen::server_url(&self.addresses, self.is_encrypted)
    }

    /// Every path that is answered now, with its methods; a reload can change those of the application.
    pub fn routes(&self) -> Vec<ServedRoute> {
        [self.fixed_routes.clone(), self.resource_router.resource_routes()].concat()
    }

    /// Finishes the requests in flight and stops.
    pub async fn stop(self) {
        self.shutdown.begin_draining();
        let _ = self.serving.await;
        let _ = self.audit.await;
    }

    /// Runs until a signal, then drains.
    pub async fn until(self, signals: TerminationSignals) {
        signals.drain_on_signal(&self.shutdown, self.shutdown_delay);
        self.shutdown.wait_for_drain().await;
        self.stop().await;
    }
}

/// The parts of a server that a reload needs again.
struct ReloadContext {
    config: Arc<Config>,
    registry: ResolverRegistry,
    store: Arc<SqlStore>,
    feed: ChangeFeed,
    graphql: GraphqlService,
    resource_router: ResourceRouter,
    authenticator: Arc<ServerAuthenticator>,
    store_identity: String,
    streams: trefoil_rest::StreamSettings,
    /// How often passwords were guessed, which a reload does not forget.
    sign_ins: Arc<SignInState>,
    protected_mode: ProtectedMode,
    /// Other machines reach the server.
    is_reachable: bool,
}

/// Starts a server and returns once it listens.
pub async fn start(mut app: App, config: Config, registry: ResolverRegistry) -> Result<Running, StartError> {
    app.visibility_settings = VisibilitySettings::of(&config);
    let config = Arc::new(config);
    // The first snapshot is taken before anything is read, so that no change is missed.
    let watch = match &app.origin {
        AppOrigin::Folder(folder) if config.watch => {
            Some((folder.clone(), FileWatcher::of_application(folder)))
        }
        AppOrigin::Folder(_) | AppOrigin::Sample => None,
    };
    let application = load_application(&app, &registry)
        .map_err(|diagnostics| StartError::from_diagnostics(&app, &diagnostics))?;
    // Bind first: a port that is taken is reported before anything is written.
    let listeners = listen::bind_listeners(&config, application.model.access.is_some())
        .await
        .map_err(StartError::Listen)?;
    let tls = TlsTerminator::from_config(&config).map_err(StartError::Settings)?;
    let (lock, store) = open_store(&config).await?;
    let store = Arc::new(store);
    let report = migrate_store(&store, &application, &app, MigrationMode::Start).await?;
    let application = adapt_to_store(application, &app, &registry, &report)?;
    let feed = ChangeFeed::with_cache_bytes(store.clone(), config.limits.event_cache / 2);
    let engine = build_engine(&application, &registry, &feed, &config);
    if report.needs_seed {
        load_seed_once(&store, &engine.as_operator(), &application, &app).await?;
    }
    log_warnings(&application, &app);

    let authenticator =
        Arc::new(ServerAuthenticator::new(ApplicationCredentials::new(&app, &engine, &config.accounts)?));
    let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
    let response_cache = Arc::new(ResponseCache::new(engine.clone(), config.limits.answer_cache, &metrics));
    let graphql = GraphqlService::new(
        GraphqlState::new(engine.clone(), &config).with_response_cache(response_cache.clone()),
        &config,
    );
    let graphql = graphql.with_shutdown(&config, &metrics, &shutdown);
    let streams = trefoil_rest::StreamSettings {
        heartbeat: config.heartbeat,
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
    };
    // The event id of the last possible change is unique to this store, and differs from that of a backup it was
    // restored from.
    let store_identity = feed.event_id(i64::MAX).await.map_err(StartError::from_store_error)?;
    let sign_ins = Arc::new(SignInState::new(&config.accounts).map_err(StartError::from_store_error)?);
    let providers = authenticator.providers();
    let accounts =
        ApplicationAccounts::new(&engine, &config.accounts, &app.name, &sign_ins, &metrics, providers);
    let resources =
        ResourceState::new(&app, engine.clone(), response_cache, &store_identity, streams.clone(), &config)
            .with_accounts(accounts.clone());
    let resource_router = ResourceRouter::new(resources);
    let unreadable = UnreadableTables::default();
    let ready = ready_check(&store, &unreadable);
    let (router, fixed_routes) =
        fixed_routes(&graphql, &resource_router, ready, &metrics, &shutdown).into_parts();
    let addresses: Vec<SocketAddr> =
        listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let protected_mode = ProtectedMode::default();
    protected_mode.set(application.protected_name(&app));
    let handlers = ServiceHandlers {
        route_lookup: resource_router.route_lookup(),
        error_page: resource_router.error_page_renderer(),
        route_handler: resource_router.request_handler(),
        direct_routes: vec![graphql.direct_handler()],
        hosts: AllowedHosts::new(&config, &addresses),
        protected_mode: protected_mode.clone(),
        authenticator: authenticator.clone(),
    };
    let service = trefoil_http::service::build_service(router, handlers, &config, &metrics, &shutdown);
    let serving = tokio::spawn({
        let (config, shutdown) = (config.clone(), shutdown.clone());
        async move { connection::serve_connections(listeners, tls, service, &config, &metrics, shutdown).await }
    });
    // Counting the records may take a while, and the start does not wait for it.
    tokio::spawn({
        let (config, engine, shutdown) = (config.clone(), engine.as_operator(), shutdown.clone());
        let addresses = addresses.clone();
        async move {
            tokio::select! {
                () = banner::show_banner(&app, &config, &engine, &addresses, &unreadable, accounts.as_deref()) => (),
                () = shutdown.wait_for_drain() => (),
            }
        }
    });
    let settings = config.accounts.clone();
    let audit = tokio::spawn(audit_keeping::keep_audit(
        resource_router.clone(),
        sign_ins.clone(),
        settings,
        shutdown.clone(),
    ));
    if let Some((folder, watch)) = watch {
        let context = ReloadContext {
            config: config.clone(),
            registry,
            store,
            feed,
            graphql,
            resource_router: resource_router.clone(),
            authenticator,
            store_identity,
            streams,
            sign_ins,
            protected_mode,
            is_reachable: listen::is_reachable(&addresses),
        };
        tokio::spawn(context.watch_and_reload(folder, watch, shutdown.clone()));
    }
    Ok(Running {
        addresses,
        is_encrypted: config.is_encrypted(),
        engine,
        fixed_routes,
        resource_router,
        shutdown,
        shutdown_delay: config.shutdown_delay,
        serving,
        audit,
        _lock: lock,
    })
}

/// Opens the store for a command that writes records as a server would: migrated and seeded.
pub async fn open_engine(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
) -> Result<(Option<DataLock>, Engine), StartError> {
    let application = load_application(app, registry)
        .map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))?;
    let (lock, store) = open_store(config).await?;
    Ok((lock, prepare_engine(Arc::new(store), app, config, registry, application).await?))
}

async fn prepare_engine(
    store: Arc<SqlStore>,
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    application: LoadedApplication,
) -> Result<Engine, StartError> {
    let report = migrate_store(&store, &application, app, MigrationMode::Start).await?;
    let application = adapt_to_store(application, app, registry, &report)?;
    let engine = build_engine(&application, registry, &ChangeFeed::new(store.clone()), config).as_operator();
    if report.needs_seed {
        load_seed_once(&store, &engine, &application, app).await?;
    }
    Ok(engine)
}

/// Creates a new store with the seed, then replaces the existing one with it.
pub async fn recreate_store(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    path: &Path,
) -> Result<(), StartError> {
    let store_error = |error: transfer::TransferError| StartError::Store(error.to_string());
    let application = load_application(app, registry)
        .map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))?;
    let _lock = DataLock::acquire(path.parent().unwrap_or(path)).map_err(StartError::from_store_error)?;
    let partial = transfer::PartialStoreFile::create_beside(path).map_err(store_error)?;
    let store = SqlStore::open_sqlite(Some(partial.path()), SqliteOptions::default())
        .map_err(StartError::from_store_error)?;
    // Dropping the last owner closes the file.
    drop(prepare_engine(Arc::new(store), app, config, registry, application).await?);
    partial.replace_store(path).map_err(store_error)
}

/// Loads the seed. Of several servers that find the store empty, one loads it and the others wait.
async fn load_seed_once(
    store: &SqlStore,
    engine: &Engine,
    application: &LoadedApplication,
    app: &App,
) -> Result<(), StartError> {
    let migrate_error =
        |error: MigrateError| StartError::Migrate(error.text(app.origin.argument().as_deref()));
    let seeding_lock = store.lock_seeding().await.map_err(migrate_error)?;
    if seeding_lock.is_some()
        && !migrate_store(store, application, app, MigrationMode::Start).await?.needs_seed
    {
        return Ok(());
    }
    load_seed::load_seed(engine, app).await.map_err(StartError::Seed)?;
    store.mark_seeded().await.map_err(migrate_error)
}

/// Loads the seed into a store in memory, to check that it fits the schema.
pub async fn check_seed(
    app: &App,
    application: &LoadedApplication,
    registry: &ResolverRegistry,
) -> Result<(), StartError> {
    let config = Config { database: DatabaseLocation::Memory, ..Config::default() };
    let store = Arc::new(open_store(&config).await?.1);
    migrate_store(&store, application, app, MigrationMode::Start).await?;
    let engine = build_engine(application, registry, &ChangeFeed::new(store), &config);
    load_seed::load_seed(&engine.as_operator(), app).await.map_err(StartError::Seed)
}

/// Migrates the store's tables to the schema, as far as `mode` allows.
pub async fn migrate_store(
    store: &SqlStore,
    application: &LoadedApplication,
    app: &App,
    mode: MigrationMode,
) -> Result<MigrationReport, StartError> {
    let logged_changes = binding::logged_changes(&application.model, &application.bindings);
    let lists: Vec<String> = app.manifest.plain_lists.iter().map(|list| list.name().to_owned()).collect();
    store
        .migrate(&application.model, &logged_changes, &lists, mode)
        .await
        .map_err(|error| StartError::Migrate(error.text(app.origin.argument().as_deref())))
}

/// The application with ids as the store shows them.
fn adapt_to_store(
    application: LoadedApplication,
    app: &App,
    registry: &ResolverRegistry,
    report: &MigrationReport,
) -> Result<LoadedApplication, StartError> {
    let adapted = application.for_store(app, registry, report.global_ids);
    adapted.map_err(|diagnostics| StartError::from_diagnostics(app, &diagnostics))
}

pub(crate) fn build_engine(
    application: &LoadedApplication,
    registry: &ResolverRegistry,
    feed: &ChangeFeed,
    config: &Config,
) -> Engine {
    let clamp = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let limits = PlanLimits {
        page_size: clamp(config.limits.page_size),
        max_page_size: clamp(config.limits.max_page_size),
        conditions: config.limits.conditions,
        cost: config.limits.cost as u64,
        bulk: u32::try_from(config.limits.bulk).unwrap_or(u32::MAX),
        search_rows: u32::try_from(config.limits.search_rows).unwrap_or(u32::MAX),
        groups: clamp(config.limits.groups),
        time_zone: config.time_zone.clone(),
    };
    let engine = Engine::new(
        application.model.clone(),
        application.bindings.clone(),
        registry.clone(),
        feed.clone(),
        limits,
    );
    match config.accounts.audit {
        AuditMode::Writes => engine.auditing_writes(),
        AuditMode::Trust | AuditMode::Off => engine,
    }
}

/// The server is ready if the store responds and all tables could be read at the start.
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

fn fixed_routes(
    graphql: &GraphqlService,
    resource_router: &ResourceRouter,
    ready: health::ReadinessCheck,
    metrics: &Metrics,
    shutdown: &Shutdown,
) -> RouteTable {
    health::health_routes(ready, shutdown)
        .merge(trefoil_http::monitoring::metrics::metrics_routes(metrics, resource_router.metrics_check()))
        .merge(graphql.routes())
        .merge(resource_router.fixed_routes())
        .merge(account_routes().with_state(resource_router.clone()))
}

/// Logs parts of the application that may not be served as intended.
fn log_warnings(application: &LoadedApplication, app: &App) {
    for diagnostic in &application.warnings {
        tracing::warn!("{diagnostic}");
    }
    for (operation, why) in application.unanswered_operations() {
        tracing::warn!(operation, application = app.name, "{why}");
    }
}

/// Reads an application folder, on a thread that may block.
async fn read_application(
    folder: PathBuf,
    see: VisibilitySettings,
    registry: ResolverRegistry,
) -> Result<(App, LoadedApplication), StartError> {
    let read = move || {
        let mut app = App::load(&folder).map_err(StartError::Application)?;
        app.visibility_settings = see;
        let application = load_application(&app, &registry)
            .map_err(|diagnostics| StartError::from_diagnostics(&app, &diagnostics))?;
        Ok((app, application))
    };
    let result = tokio::task::spawn_blocking(read).await;
    result.unwrap_or_else(|error| Err(StartError::Store(format!("cannot read the schema: {error}"))))
}

impl ReloadContext {
    /// Swaps in a changed schema while requests go on; an invalid one leaves the old one in place.
    async fn watch_and_reload(self, folder: PathBuf, mut watch: FileWatcher, shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = watch.wait_for_change() => {}
                () = shutdown.wait_for_drain() => return,
            }
            match self.reload(&folder).await {
                Ok(types) => tracing::info!(types, "reloaded the schema"),
                Err(error) => {
                    tracing::error!("cannot reload the schema, still serving the previous one:\n{error}");
                }
            }
        }
    }

    /// Requests see the reload as one step: they wait at the gate until the tables and all interfaces are replaced.
    async fn reload(&self, folder: &Path) -> Result<usize, StartError> {
        let (folder, see) = (folder.to_owned(), VisibilitySettings::of(&self.config));
        let (app, application) = read_application(folder, see, self.registry.clone()).await?;
        if self.protected_mode.is_on() && self.is_reachable && !self.config.open {
            application.require_rules()?;
        }
        let changes_tables =
            !migrate_store(&self.store, &application, &app, MigrationMode::Plan).await?.steps.is_empty();
        let grace = if changes_tables {
            RELOAD_GRACE.min(self.config.limits.request_timeout)
        } else {
            Duration::ZERO
        };
        let closed_gate = self.feed.gate().close(grace).await;
        // Subscriptions wait until tables, change images and schema agree again.
        let _reload = self.feed.begin_reload();
        if changes_tables {
            closed_gate.retire_plans();
        }
        let migrated = migrate_store(&self.store, &application, &app, MigrationMode::Start).await;
        if migrated.is_err() && changes_tables {
            closed_gate.restore_plans();
        }
        let application = adapt_to_store(application, &app, &self.registry, &migrated?)?;
        log_warnings(&application, &app);
        let engine = build_engine(&application, &self.registry, &self.feed, &self.config);
        let credentials = self.authenticator.prepare_reload(&app, &engine, &self.config.accounts)?;
        let (config, streams) = (&self.config, self.streams.clone());
        // A new cache, because another schema gives other responses to the same requests.
        let response_cache =
            Arc::new(ResponseCache::new(engine.clone(), config.limits.answer_cache, &streams.metrics));
        let providers = credentials.providers();
        self.authenticator.swap(credentials);
        let (sign_ins, metrics) = (&self.sign_ins, &streams.metrics);
        let accounts =
            ApplicationAccounts::new(&engine, &config.accounts, &app.name, sign_ins, metrics, providers);
        let (cache, identity) = (response_cache.clone(), &self.store_identity);
        let resources = ResourceState::new(&app, engine.clone(), cache, identity, streams, config);
        self.resource_router.swap(resources.with_accounts(accounts));
        self.graphql.swap(GraphqlState::new(engine, config).with_response_cache(response_cache));
        self.protected_mode.set(application.protected_name(&app));
        Ok(application.model.records.len())
    }
}
