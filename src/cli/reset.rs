//! `trefoil reset`: empties the store and seeds it again, once somebody has said that this is meant.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, folder_argument, say, stores};
use crate::app::App;
use crate::config::Config;
use crate::engine::Registry;
use crate::server::life;
use crate::sql::transfer::{self, Place};

pub fn command() -> Command {
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask");
    let command = Command::new("reset")
        .about("Empty the store and load the seeds again")
        .arg(folder_argument())
        .arg(yes);
    stores::with_store(command)
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, config) = stores::settle(matches)?;
    let place = stores::place(&config)?;
    if !matches.get_flag("yes") && !is_meant(&place)? {
        return say("nothing was changed\n");
    }
    stores::make_folder(&place)?;
    stores::run(reset(&app, &config, registry, &place))??;
    let seeds = match app.seed.files.is_empty() {
        true => String::new(),
        false => format!(", and the seeds of {} loaded", app.name),
    };
    say(&format!("{place}: empty{seeds}\n"))
}

fn is_meant(place: &Place) -> Result<bool, Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::usage("reset removes every record: --yes says that this is meant"));
    }
    let mut out = stdout().lock();
    let asked =
        write!(out, "This removes every record in {place}. Type yes to go on: ").and_then(|()| out.flush());
    asked.map_err(Failure::run)?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(Failure::run)?;
    Ok(answer.trim() == "yes")
}

/// The new store is made beside the old one, seeds and all, and then takes its place in one step: neither a mistake in
/// the seeds nor an end in the middle costs the records.
async fn reset(app: &App, config: &Config, registry: &Registry, place: &Place) -> Result<(), Failure> {
    let make = async |path: &Path| life::make_anew(app, config, registry, path).await.map_err(Failure::Start);
    match place {
        Place::File(path) => make(path).await,
        Place::Postgres(_) => {
            let application = stores::application(app, registry)?;
            let scratch = Scratch::new().map_err(Failure::run)?;
            let path = scratch.0.join(life::FILE);
            make(&path).await?;
            let restored = transfer::restore(&path, place, &application, true, &mut ()).await;
            restored.map(drop).map_err(Failure::run)
        }
    }
}

/// A folder for a while that nobody else can look into.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, String> {
        let folder = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| format!("temporary folder {} (TMPDIR): {error}", folder.display()))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clear away, like anything there.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
