//! The command line: parses the arguments, runs a subcommand and returns its exit code.
//!
//! The `trefoil` program calls [`run`]; programs with resolvers of their own call [`run_with`].

// The subcommands.
mod commands;

// Arguments and settings that several subcommands share.
mod application_argument;
mod setting_flags;
mod store_arguments;

// Errors, output and progress on the terminal.
mod command_error;
mod progress_bar;
mod terminal_output;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command};

use trefoil_engine::ResolverRegistry;

use crate::commands::{
    audit, backup, can, check, export, import, key, migrate, move_store, new_app, reset, restore, schema,
    seed, serve, user, views,
};

pub use crate::command_error::CommandError;

/// Runs the command line; the first argument is the program's own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_with(arguments, ResolverRegistry::default())
}

/// The same for a program with resolvers of its own.
pub fn run_with(arguments: impl IntoIterator<Item = OsString>, registry: ResolverRegistry) -> ExitCode {
    let matches = match command().try_get_matches_from(default_to_serve(arguments.into_iter().collect())) {
        Ok(matches) => matches,
        Err(error) => {
            // Help goes to standard output and errors to standard error; if that is closed, there is nowhere to report
            // it.
            let _ = error.print();
            if let Some(folder) = named_folder(&error) {
                let _ = writeln!(io::stderr().lock(), "To serve the folder: trefoil serve {folder}");
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(&matches, registry) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = write!(io::stderr().lock(), "{error}");
            error.exit_code()
        }
    }
}

fn dispatch(matches: &ArgMatches, registry: ResolverRegistry) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches, registry),
        Some(("check", matches)) => check::run(matches, &registry),
        Some(("schema", matches)) => schema::run(matches, &registry),
        Some(("new", matches)) => new_app::run(matches),
        Some(("migrate", matches)) => migrate::run(matches, &registry),
        Some(("views", matches)) => views::run(matches),
        Some(("export", matches)) => export::run(matches, &registry),
        Some(("import", matches)) => import::run(matches, &registry),
        Some(("key", matches)) => key::run(matches, &registry),
        Some(("user", matches)) => user::run(matches, &registry),
        Some(("can", matches)) => can::run(matches, &registry),
        Some(("audit", matches)) => audit::run(matches, &registry),
        Some(("backup", matches)) => backup::run(matches),
        Some(("restore", matches)) => restore::run(matches, &registry),
        Some(("move", matches)) => move_store::run(matches, &registry),
        Some(("seed", matches)) => seed::run(matches, &registry),
        Some(("reset", matches)) => reset::run(matches, &registry),
        Some((other, _)) => unreachable!("clap knows no subcommand {other}"),
        None => unreachable!("serve is what runs when nothing else is named"),
    }
}

fn command() -> Command {
    Command::new("trefoil")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Serves GraphQL, REST and web pages from a GraphQL schema. Without a command, serves the current folder or the built-in sample.")
        .subcommands([serve::command(), check::command(), schema::command(), new_app::command(), migrate::command(), views::command()])
        .subcommands([export::command(), import::command(), key::command(), user::command(), can::command(), audit::command()])
        .subcommands([backup::command(), restore::command(), move_store::command(), seed::command(), reset::command()])
        .disable_help_subcommand(true)
        .override_usage("trefoil [serve] [OPTIONS]\n       trefoil serve my-app [OPTIONS]\n       trefoil <COMMAND>")
        .after_help("`trefoil --port 9000` is short for `trefoil serve --port 9000`.\nExit codes: 0 success, 1 failure, mistakes found by `check` or a no of `can`, 2 invalid command line, setting or folder.")
}

/// `trefoil` and `trefoil --port 9000` mean `serve`.
fn default_to_serve(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let global_flags = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).map(|argument| argument.to_string_lossy());
    if first.is_none_or(|first| first.starts_with('-') && !global_flags.contains(&first.as_ref())) {
        arguments.insert(arguments.len().min(1), "serve".into());
    }
    arguments
}

/// The folder that stands where a subcommand was expected: `trefoil my-app`.
fn named_folder(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(name)) if Path::new(name).is_dir() => Some(name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn serve_is_the_default_command() {
        let check = |arguments: &[&str], expected: &[&str]| {
            let arguments = arguments.iter().map(OsString::from).collect();
            let expected: Vec<OsString> = expected.iter().map(OsString::from).collect();
            assert_eq!(default_to_serve(arguments), expected);
        };
        check(&["trefoil"], &["trefoil", "serve"]);
        check(&["trefoil", "--port", "1"], &["trefoil", "serve", "--port", "1"]);
        check(&["trefoil", "--help"], &["trefoil", "--help"]);
        check(&["trefoil", "check"], &["trefoil", "check"]);
        check(&["trefoil", "my-app"], &["trefoil", "my-app"]);
        check(&[], &["serve"]);
    }
}
