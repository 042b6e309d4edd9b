//! `trefoil move`: moves the store to another database, or makes a store that was moved away live again.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};

use trefoil_application::shell_quoting;
use trefoil_engine::ResolverRegistry;
use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_sql::transfer;

use crate::application_argument::folder_argument;
use crate::command_error::CommandError;
use crate::progress_bar::TransferProgressBar;
use crate::store_arguments;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let to = Arg::new("to")
        .long("to")
        .value_name("URL")
        .help("Target: postgres://USER@HOST/NAME, sqlite:FOLDER, or sqlite: for the data folder");
    let undo = Arg::new("undo")
        .long("undo")
        .action(ArgAction::SetTrue)
        .conflicts_with("overwrite")
        .help("Reactivate the store that was moved away, without later writes to the other store");
    let overwrite = store_arguments::overwrite_argument("Replace an existing store and all its data");
    let command = Command::new("move")
        .about("Move the store to PostgreSQL or back, with its ids, versions and change log")
        .arg(folder_argument())
        .args([to, undo, overwrite])
        .group(ArgGroup::new("what").args(["to", "undo"]).required(true));
    store_arguments::add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, config) = store_arguments::load_app_and_config(matches)?;
    let from = store_arguments::store_location(&config)?;
    let Some(to) = matches.get_one::<String>("to") else {
        let undone = store_arguments::block_on(async { transfer::undo_move(&from).await })?
            .map_err(CommandError::failed)?;
        return print_output(&format!(
            "{from}: active again; writes to {} since {} are not included\n",
            undone.other, undone.at
        ));
    };
    let to = store_arguments::parse_store_location(to, &config)?;
    let application = store_arguments::transfer_application(&app, registry)?;
    store_arguments::create_store_folder(&to)?;
    let overwrite = matches.get_flag("overwrite");
    let moved = store_arguments::block_on(async {
        transfer::move_store(&from, &to, &application, overwrite, &mut TransferProgressBar::new()).await
    })?;
    let moved = moved.map_err(CommandError::failed)?;
    let flags = match &to {
        transfer::StoreLocation::File(path) => {
            let folder = path.parent().unwrap_or(path).display().to_string();
            format!("--database sqlite: --data {}", shell_quoting::word(&folder))
        }
        transfer::StoreLocation::Postgres(url) => {
            format!("--database {}", shell_quoting::word(&url.to_string()))
        }
    };
    let outcome = if moved.finished {
        format!("{to}: the interrupted move is complete")
    } else {
        format!("{to}: {} records moved and verified", group_thousands(moved.records))
    };
    print_output(&format!(
        "{outcome}\nserve it with {flags}, or set this in trefoil.toml; {from} no longer accepts writes\n"
    ))
}
