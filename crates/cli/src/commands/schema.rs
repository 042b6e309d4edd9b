//! `trefoil schema`: prints the schema as it is served, or writes its generated part into a file.

use std::path::Path;
use std::{fs, io};

use clap::{Arg, ArgAction, ArgMatches, Command};

use trefoil_application::{App, AppOrigin};
use trefoil_atomic_files::AtomicReplacement;
use trefoil_engine::ResolverRegistry;
use trefoil_server::StartError;
use trefoil_server::load_application::{LoadedApplication, load_application};

use crate::application_argument::{folder_argument, open_app};
use crate::command_error::CommandError;
use crate::terminal_output::print_output;

/// The file that `--write` makes.
const GENERATED_FILE: &str = "graphql/generated.graphqls";

const FILE_HEADER: &str = "# Generated from the types by `trefoil schema --write`, and yours to change.\n\n";

pub fn command() -> Command {
    let write = Arg::new("write")
        .long("write")
        .action(ArgAction::SetTrue)
        .help("Write the generated operations to graphql/generated.graphqls, to change them from then on");
    let force = Arg::new("force")
        .long("force")
        .action(ArgAction::SetTrue)
        .requires("write")
        .help("Replace the file that an earlier --write made");
    Command::new("schema")
        .about("Print the schema as it is served, with the operations that are generated from its types")
        .arg(folder_argument())
        .arg(write)
        .arg(force)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let app = open_app(matches)?;
    if !matches.get_flag("write") {
        return print_output(&format!("{}\n", load(&app, registry)?.model.sdl.trim_end()));
    }
    write_generated(app, registry, matches.get_flag("force"))
}

fn load(app: &App, registry: &ResolverRegistry) -> Result<LoadedApplication, CommandError> {
    load_application(app, registry)
        .map_err(|mistakes| CommandError::Start(StartError::from_diagnostics(app, &mistakes)))
}

fn write_generated(mut app: App, registry: &ResolverRegistry, replace: bool) -> Result<(), CommandError> {
    let AppOrigin::Folder(folder) = app.origin.clone() else {
        return Err(CommandError::usage("the built-in sample has no folder to write to; name one"));
    };
    let path = folder.join(GENERATED_FILE);
    let shown = path.display();
    if path.exists() && !replace {
        return Err(CommandError::usage(format!(
            "{shown} already exists; add --force to replace it with what its types give now"
        )));
    }
    // What is to be replaced does not count as declared.
    app.schema.retain(|file| file.name != GENERATED_FILE);
    let model = load(&app, registry)?.model;
    if model.generated.is_empty() {
        return Err(CommandError::usage(
            "nothing is generated, because the schema declares its operations; add `extend schema @generate`",
        ));
    }
    replace_file(&path, &format!("{FILE_HEADER}{}", model.generated))
        .map_err(|error| CommandError::failed(format!("{shown}: {error}")))?;
    print_output(&format!("wrote {shown}; it is part of the schema now, and yours to change\n"))
}

/// A running server never reads half of the file.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut replacement = AtomicReplacement::create_file(path)?;
    fs::write(&replacement.partial_path, text)?;
    replacement.commit()
}
