//! `trefoil export`: a whole application or one resource, to a file, a folder or a pipe.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};

use crate::{Failure, folder_argument, remark, setting_flags, settle};
use trefoil_application::App;
use trefoil_data::export;
use trefoil_data::export::Wanted;
use trefoil_data::export_target::{Target, is_special};
use trefoil_data::{Format, Inventory};
use trefoil_engine::Registry;
use trefoil_server::StartError;
use trefoil_server::command_store;
use trefoil_server::command_store::Purpose;
use trefoil_server::load_application::{Understood, understand};

pub fn command() -> Command {
    let to = Arg::new("to").long("to").value_name("FILE|FOLDER|-").help(
        "Where to: a file for one resource, a folder with a file each for all, - for standard output [-]",
    );
    let command = Command::new("export")
        .about("Write records and lists as NDJSON or CSV")
        .arg(folder_argument())
        .args([resource_argument(), format_argument(), to])
        .after_help(
            "Everything is of one moment, whoever writes meanwhile. To standard output, or to a file, all resources \
             go as one stream whose lines name their resource.",
        );
    setting_flags::with_settings(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn resource_argument() -> Arg {
    Arg::new("resource").long("resource").value_name("PATH").help("Only this one, such as `users` [all]")
}

pub fn format_argument() -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(["ndjson", "csv"]))
        .help("How rows are written [as the file's name says, else ndjson]")
}

/// What was said, if anything was.
pub fn format(matches: &ArgMatches) -> Option<Format> {
    matches.get_one::<String>("format").and_then(|name| Format::named(name))
}

/// What the application has, before any store is looked at.
pub fn inventory(app: &App, registry: &Registry) -> Result<(Understood, Inventory), Failure> {
    let understood = understand(app, registry)
        .map_err(|diagnostics| Failure::Start(StartError::schema(app, &diagnostics)))?;
    let lists: Vec<String> = app.manifest.lists.iter().map(|list| list.name().to_owned()).collect();
    let inventory = Inventory::new(understood.model.clone(), &lists);
    Ok((understood, inventory))
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, settled) = settle(matches)?;
    let (understood, inventory) = inventory(&app, registry)?;
    let wanted = wanted(matches, &inventory)?;
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::run)?;
    let exported = runtime.block_on(async {
        let store = command_store::open(&app, &settled.config, registry, &understood, Purpose::Read).await;
        let store = store.map_err(Failure::Start)?;
        export::run(&store.engine, &inventory, wanted).await.map_err(Failure::Run)
    });
    runtime.shutdown_background();
    remark(&exported?);
    Ok(())
}

fn wanted(matches: &ArgMatches, inventory: &Inventory) -> Result<Wanted, Failure> {
    let to = matches.get_one::<String>("to").filter(|to| *to != "-").map(PathBuf::from);
    let said = format(matches);
    let by_name = to.as_deref().and_then(Format::of);
    let format = said.or(by_name).unwrap_or(Format::Ndjson);
    if let Some(path) = matches.get_one::<String>("resource") {
        let resources = vec![inventory.named(path).map_err(Failure::usage)?];
        let target = to.map_or(Target::Stdout, Target::File);
        return Ok(Wanted { resources, format, target, is_stream: false });
    }
    let resources = inventory.all();
    let is_file = |path: &Path| is_special(path) || !path.is_dir() && Format::of(path).is_some();
    let target = match to {
        None => Target::Stdout,
        Some(path) if is_file(&path) => Target::File(path),
        Some(path) => Target::Folder(path),
    };
    match (target, format) {
        (target @ Target::Folder(_), format) => Ok(Wanted { resources, format, target, is_stream: false }),
        (target, Format::Ndjson) => Ok(Wanted { resources, format, target, is_stream: true }),
        (Target::Stdout | Target::File(_), Format::Csv) => Err(Failure::usage(
            "CSV holds one resource a file: name a folder with --to, or one resource with --resource",
        )),
    }
}
