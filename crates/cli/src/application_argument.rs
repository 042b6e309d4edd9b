//! Which application a command is about: the folder that was named, the one it is run in, or the built-in sample.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, value_parser};

use crate::{CommandError, print_note, setting_flags};
use trefoil_application::App;
use trefoil_config::ResolvedConfig;
use trefoil_model::Diagnostic;
use trefoil_server::StartError;

pub fn folder_argument() -> Arg {
    Arg::new("folder").value_name("FOLDER").value_parser(value_parser!(PathBuf)).help(
        "The application folder; without it, the one this is run in, if it has graphql/ or trefoil.toml, \
         else the built-in sample",
    )
}

/// Where an application comes from.
pub enum AppSource {
    Named(PathBuf),
    /// The folder that the command is run in.
    Current,
    Sample,
}

impl AppSource {
    pub fn of(matches: &ArgMatches) -> AppSource {
        match matches.get_one::<PathBuf>("folder") {
            Some(folder) => AppSource::Named(folder.clone()),
            None if is_application(Path::new(".")) => AppSource::Current,
            None => AppSource::Sample,
        }
    }

    /// As far as it can be made out, and everything wrong with it so far.
    pub fn read(&self) -> (App, Vec<Diagnostic>) {
        match self {
            AppSource::Named(folder) => App::load_with_diagnostics(folder),
            AppSource::Current => App::load_with_diagnostics(Path::new(".")),
            AppSource::Sample => (App::sample(), Vec::new()),
        }
    }

    /// An application without a mistake; where there is one, it is told first which application has it.
    pub fn open(&self) -> Result<App, CommandError> {
        let (app, mistakes) = self.read();
        if mistakes.is_empty() {
            return Ok(app);
        }
        self.tell(&app);
        Err(CommandError::Start(StartError::Application(mistakes)))
    }

    /// Which one it is, in a line; nothing where somebody has named it.
    pub fn line(&self, app: &App) -> Option<String> {
        match self {
            AppSource::Named(_) => None,
            AppSource::Current => {
                let folder = std::fs::canonicalize(".").unwrap_or_else(|_| PathBuf::from("."));
                Some(format!(
                    "application: {}, in {} (the folder this is run in)",
                    app.name,
                    folder.display()
                ))
            }
            AppSource::Sample => Some(format!(
                "application: {}, the built-in sample (no folder was named, and neither graphql/ nor trefoil.toml \
                 is here)",
                app.name
            )),
        }
    }

    pub fn tell(&self, app: &App) {
        print_note(&self.line(app).unwrap_or_default());
    }
}

/// The application, which is told where nobody has named it.
pub fn open(matches: &ArgMatches) -> Result<App, CommandError> {
    let source = AppSource::of(matches);
    let app = source.open()?;
    source.tell(&app);
    Ok(app)
}

/// The same with its settings.
pub fn settle(matches: &ArgMatches) -> Result<(App, ResolvedConfig), CommandError> {
    let source = AppSource::of(matches);
    let app = source.open()?;
    let settled = setting_flags::resolve_config(matches, &app)?;
    source.tell(&app);
    Ok((app, settled))
}

fn is_application(folder: &Path) -> bool {
    folder.join("graphql").is_dir() || folder.join("trefoil.toml").symlink_metadata().is_ok()
}
