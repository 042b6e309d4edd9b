//! `trefoil import`: rows from files or a pipe into the store, all of them or none.

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::commands::export::{format, format_argument, inventory, resource_argument};
use crate::{Failure, folder_argument, remark, setting_flags, settle};
use trefoil_config::{Kind, Size};
use trefoil_data::import;
use trefoil_data::import::Options;
use trefoil_data::import_source;
use trefoil_data::import_source::Source;
use trefoil_data::{Format, Inventory};
use trefoil_engine::Registry;
use trefoil_server::command_store;
use trefoil_server::command_store::Purpose;

/// How many bad rows are told.
const MOST: &str = "100";
/// The longest row that is read.
const LONGEST: &str = "16 MiB";

pub fn command() -> Command {
    let from = Arg::new("from")
        .long("from")
        .value_name("FILE|FOLDER|-")
        .help("Where from: a file, a folder with a file for each resource, - for standard input [-]");
    let by = Arg::new("by").long("by").value_name("FIELD").help(
        "Rows change the record that has the same value in this field, if there is one; `id` or a @unique field",
    );
    let skip_bad = Arg::new("skip-bad")
        .long("skip-bad")
        .action(ArgAction::SetTrue)
        .help("Leave out rows that do not fit, and tell which");
    let most = Arg::new("max-errors")
        .long("max-errors")
        .value_name("N")
        .default_value(MOST)
        .value_parser(value_parser!(u32).range(1..))
        .help("How many bad rows are told");
    let longest = Arg::new("max-row")
        .long("max-row")
        .value_name("SIZE")
        .default_value(LONGEST)
        .value_parser(|text: &str| Size::read(text))
        .help("The longest row that is read");
    let command = Command::new("import")
        .about("Bring records and lists in from NDJSON or CSV, all of them or none")
        .arg(folder_argument())
        .args([resource_argument(), format_argument(), from, by, skip_bad, most, longest]);
    setting_flags::with_settings(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, settled) = settle(matches)?;
    let (understood, inventory) = inventory(&app, registry)?;
    let sources = sources(matches, &inventory)?;
    let options = options(matches);
    if let (Some(by), Some(path)) = (&options.by, matches.get_one::<String>("resource")) {
        import::check_by(&inventory, path, by).map_err(Failure::usage)?;
    } else if options.by.as_ref().is_some_and(|by| by != "id") {
        return Err(Failure::usage("--by names a field of one resource: say which with --resource"));
    }
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::run)?;
    let imported = runtime.block_on(async {
        let store = command_store::open(&app, &settled.config, registry, &understood, Purpose::Write).await;
        let store = store.map_err(Failure::Start)?;
        let imported = import::run(&store.engine, &inventory, sources, options).await;
        imported.map_err(|lines| Failure::Run(lines.join("\nerror: ")))
    });
    // A pipe that nobody writes to any more may still be waited for.
    runtime.shutdown_background();
    let imported = imported?;
    imported.complaints.iter().for_each(|line| remark(&format!("left out: {line}")));
    remark(&imported.summary);
    Ok(())
}

fn options(matches: &ArgMatches) -> Options {
    Options {
        by: matches.get_one::<String>("by").cloned(),
        skip_bad: matches.get_flag("skip-bad"),
        most_complaints: matches.get_one::<u32>("max-errors").map_or(usize::MAX, |most| *most as usize),
        longest_row: matches.get_one::<usize>("max-row").copied().unwrap_or(usize::MAX / 2),
    }
}

fn sources(matches: &ArgMatches, inventory: &Inventory) -> Result<Vec<Source>, Failure> {
    let said = format(matches);
    let resource = matches.get_one::<String>("resource").map(|path| inventory.named(path));
    let resource = resource.transpose().map_err(Failure::usage)?;
    let from = matches.get_one::<String>("from").filter(|from| *from != "-").map(PathBuf::from);
    let source = match from {
        None if stdin().is_terminal() => {
            return Err(Failure::usage("nothing comes in: name a file or folder with --from, or use a pipe"));
        }
        None => Source::stdin(resource, said.unwrap_or(Format::Ndjson)),
        Some(path) if path.is_dir() => {
            if resource.is_some() {
                return Err(Failure::usage(format!("{} is a folder; name the file in it", path.display())));
            }
            return import_source::of_folder(inventory, &path, said).map_err(Failure::Usage);
        }
        Some(path) if !path.exists() => {
            return Err(Failure::usage(format!("{} does not exist", path.display())));
        }
        Some(path) => {
            let format = said.or(Format::of(&path)).unwrap_or(Format::Ndjson);
            Source::file(&path, resource, format)
        }
    };
    match (source.format, &source.resource) {
        (Format::Csv, None) => Err(Failure::usage("CSV holds one resource: name it with --resource")),
        (Format::Csv, Some(_)) | (Format::Ndjson, _) => Ok(vec![source]),
    }
}
