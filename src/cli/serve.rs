//! `trefoil serve`: the application and its settings, handed to the server.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, flags, folder_argument, open, say};
use crate::app::App;
use crate::config::Config;

pub fn command() -> Command {
    let command = Command::new("serve")
        .about("Serve an application folder")
        .arg(folder_argument())
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Print each setting, its value and where it came from, and stop"),
        )
        .after_help(
            "Each setting is also an environment variable (--port: TREFOIL_PORT) and a key of trefoil.toml \
             (port; --limit-body: body under [limits]), in this precedence.",
        );
    flags::with_settings(command, |_| true)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let app = open(matches)?;
    let settled = flags::settle(matches, &app)?;
    if matches.get_flag("print-config") {
        return say(&settled.to_string());
    }
    serve(app, settled.config)
}

fn serve(app: App, config: Config) -> Result<(), Failure> {
    let _ = (app, config);
    Err(Failure::run("the server is not part of this build"))
}
