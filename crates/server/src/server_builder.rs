//! The builder for programs that embed Trefoil: an application, settings, resolvers and a start.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::{ResolverCall, ResolverRegistry, ResolverResult};
use trefoil_model::error::Error;

use crate::signals::TerminationSignals;
use crate::{Running, StartError, lifecycle};

/// A server to start. [`serve`](Trefoil::serve) runs it until a signal; [`start`](Trefoil::start) returns it running.
pub struct Trefoil {
    source: AppSource,
    config: Option<Config>,
    registry: ResolverRegistry,
}

enum AppSource {
    Sample,
    Folder(PathBuf),
    Loaded(Box<App>),
}

impl Trefoil {
    /// The built-in sample.
    pub fn sample() -> Trefoil {
        Trefoil::from_source(AppSource::Sample)
    }

    /// An application folder.
    pub fn folder(path: impl AsRef<Path>) -> Trefoil {
        Trefoil::from_source(AppSource::Folder(path.as_ref().to_owned()))
    }

    /// An application that is already loaded.
    pub fn app(app: App) -> Trefoil {
        Trefoil::from_source(AppSource::Loaded(Box::new(app)))
    }

    fn from_source(source: AppSource) -> Trefoil {
        Trefoil { source, config: None, registry: ResolverRegistry::default() }
    }

    /// Settings; by default they come from the environment and the application's `trefoil.toml`.
    pub fn config(mut self, config: Config) -> Trefoil {
        self.config = Some(config);
        self
    }

    /// Registers a resolver; `field` is written `Type.field`, for example `Query.search` or `User.initials`.
    pub fn resolver<F, R>(mut self, field: &str, resolver: F) -> Trefoil
    where
        F: Fn(ResolverCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ResolverResult, Error>> + Send + 'static,
    {
        self.registry.register(field, Arc::new(move |call| Box::pin(resolver(call))));
        self
    }

    /// Replaces the resolvers registered so far.
    pub fn registry(mut self, registry: ResolverRegistry) -> Trefoil {
        self.registry = registry;
        self
    }

    /// Starts the server and returns once it listens.
    pub async fn start(self) -> Result<Running, StartError> {
        let app = match self.source {
            AppSource::Sample => App::sample(),
            AppSource::Folder(path) => App::load(&path).map_err(StartError::Application)?,
            AppSource::Loaded(app) => *app,
        };
        let config = match self.config {
            Some(config) => config,
            None => {
                let resolved = app.resolve_config(Vec::new());
                resolved.map_err(|lines| StartError::Settings(lines.join("\n")))?.config
            }
        };
        lifecycle::start(app, config, self.registry).await
    }

    /// Starts the server and runs it until SIGINT or SIGTERM.
    pub async fn serve(self) -> Result<(), StartError> {
        // Installed first: a client that sees the server listen may stop it at once.
        let mut signals = TerminationSignals::install()
            .map_err(|error| StartError::Settings(format!("cannot handle signals: {error}")))?;
        let running = tokio::select! {
            running = self.start() => running?,
            never = signals.exit_on_signal() => never,
        };
        running.until(signals).await;
        Ok(())
    }
}
