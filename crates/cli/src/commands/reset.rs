//! `trefoil reset`: empties the store and seeds it again, once somebody has said that this is meant.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::{Failure, folder_argument, say, store_arguments};
use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::Registry;
use trefoil_model::values::thousands::grouped;
use trefoil_server::lifecycle;
use trefoil_sql::transfer;
use trefoil_sql::transfer::{Application, Contents, Place};

pub fn command() -> Command {
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask");
    let overwrite =
        store_arguments::overwrite_argument("Also where the store keeps records of another schema");
    let command = Command::new("reset")
        .about("Empty the store and load the seeds again")
        .arg(folder_argument())
        .args([yes, overwrite]);
    store_arguments::with_store(command)
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, config) = store_arguments::settle(matches)?;
    let place = store_arguments::place(&config)?;
    let is_agreed = matches.get_flag("yes");
    if !is_agreed && !stdin().is_terminal() {
        return Err(Failure::usage("reset removes every record: --yes says that this is meant"));
    }
    let application = store_arguments::application(&app, registry)?;
    let found = store_arguments::run(transfer::examine(&place, &application))?;
    let records = removable(found, &place, &application, matches.get_flag("overwrite"))?;
    let records = match records {
        None => "what is there".to_owned(),
        Some(1) => "1 record".to_owned(),
        Some(number) => format!("{} records", grouped(number)),
    };
    if !is_agreed && !is_meant(&format!("This removes {records} of {} in {place}.", app.name))? {
        return say("nothing was changed\n");
    }
    store_arguments::make_folder(&place)?;
    store_arguments::run(reset(&app, &config, registry, &place))??;
    let now = match app.seed.files.is_empty() {
        true => format!("{} begins empty", app.name),
        false => format!("the seeds of {} loaded", app.name),
    };
    say(&format!("{place}: {records} removed, and {now}\n"))
}

/// How many records may go: those of a store that the application could be served from, or whatever is there where that
/// was asked for. Then they may be none that can be counted.
fn removable(
    found: Result<Option<Contents>, transfer::Failed>,
    place: &Place,
    application: &Application,
    overwrite: bool,
) -> Result<Option<u64>, Failure> {
    let name = application.name();
    match found {
        Ok(None) => Ok(Some(0)),
        Ok(Some(contents)) if overwrite || contents.foreign.is_empty() => Ok(Some(contents.records)),
        Ok(Some(Contents { records, foreign })) => Err(Failure::run(format_args!(
            "{place}: this store keeps {} records of another schema than that of {name}, perhaps another application's, \
             and nothing was changed:\n{foreign}\
             name the right folder or store; if this is the right one, and all of it may go, add --overwrite",
            grouped(records)
        ))),
        // It may be damaged, which is a reason to begin anew; where it cannot be reached at all, that fails too.
        Err(_) if overwrite => Ok(None),
        Err(failed) => Err(Failure::run(format_args!(
            "{place}: it cannot be told whether this is a store of {name} ({failed}), and nothing was changed; \
             if it is, and all of it may go, add --overwrite"
        ))),
    }
}

fn is_meant(what: &str) -> Result<bool, Failure> {
    let mut out = stdout().lock();
    let asked = write!(out, "{what} Type yes to go on: ").and_then(|()| out.flush());
    asked.map_err(Failure::run)?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(Failure::run)?;
    Ok(answer.trim() == "yes")
}

/// The new store is made beside the old one, seeds and all, and then takes its place in one step: neither a mistake in
/// the seeds nor an end in the middle costs the records.
async fn reset(app: &App, config: &Config, registry: &Registry, place: &Place) -> Result<(), Failure> {
    let make =
        async |path: &Path| lifecycle::make_anew(app, config, registry, path).await.map_err(Failure::Start);
    match place {
        Place::File(path) => make(path).await,
        Place::Postgres(_) => {
            let application = store_arguments::application(app, registry)?;
            let scratch = Scratch::new().map_err(Failure::run)?;
            let path = scratch.0.join(lifecycle::FILE);
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
