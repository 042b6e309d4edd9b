//! The command line: which subcommand, with what, and what comes of it.

mod application_argument;
mod command_error;
mod commands;
mod progress_bar;
mod setting_flags;
mod store_arguments;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::application_argument::{AppSource, folder_argument, open, settle};
pub use crate::command_error::CommandError;
use trefoil_engine::ResolverRegistry;

/// Does what the arguments say; the first is the program's own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_with(arguments, ResolverRegistry::default())
}

/// The same for a program that has resolvers of its own.
pub fn run_with(arguments: impl IntoIterator<Item = OsString>, registry: ResolverRegistry) -> ExitCode {
    let matches = match command().try_get_matches_from(default_to_serve(arguments.into_iter().collect())) {
        Ok(matches) => matches,
        Err(error) => {
            // Help goes to standard output and a mistake to standard error; if that is closed, nobody reads it.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(&matches, registry) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = write!(io::stderr().lock(), "{failure}");
            failure.exit_code()
        }
    }
}

fn dispatch(matches: &ArgMatches, registry: ResolverRegistry) -> Result<(), CommandError> {
    match matches.subcommand() {
        Some(("serve", matches)) => crate::commands::serve::run(matches, registry),
        Some(("check", matches)) => crate::commands::check::run(matches, &registry),
        Some(("new", matches)) => crate::commands::new_app::run(matches),
        Some(("migrate", matches)) => crate::commands::migrate::run(matches, &registry),
        Some(("views", matches)) => crate::commands::views::run(matches),
        Some(("export", matches)) => crate::commands::export::run(matches, &registry),
        Some(("import", matches)) => crate::commands::import::run(matches, &registry),
        Some(("backup", matches)) => crate::commands::backup::run(matches),
        Some(("restore", matches)) => crate::commands::restore::run(matches, &registry),
        Some(("move", matches)) => crate::commands::move_store::run(matches, &registry),
        Some(("seed", matches)) => crate::commands::seed::run(matches, &registry),
        Some(("reset", matches)) => crate::commands::reset::run(matches, &registry),
        Some((other, _)) => unreachable!("clap knows no subcommand {other}"),
        None => unreachable!("serve is what runs when nothing else is named"),
    }
}

fn command() -> Command {
    Command::new("trefoil")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A durable backend from a schema file. Without a command it serves the folder it is run in, or the built-in sample.")
        .subcommands([crate::commands::serve::command(), crate::commands::check::command(), crate::commands::new_app::command(), crate::commands::migrate::command(), crate::commands::views::command()])
        .subcommands([crate::commands::export::command(), crate::commands::import::command()])
        .subcommands([crate::commands::backup::command(), crate::commands::restore::command(), crate::commands::move_store::command(), crate::commands::seed::command(), crate::commands::reset::command()])
        .disable_help_subcommand(true)
        .override_usage("trefoil [serve] [OPTIONS]\n       trefoil serve my-app [OPTIONS]\n       trefoil <COMMAND>")
        .after_help("`trefoil --port 9000` is `trefoil serve --port 9000`.\nExit codes: 0 done, 1 failed or `check` found mistakes, 2 wrong command line, setting or folder.")
}

/// `trefoil` and `trefoil --port 9000` mean `serve`.
fn default_to_serve(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let own = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).map(|argument| argument.to_string_lossy());
    if first.is_none_or(|first| first.starts_with('-') && !own.contains(&first.as_ref())) {
        arguments.insert(arguments.len().min(1), "serve".into());
    }
    arguments
}

/// Writes what the command was asked for to standard output; a reader that has seen enough is no failure.
fn print_output(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Says something to the person at the terminal; standard output is for what was asked for.
fn print_note(text: &str) {
    if !text.is_empty() {
        // Nobody reads it: then nobody misses it.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn serve_is_what_runs_when_nothing_else_is_named() {
        let check = |given: &[&str], expected: &[&str]| {
            let given = given.iter().map(OsString::from).collect();
            let expected: Vec<OsString> = expected.iter().map(OsString::from).collect();
            assert_eq!(default_to_serve(given), expected);
        };
        check(&["trefoil"], &["trefoil", "serve"]);
        check(&["trefoil", "--port", "1"], &["trefoil", "serve", "--port", "1"]);
        check(&["trefoil", "--help"], &["trefoil", "--help"]);
        check(&["trefoil", "check"], &["trefoil", "check"]);
        check(&["trefoil", "my-app"], &["trefoil", "my-app"]);
        check(&[], &["serve"]);
    }
}
