//! `trefoil import`: imports rows from files or a pipe into the store, all of them or none.

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use trefoil_config::{SettingSyntax, SizeSyntax};
use trefoil_data::import::{self, ImportOptions};
use trefoil_data::import_source::{self, ImportSource};
use trefoil_data::text_decoder::FileEncoding;
use trefoil_data::{DataFormat, ResourceCatalog};
use trefoil_engine::ResolverRegistry;
use trefoil_server::command_store::{self, CommandAccess};

use crate::application_argument::{folder_argument, open_app_and_config};
use crate::command_error::CommandError;
use crate::commands::export::{format_argument, load_catalog, requested_format, resource_argument};
use crate::setting_flags;
use crate::terminal_output::print_note;

/// How many bad rows are reported.
const DEFAULT_MAX_ERRORS: &str = "100";
/// The longest row that is accepted.
const DEFAULT_MAX_ROW: &str = "16 MiB";

pub fn command() -> Command {
    let from = Arg::new("from")
        .long("from")
        .value_name("FILE|FOLDER|-")
        .help("Input: a file, a folder with one file per resource, or - for standard input [-]");
    let by = Arg::new("by")
        .long("by")
        .value_name("FIELD")
        .help("Update the existing record with the same value in this field, which is `id` or @unique");
    let skip_bad = Arg::new("skip-bad")
        .long("skip-bad")
        .action(ArgAction::SetTrue)
        .help("Skip invalid rows and report them");
    let max_errors = Arg::new("max-errors")
        .long("max-errors")
        .value_name("N")
        .default_value(DEFAULT_MAX_ERRORS)
        .value_parser(value_parser!(u32).range(1..))
        .help("Maximum number of invalid rows to report");
    let encoding = Arg::new("encoding")
        .long("encoding")
        .value_name("NAME")
        .value_parser(FileEncoding::from_name)
        .help("Encoding of the files, for example latin1 or utf-16 [utf-8]");
    let max_row = Arg::new("max-row")
        .long("max-row")
        .value_name("SIZE")
        .default_value(DEFAULT_MAX_ROW)
        .value_parser(|text: &str| SizeSyntax::read(text))
        .help("Maximum size of a row");
    let command = Command::new("import")
        .about("Import records and lists from NDJSON or CSV, in one transaction")
        .arg(folder_argument())
        .args([resource_argument(), format_argument(), from, by, skip_bad, encoding, max_errors, max_row]);
    setting_flags::add_setting_flags(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    let (application, catalog) = load_catalog(&app, registry)?;
    let mut sources = import_sources(matches, &catalog)?;
    let encoding = matches.get_one::<FileEncoding>("encoding").copied();
    sources.iter_mut().for_each(|source| source.encoding = encoding);
    let options = import_options(matches);
    if let (Some(field), Some(path)) = (&options.upsert_field, matches.get_one::<String>("resource")) {
        import::check_upsert_field(&catalog, path, field).map_err(CommandError::usage)?;
    } else if options.upsert_field.as_ref().is_some_and(|field| field != "id") {
        return Err(CommandError::usage("--by needs one resource: add --resource"));
    }
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failed)?;
    let imported = runtime.block_on(async {
        let store = command_store::open_command_store(
            &app,
            &resolved.config,
            registry,
            &application,
            CommandAccess::Write,
        )
        .await;
        let store = store.map_err(CommandError::Start)?;
        let imported = import::run(&store.engine, &catalog, sources, options).await;
        imported.map_err(|lines| CommandError::Failed(lines.join("\nerror: ")))
    });
    // The runtime may still block on a pipe without a writer.
    runtime.shutdown_background();
    let imported = imported?;
    imported.errors.iter().for_each(|line| print_note(&format!("skipped: {line}")));
    imported.notes.iter().for_each(|line| print_note(&format!("note: {line}")));
    print_note(&imported.summary);
    Ok(())
}

fn import_options(matches: &ArgMatches) -> ImportOptions {
    ImportOptions {
        upsert_field: matches.get_one::<String>("by").cloned(),
        skip_bad: matches.get_flag("skip-bad"),
        max_errors: matches.get_one::<u32>("max-errors").map_or(usize::MAX, |most| *most as usize),
        max_row_bytes: matches.get_one::<usize>("max-row").copied().unwrap_or(usize::MAX / 2),
    }
}

fn import_sources(
    matches: &ArgMatches,
    catalog: &ResourceCatalog,
) -> Result<Vec<ImportSource>, CommandError> {
    let requested = requested_format(matches);
    let resource = matches.get_one::<String>("resource").map(|path| catalog.find(path));
    let resource = resource.transpose().map_err(CommandError::usage)?;
    let from = matches.get_one::<String>("from").filter(|from| *from != "-").map(PathBuf::from);
    let source = match from {
        None if stdin().is_terminal() => {
            return Err(CommandError::usage("no input: give a file or folder with --from, or use a pipe"));
        }
        None => ImportSource::from_stdin(resource, requested.unwrap_or(DataFormat::Ndjson)),
        Some(path) if path.is_dir() => {
            if resource.is_some() {
                return Err(CommandError::usage(format!(
                    "{} is a folder; give a file in it",
                    path.display()
                )));
            }
            return import_source::sources_in_folder(catalog, &path, requested).map_err(CommandError::Usage);
        }
        Some(path) if !path.exists() => {
            return Err(CommandError::usage(format!("{} does not exist", path.display())));
        }
        Some(path) => {
            let format = requested.or(DataFormat::of_import(&path)).unwrap_or(DataFormat::Ndjson);
            ImportSource::from_file(&path, resource, format)
        }
    };
    match (source.format, &source.resource) {
        (DataFormat::Csv, None) => {
            Err(CommandError::usage("a CSV file holds one resource: name it with --resource"))
        }
        (DataFormat::Csv, Some(_)) | (DataFormat::Ndjson, _) => Ok(vec![source]),
    }
}
