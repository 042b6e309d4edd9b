//! `trefoil reset`: empties the store and seeds it again, once somebody has said that this is meant.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::{CommandError, folder_argument, print_output, store_arguments};
use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::ResolverRegistry;
use trefoil_model::values::thousands::group_thousands;
use trefoil_server::lifecycle;
use trefoil_sql::transfer;
use trefoil_sql::transfer::{Contents, ExpectedSchema, StoreLocation};

pub fn command() -> Command {
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask");
    let overwrite =
        store_arguments::overwrite_argument("Also where the store keeps records of another schema");
    let command = Command::new("reset")
        .about("Empty the store and load the seeds again")
        .arg(folder_argument())
        .args([yes, overwrite]);
    store_arguments::add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, config) = store_arguments::load_app_and_config(matches)?;
    let place = store_arguments::store_location(&config)?;
    let is_agreed = matches.get_flag("yes");
    if !is_agreed && !stdin().is_terminal() {
        return Err(CommandError::usage("reset removes every record: --yes says that this is meant"));
    }
    let application = store_arguments::transfer_application(&app, registry)?;
    let found = store_arguments::block_on(transfer::examine(&place, &application))?;
    let records = removable(found, &place, &application, matches.get_flag("overwrite"))?;
    let records = match records {
        None => "what is there".to_owned(),
        Some(1) => "1 record".to_owned(),
        Some(number) => format!("{} records", group_thousands(number)),
    };
    if !is_agreed && !is_confirmed(&format!("This removes {records} of {} in {place}.", app.name))? {
        return print_output("nothing was changed\n");
    }
    store_arguments::create_store_folder(&place)?;
    store_arguments::block_on(reset(&app, &config, registry, &place))??;
    let now = match app.seed.files.is_empty() {
        true => format!("{} begins empty", app.name),
        false => format!("the seeds of {} loaded", app.name),
    };
    print_output(&format!("{place}: {records} removed, and {now}\n"))
}

/// How many records may go: those of a store that the application could be served from, or whatever is there where that
/// was asked for. Then they may be none that can be counted.
fn removable(
    found: Result<Option<Contents>, transfer::TransferError>,
    place: &StoreLocation,
    application: &ExpectedSchema,
    overwrite: bool,
) -> Result<Option<u64>, CommandError> {
    let name = application.name();
    match found {
        Ok(None) => Ok(Some(0)),
        Ok(Some(contents)) if overwrite || contents.foreign.is_empty() => Ok(Some(contents.records)),
        Ok(Some(Contents { records, foreign })) => Err(CommandError::failed(format_args!(
            "{place}: this store keeps {} records of another schema than that of {name}, perhaps another application's, \
             and nothing was changed:\n{foreign}\
             name the right folder or store; if this is the right one, and all of it may go, add --overwrite",
            group_thousands(records)
        ))),
        // It may be damaged, which is a reason to begin anew; where it cannot be reached at all, that fails too.
        Err(_) if overwrite => Ok(None),
        Err(failed) => Err(CommandError::failed(format_args!(
            "{place}: it cannot be told whether this is a store of {name} ({failed}), and nothing was changed; \
             if it is, and all of it may go, add --overwrite"
        ))),
    }
}

fn is_confirmed(what: &str) -> Result<bool, CommandError> {
    let mut out = stdout().lock();
    let asked = write!(out, "{what} Type yes to go on: ").and_then(|()| out.flush());
    asked.map_err(CommandError::failed)?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(CommandError::failed)?;
    Ok(answer.trim() == "yes")
}

/// The new store is made beside the old one, seeds and all, and then takes its place in one step: neither a mistake in
/// the seeds nor an end in the middle costs the records.
async fn reset(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    place: &StoreLocation,
) -> Result<(), CommandError> {
    let make = async |path: &Path| {
        lifecycle::recreate_store(app, config, registry, path).await.map_err(CommandError::Start)
    };
    match place {
        StoreLocation::File(path) => make(path).await,
        StoreLocation::Postgres(_) => {
            let application = store_arguments::transfer_application(app, registry)?;
            let scratch = ScratchFolder::new().map_err(CommandError::failed)?;
            let path = scratch.0.join(lifecycle::DATABASE_FILE);
            make(&path).await?;
            let restored = transfer::restore_store(&path, place, &application, true, &mut ()).await;
            restored.map(drop).map_err(CommandError::failed)
        }
    }
}

/// A folder for a while that nobody else can look into.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<ScratchFolder, String> {
        let folder = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| format!("temporary folder {} (TMPDIR): {error}", folder.display()))?;
        Ok(ScratchFolder(folder))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clear away, like anything there.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
