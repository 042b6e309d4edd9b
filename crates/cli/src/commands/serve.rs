//! `trefoil serve`: starts the server with the application and its settings.

use clap::{Arg, ArgAction, ArgMatches, Command};

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::ResolverRegistry;
use trefoil_server::logging;
use trefoil_server::server_builder::Trefoil;

use crate::application_argument::{AppSource, folder_argument};
use crate::command_error::CommandError;
use crate::setting_flags;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let command = Command::new("serve")
        .about("Serve an application folder")
        .arg(folder_argument())
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Print each setting with its value and origin, and exit"),
        )
        .after_help(
            "Each setting can also be given as an environment variable (--port: TREFOIL_PORT) or as a key in trefoil.toml (port; --limit-body: body under [limits]), in this order of precedence.",
        );
    setting_flags::add_setting_flags(command, |_| true)
}

pub fn run(matches: &ArgMatches, registry: ResolverRegistry) -> Result<(), CommandError> {
    let source = AppSource::of(matches);
    let app = source.open()?;
    let resolved = setting_flags::resolve_config(matches, &app)?;
    if matches.get_flag("print-config") {
        source.print_source(&app);
        return print_output(&resolved.to_string());
    }
    logging::start_logging(resolved.config.log_format);
    if let Some(line) = source.line(&app) {
        tracing::info!("{line}");
    }
    serve(app, resolved.config, registry)
}

fn serve(app: App, config: Config, registry: ResolverRegistry) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Runtime::new().map_err(CommandError::failed)?;
    let result = runtime.block_on(Trefoil::app(app).config(config).registry(registry).serve());
    // Aborted queries may still run in reader threads; the process does not wait for them.
    runtime.shutdown_background();
    logging::flush();
    result.map_err(CommandError::Start)
}
