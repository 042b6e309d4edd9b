//! `trefoil restore`: brings a backup back into a store that is empty, or that may be overwritten.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use crate::progress_bar::TransferProgress;
use crate::{CommandError, folder_argument, print_output, store_arguments};
use trefoil_engine::ResolverRegistry;
use trefoil_model::values::thousands::group_thousands;
use trefoil_sql::transfer;

pub fn command() -> Command {
    let file = Arg::new("file")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .required(true)
        .help("The backup");
    let overwrite =
        store_arguments::overwrite_argument("Replace the store that is there, with everything in it");
    let command = Command::new("restore")
        .about("Bring a backup back, into SQLite or PostgreSQL")
        .arg(file)
        .arg(folder_argument())
        .arg(overwrite);
    store_arguments::add_store_flags(command)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, config) = store_arguments::load_app_and_config(matches)?;
    let to = store_arguments::store_location(&config)?;
    let file = matches.get_one::<PathBuf>("file").expect("clap asks for it");
    match file.metadata() {
        Ok(found) if found.is_dir() => {
            return Err(CommandError::usage(format!("{}: this is a folder; name a backup", file.display())));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(CommandError::usage(format!("{}: there is no such file", file.display())));
        }
        // Whoever opens it is told of anything else.
        Ok(_) | Err(_) => {}
    }
    let application = store_arguments::transfer_application(&app, registry)?;
    store_arguments::create_store_folder(&to)?;
    let overwrite = matches.get_flag("overwrite");
    let done = store_arguments::block_on(async {
        transfer::restore_store(file, &to, &application, overwrite, &mut TransferProgress::new()).await
    })?;
    let done = done.map_err(CommandError::failed)?;
    let of = done.at.map(|at| format!(", as they were at {at}")).unwrap_or_default();
    let own = "\nThis is another store than the one that was put aside: its backups need a file or folder of their own.";
    let own = if done.is_new_store { own } else { "" };
    print_output(&format!("{to}: {} records restored{of}{own}\n", group_thousands(done.records)))
}
