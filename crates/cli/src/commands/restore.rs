//! `trefoil restore`: restores a backup into a store that is empty or may be overwritten.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use trefoil_engine::ResolverRegistry;
use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_sql::transfer;

use crate::application_argument::folder_argument;
use crate::command_error::CommandError;
use crate::progress_bar::TransferProgressBar;
use crate::store_arguments;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let file = Arg::new("file")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .required(true)
        .help("The backup file");
    let overwrite = store_arguments::overwrite_argument("Replace an existing store and all its data");
    let command = Command::new("restore")
        .about("Restore a backup into SQLite or PostgreSQL")
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
            return Err(CommandError::usage(format!(
                "{}: this is a folder; give a backup file",
                file.display()
            )));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(CommandError::usage(format!("{}: file not found", file.display())));
        }
        // Other errors are reported when the file is opened.
        Ok(_) | Err(_) => {}
    }
    let application = store_arguments::transfer_application(&app, registry)?;
    store_arguments::create_store_folder(&to)?;
    let overwrite = matches.get_flag("overwrite");
    let restored = store_arguments::block_on(async {
        transfer::restore_store(file, &to, &application, overwrite, &mut TransferProgressBar::new()).await
    })?;
    let restored = restored.map_err(CommandError::failed)?;
    let time_note = restored.at.map(|at| format!(", as of {at}")).unwrap_or_default();
    let new_store_note =
        "\nThis is not the store that was backed up: use a different file or folder for its backups.";
    let new_store_note = if restored.is_new_store { new_store_note } else { "" };
    let keys = restored.api_keys.join(", ");
    let keys_note = match restored.api_keys.len() {
        0 => String::new(),
        _ => format!("\nThese API keys are good again: {keys}; end one with `trefoil key revoke NAME`."),
    };
    print_output(&format!(
        "{to}: {} records restored{time_note}{new_store_note}{keys_note}\n",
        group_thousands(restored.records)
    ))
}
