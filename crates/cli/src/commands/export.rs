//! `trefoil export`: writes all resources or one to a file, a folder or a pipe.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};

use trefoil_application::App;
use trefoil_data::export::{self, ExportRequest};
use trefoil_data::export_target::{ExportTarget, is_pipe_or_device};
use trefoil_data::{DataFormat, ResourceCatalog};
use trefoil_engine::ResolverRegistry;
use trefoil_server::StartError;
use trefoil_server::command_store::{self, CommandAccess};
use trefoil_server::load_application::{LoadedApplication, load_application};

use crate::application_argument::{folder_argument, open_app_and_config};
use crate::command_error::CommandError;
use crate::setting_flags;
use crate::terminal_output::print_note;

pub fn command() -> Command {
    let to = Arg::new("to").long("to").value_name("FILE|FOLDER|-").help(
        "Output: a file for one resource, a folder with one file per resource, or - for standard output [-]",
    );
    let command = Command::new("export")
        .about("Export records and lists as NDJSON or CSV")
        .arg(folder_argument())
        .args([resource_argument(), format_argument(), to])
        .after_help(
            "The export is a consistent snapshot, even during writes. On standard output or in a single file, all resources are one stream whose lines name their resource.",
        );
    setting_flags::add_setting_flags(command, |setting| ["data", "database"].contains(&setting.name))
}

pub fn resource_argument() -> Arg {
    Arg::new("resource").long("resource").value_name("PATH").help("Only this resource, such as `users` [all]")
}

pub fn format_argument() -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(["ndjson", "csv"]))
        .help("Format of the rows [from the file extension, otherwise ndjson]")
}

/// The value of `--format`, if there is one.
pub fn requested_format(matches: &ArgMatches) -> Option<DataFormat> {
    matches.get_one::<String>("format").and_then(|name| DataFormat::from_name(name))
}

/// The application and its resources, before any store is opened.
pub fn load_catalog(
    app: &App,
    registry: &ResolverRegistry,
) -> Result<(LoadedApplication, ResourceCatalog), CommandError> {
    let application = load_application(app, registry)
        .map_err(|diagnostics| CommandError::Start(StartError::from_diagnostics(app, &diagnostics)))?;
    let lists: Vec<String> = app.manifest.plain_lists.iter().map(|list| list.name().to_owned()).collect();
    let catalog = ResourceCatalog::new(application.model.clone(), &lists);
    Ok((application, catalog))
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let (app, resolved) = open_app_and_config(matches)?;
    let (application, catalog) = load_catalog(&app, registry)?;
    let request = export_request(matches, &catalog)?;
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failed)?;
    let exported = runtime.block_on(async {
        let store = command_store::open_command_store(
            &app,
            &resolved.config,
            registry,
            &application,
            CommandAccess::Read,
        )
        .await;
        let store = store.map_err(CommandError::Start)?;
        export::run(&store.engine, &catalog, request).await.map_err(CommandError::Failed)
    });
    runtime.shutdown_background();
    print_note(&exported?);
    Ok(())
}

fn export_request(matches: &ArgMatches, catalog: &ResourceCatalog) -> Result<ExportRequest, CommandError> {
    let to = matches.get_one::<String>("to").filter(|to| *to != "-").map(PathBuf::from);
    let requested = requested_format(matches);
    let by_extension = to.as_deref().and_then(DataFormat::from_path);
    let format = requested.or(by_extension).unwrap_or(DataFormat::Ndjson);
    if let Some(path) = matches.get_one::<String>("resource") {
        let resources = vec![catalog.find(path).map_err(CommandError::usage)?];
        let target = to.map_or(ExportTarget::Stdout, ExportTarget::File);
        return Ok(ExportRequest { resources, format, target, is_stream: false });
    }
    let resources = catalog.in_reference_order();
    let is_file =
        |path: &Path| is_pipe_or_device(path) || !path.is_dir() && DataFormat::from_path(path).is_some();
    let target = match to {
        None => ExportTarget::Stdout,
        Some(path) if is_file(&path) => ExportTarget::File(path),
        Some(path) => ExportTarget::Folder(path),
    };
    match (target, format) {
        (target @ ExportTarget::Folder(_), format) => {
            Ok(ExportRequest { resources, format, target, is_stream: false })
        }
        (target, DataFormat::Ndjson) => Ok(ExportRequest { resources, format, target, is_stream: true }),
        (ExportTarget::Stdout | ExportTarget::File(_), DataFormat::Csv) => Err(CommandError::usage(
            "a CSV file holds one resource: give a folder with --to, or one resource with --resource",
        )),
    }
}
