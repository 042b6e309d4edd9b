//! `trefoil reset`: empties the store and loads the seed again, after a confirmation.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::ResolverRegistry;
use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_server::lifecycle;
use trefoil_sql::transfer::{self, ExpectedSchema, StoreContents, StoreLocation};

use crate::application_argument::folder_argument;
use crate::command_error::CommandError;
use crate::store_arguments;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask for confirmation");
    let overwrite =
        store_arguments::overwrite_argument("Also if the store contains records of another schema");
    let command = Command::new("reset")
        .about("Delete all records and load the seeds again")
        .arg(folder_argument())
        .args([yes, overwrite]);
    store_arguments::add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, config) = store_arguments::load_app_and_config(matches)?;
    let location = store_arguments::store_location(&config)?;
    let is_agreed = matches.get_flag("yes");
    if !is_agreed && !stdin().is_terminal() {
        return Err(CommandError::usage("reset deletes all records; use --yes to confirm"));
    }
    let application = store_arguments::transfer_application(&app, registry)?;
    let contents = store_arguments::block_on(transfer::examine_store(&location, &application))?;
    let records = check_removable(contents, &location, &application, matches.get_flag("overwrite"))?;
    let records = match records {
        None => "all data".to_owned(),
        Some(1) => "1 record".to_owned(),
        Some(number) => format!("{} records", group_thousands(number)),
    };
    if !is_agreed && !is_confirmed(&format!("This deletes {records} of {} in {location}.", app.name))? {
        return print_output("nothing was changed\n");
    }
    store_arguments::create_store_folder(&location)?;
    store_arguments::block_on(reset(&app, &config, registry, &location))??;
    let seed_note = match app.seed.files.is_empty() {
        true => format!("{} starts empty", app.name),
        false => format!("the seeds of {} were loaded", app.name),
    };
    print_output(&format!("{location}: {records} deleted; {seed_note}\n"))
}

/// The number of records to remove, if that is allowed: those of a store that the application can serve, or anything
/// with `--overwrite`; `None` if they cannot be counted.
fn check_removable(
    contents: Result<Option<StoreContents>, transfer::TransferError>,
    location: &StoreLocation,
    application: &ExpectedSchema,
    overwrite: bool,
) -> Result<Option<u64>, CommandError> {
    let name = application.name();
    match contents {
        Ok(None) => Ok(Some(0)),
        Ok(Some(contents)) if overwrite || contents.foreign.is_empty() => Ok(Some(contents.records)),
        Ok(Some(StoreContents { records, foreign })) => Err(CommandError::failed(format_args!(
            "{location}: nothing was changed: the store contains {} records whose schema differs from that of {name}; \
             it may belong to another application:\n{foreign}\
             choose the right folder or store, or add --overwrite to delete all of its data",
            group_thousands(records)
        ))),
        // The store may be damaged, which is a reason to reset it; if it cannot be reached at all, the reset fails too.
        Err(_) if overwrite => Ok(None),
        Err(error) => Err(CommandError::failed(format_args!(
            "{location}: nothing was changed: cannot determine whether this is a store of {name} ({error}); if it is, add --overwrite to delete all of its data"
        ))),
    }
}

fn is_confirmed(what: &str) -> Result<bool, CommandError> {
    let mut out = stdout().lock();
    let prompted = write!(out, "{what} Type yes to continue: ").and_then(|()| out.flush());
    prompted.map_err(CommandError::failed)?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(CommandError::failed)?;
    Ok(answer.trim() == "yes")
}

/// Builds the new store with its seed beside the old one and then replaces that in one step, so that neither a mistake
/// in the seed nor a crash loses records.
async fn reset(
    app: &App,
    config: &Config,
    registry: &ResolverRegistry,
    location: &StoreLocation,
) -> Result<(), CommandError> {
    let recreate = async |path: &Path| {
        lifecycle::recreate_store(app, config, registry, path).await.map_err(CommandError::Start)
    };
    match location {
        StoreLocation::File(path) => recreate(path).await,
        StoreLocation::Postgres(_) => {
            let application = store_arguments::transfer_application(app, registry)?;
            let scratch = ScratchFolder::new().map_err(CommandError::failed)?;
            let path = scratch.0.join(lifecycle::DATABASE_FILE);
            recreate(&path).await?;
            let restored = transfer::restore_store(&path, location, &application, true, &mut ()).await;
            restored.map(drop).map_err(CommandError::failed)
        }
    }
}

/// A temporary folder that no other user can read.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<ScratchFolder, String> {
        let folder = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
        let created = std::fs::DirBuilder::new().mode(0o700).create(&folder);
        created.map_err(|error| format!("temporary folder {} (TMPDIR): {error}", folder.display()))?;
        Ok(ScratchFolder(folder))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // If it cannot be removed, it is left to the system, like other temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
