//! The application of a command: the named folder, the current one, or the built-in sample.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, value_parser};

use trefoil_application::App;
use trefoil_config::ResolvedConfig;
use trefoil_model::Diagnostic;
use trefoil_server::StartError;

use crate::command_error::CommandError;
use crate::setting_flags;
use crate::terminal_output::print_note;

pub fn folder_argument() -> Arg {
    Arg::new("folder").value_name("FOLDER").value_parser(value_parser!(PathBuf)).help(
        "The application folder; by default the current folder if it contains graphql/ or trefoil.toml, otherwise the built-in sample",
    )
}

/// The origin of an application.
pub enum AppSource {
    Named(PathBuf),
    /// The current folder.
    Current,
    Sample,
}

impl AppSource {
    pub fn of(matches: &ArgMatches) -> AppSource {
        // Where a flag stands for a login, what is left is the folder: `user end --all my-app`.
        let is_all = matches.try_get_one::<bool>("all").ok().flatten() == Some(&true);
        let alone =
            || matches.try_get_one::<String>("login").ok().flatten().filter(|_| is_all).map(PathBuf::from);
        match matches.get_one::<PathBuf>("folder").cloned().or_else(alone) {
            Some(folder) => AppSource::Named(folder),
            None => AppSource::unnamed(),
        }
    }

    /// Where no folder is named.
    pub fn unnamed() -> AppSource {
        if is_application(Path::new(".")) { AppSource::Current } else { AppSource::Sample }
    }

    /// The application as far as it can be read, and every mistake found so far.
    pub fn read(&self) -> (App, Vec<Diagnostic>) {
        match self {
            AppSource::Named(folder) => App::load_with_diagnostics(folder),
            AppSource::Current => App::load_with_diagnostics(Path::new(".")),
            AppSource::Sample => (App::sample(), Vec::new()),
        }
    }

    /// The application without mistakes. If there are any, a note first says which application has them.
    pub fn open(&self) -> Result<App, CommandError> {
        let (app, mistakes) = self.read();
        if mistakes.is_empty() {
            return Ok(app);
        }
        self.print_source(&app);
        Err(CommandError::Start(StartError::Application(mistakes)))
    }

    /// A line about the origin, unless the user named the folder.
    pub fn line(&self, app: &App) -> Option<String> {
        match self {
            AppSource::Named(_) => None,
            AppSource::Current => {
                let folder = std::fs::canonicalize(".").unwrap_or_else(|_| PathBuf::from("."));
                Some(format!("application: {}, in {} (the current folder)", app.name, folder.display()))
            }
            AppSource::Sample => Some(format!(
                "application: {}, the built-in sample (no folder given, and the current folder has no graphql/ or trefoil.toml)",
                app.name
            )),
        }
    }

    /// Prints [`AppSource::line`].
    pub fn print_source(&self, app: &App) {
        print_note(&self.line(app).unwrap_or_default());
    }
}

/// The application; a note says which one, unless the user named it.
pub fn open_app(matches: &ArgMatches) -> Result<App, CommandError> {
    let source = AppSource::of(matches);
    let app = source.open()?;
    source.print_source(&app);
    Ok(app)
}

/// The same with its settings.
pub fn open_app_and_config(matches: &ArgMatches) -> Result<(App, ResolvedConfig), CommandError> {
    open_source_and_config(&AppSource::of(matches), matches)
}

pub fn open_source_and_config(
    source: &AppSource,
    matches: &ArgMatches,
) -> Result<(App, ResolvedConfig), CommandError> {
    let app = source.open()?;
    let resolved = setting_flags::resolve_config(matches, &app)?;
    source.print_source(&app);
    Ok((app, resolved))
}

pub fn is_application(folder: &Path) -> bool {
    folder.join("graphql").is_dir() || folder.join("trefoil.toml").symlink_metadata().is_ok()
}
