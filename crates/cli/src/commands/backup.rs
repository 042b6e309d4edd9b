//! `trefoil backup`: copies the store into one file while it is being served, and removes old backups.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use heck::ToKebabCase;

use trefoil_model::values::digit_grouping::group_thousands;
use trefoil_sql::transfer;

use crate::application_argument::folder_argument;
use crate::command_error::CommandError;
use crate::progress_bar::TransferProgressBar;
use crate::store_arguments;
use crate::terminal_output::print_output;

/// The ending of a backup's name in a folder, after its time.
const BACKUP_SUFFIX: &str = ".backup.db";

pub fn command() -> Command {
    let to = Arg::new("to")
        .long("to")
        .value_name("FILE|FOLDER")
        .value_parser(value_parser!(PathBuf))
        .required(true)
        .help("The file to write; in a folder, the file is named after the application and the time");
    let keep = Arg::new("keep")
        .long("keep")
        .value_name("N")
        .value_parser(value_parser!(u32).range(1..))
        .help("Keep only the newest N backups of this store in the folder");
    let command = Command::new("backup")
        .about("Back up the store to one file, even while it is being served")
        .arg(folder_argument())
        .args([to, keep]);
    store_arguments::add_store_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    let (app, config) = store_arguments::load_app_and_config(matches)?;
    let from = store_arguments::store_location(&config)?;
    let to = matches.get_one::<PathBuf>("to").expect("clap asks for it");
    let keep = matches.get_one::<u32>("keep").copied();
    let is_folder = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
    if keep.is_some() && !is_folder {
        return Err(CommandError::usage("--keep: --to must be an existing folder or end with /"));
    }
    let prefix = format!("{}-", app.name.to_kebab_case());
    let path = if is_folder {
        std::fs::create_dir_all(to)
            .map_err(|error| CommandError::failed(format_args!("{}: {error}", to.display())))?;
        remove_interrupted(to, &prefix)?;
        to.join(format!("{prefix}{}{BACKUP_SUFFIX}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ")))
    } else {
        to.clone()
    };
    let backup = store_arguments::block_on(async {
        transfer::back_up_store(&from, &path, &mut TransferProgressBar::new()).await
    })?;
    let backup = backup.map_err(CommandError::failed)?;
    let mut output =
        format!("{}: {} records, verified\n", backup.path.display(), group_thousands(backup.records));
    if let Some(keep) = keep {
        for path in outdated_backups(to, &prefix, &backup.store, keep as usize)? {
            std::fs::remove_file(&path)
                .map_err(|error| CommandError::failed(format_args!("{}: {error}", path.display())))?;
            output += &format!("removed {}\n", path.display());
        }
    }
    print_output(&output)
}

/// Removes files left by killed backups: later ones have other names and would never replace them.
fn remove_interrupted(folder: &Path, prefix: &str) -> Result<(), CommandError> {
    for name in file_names(folder)? {
        if let Some(backup_name) = name.strip_suffix(".partial").filter(|name| is_own_backup(name, prefix)) {
            // A backup that is being written is locked and therefore left alone.
            drop(transfer::PartialStoreFile::open_leftover(&folder.join(backup_name)));
        }
    }
    Ok(())
}

fn file_names(folder: &Path) -> Result<Vec<String>, CommandError> {
    let folder_error =
        |error: std::io::Error| CommandError::failed(format_args!("{}: {error}", folder.display()));
    let entries: Vec<_> =
        std::fs::read_dir(folder).and_then(|entries| entries.collect()).map_err(folder_error)?;
    Ok(entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn is_own_backup(name: &str, prefix: &str) -> bool {
    name.starts_with(prefix) && name.ends_with(BACKUP_SUFFIX)
}

/// The backups of this store that `backup` itself named, except for the newest `keep`.
fn outdated_backups(
    folder: &Path,
    prefix: &str,
    store: &str,
    keep: usize,
) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    for name in file_names(folder)?.iter().filter(|name| is_own_backup(name, prefix)) {
        let path = folder.join(name);
        // Only files labelled as a backup of this store.
        if let Some((source, label)) = transfer::read_label(&path)
            && source == store
        {
            found.push((label.at, path));
        }
    }
    found.sort();
    let outdated = found.len().saturating_sub(keep);
    Ok(found.into_iter().take(outdated).map(|(_, path)| path).collect())
}
