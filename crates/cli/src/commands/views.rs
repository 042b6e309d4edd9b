//! `trefoil views`: lists the templates of an application's pages and copies built-in ones for editing.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Arg, ArgMatches, Command, value_parser};

use trefoil_application::{App, EndpointReply};
use trefoil_model::naming::names;
use trefoil_pages::templates::BUILT_IN_VIEWS;

use crate::application_argument::{folder_argument, open_app};
use crate::command_error::CommandError;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let name = Arg::new("name").value_name("NAME").required(true).help("The template, such as `list`");
    let folder =
        Arg::new("folder").value_name("FOLDER").default_value(".").value_parser(value_parser!(PathBuf));
    let eject = Command::new("eject")
        .about("Copy a built-in template into views/, where it overrides the built-in one")
        .arg(name)
        .arg(folder.help("The application folder"));
    Command::new("views")
        .about("List the page templates: built in, overridden or added by the application")
        .arg(folder_argument())
        .subcommand(eject)
        .args_conflicts_with_subcommands(true)
}

pub fn run(matches: &ArgMatches) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some((_, matches)) => eject(matches),
        None => print_output(&list_templates(&open_app(matches)?)),
    }
}

fn list_templates(app: &App) -> String {
    let own = || app.view_names().map(|name| format!("{name}.html"));
    let built_in = BUILT_IN_VIEWS.iter().map(|(name, _)| (*name).to_owned());
    let others = own().filter(|name| !BUILT_IN_VIEWS.iter().any(|(known, _)| known == name));
    let names: Vec<String> = built_in.chain(others).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let line = |name: &String| {
        let is_built_in = BUILT_IN_VIEWS.iter().any(|(known, _)| known == name);
        let origin = match (is_built_in, own().any(|own| own == *name)) {
            (true, false) => "built in".to_owned(),
            (true, true) => format!("overridden by views/{name}"),
            (false, _) => where_shown(app, name),
        };
        format!("{name:<width$}  {origin}\n")
    };
    names.iter().map(line).collect()
}

/// Where a view of the application's own is shown.
fn where_shown(app: &App, name: &str) -> String {
    let stem = name.trim_end_matches(".html");
    let endpoints = app
        .manifest
        .text_endpoints
        .iter()
        .filter(|text| matches!(&text.reply, EndpointReply::View(shown) if shown == stem));
    let paths: Vec<&str> = endpoints.map(|text| text.path.as_str()).collect();
    if paths.is_empty() { "own".to_owned() } else { format!("added, at {}", paths.join(", ")) }
}

fn eject(matches: &ArgMatches) -> Result<(), CommandError> {
    let template = matches.get_one::<String>("name").expect("clap requires it");
    let folder = matches.get_one::<PathBuf>("folder").expect("it has a default");
    let name = if template.ends_with(".html") { template.clone() } else { format!("{template}.html") };
    let Some((name, text)) = BUILT_IN_VIEWS.iter().find(|(known, _)| *known == name) else {
        let nearest = names::nearest_name(&name, BUILT_IN_VIEWS.iter().map(|(name, _)| *name));
        let hint = match nearest {
            Some(nearest) => format!("did you mean `{}`?", nearest.trim_end_matches(".html")),
            None => "`trefoil views` lists them".to_owned(),
        };
        return Err(CommandError::usage(format!("unknown built-in template `{template}`; {hint}")));
    };
    if !folder.is_dir() {
        return Err(CommandError::usage(format!("{}: folder not found", folder.display())));
    }
    let path = folder.join("views").join(name);
    let shown = path.display();
    write_new(&path, text).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return CommandError::usage(format!("{shown} already exists; remove it first"));
        }
        CommandError::failed(format!("{shown}: {error}"))
    })?;
    print_output(&format!("wrote {shown}; remove it to use the built-in template again\n"))
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}
