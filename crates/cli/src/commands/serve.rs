//! `trefoil serve`: the application and its settings, handed to the server.

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::{AppSource, Failure, folder_argument, say, setting_flags};
use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::Registry;
use trefoil_server::embed::Trefoil;
use trefoil_server::logging;

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
    setting_flags::with_settings(command, |_| true)
}

pub fn run(matches: &ArgMatches, registry: Registry) -> Result<(), Failure> {
    let source = AppSource::of(matches);
    let app = source.open()?;
    let settled = setting_flags::settle(matches, &app)?;
    if matches.get_flag("print-config") {
        source.tell(&app);
        return say(&settled.to_string());
    }
    logging::start(settled.config.log_format);
    if let Some(line) = source.line(&app) {
        tracing::info!("{line}");
    }
    serve(app, settled.config, registry)
}

fn serve(app: App, config: Config, registry: Registry) -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::run)?;
    let served = runtime.block_on(Trefoil::app(app).config(config).registry(registry).serve());
    // Queries that were cut may still sit in a reader's thread; nobody waits for them.
    runtime.shutdown_background();
    logging::flush();
    served.map_err(Failure::Start)
}
