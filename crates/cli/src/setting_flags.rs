//! The table of settings as flags, and what was said about each on the command line.

use clap::{Arg, ArgMatches, Command};

use crate::command_error::CommandError;
use trefoil_application::App;
use trefoil_config::{ResolvedConfig, SETTINGS, Setting};

/// The command with a flag for every setting that `wanted` picks.
pub fn add_setting_flags(mut command: Command, wanted: fn(&Setting) -> bool) -> Command {
    for setting in SETTINGS.iter().filter(|setting| wanted(setting)) {
        command = command.arg(setting_flag(setting));
    }
    command
}

fn setting_flag(setting: &'static Setting) -> Arg {
    let default = setting.default();
    let default = if default.is_empty() { "none" } else { &default };
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.hint)
        .help(format!("{} [{default}]", setting.help))
        .help_heading(if setting.is_limit() { "Limits" } else { "Settings" });
    if !setting.is_switch {
        return arg;
    }
    // `--open` alone says yes; the = keeps `--open my-app` from reading the folder as a yes or no.
    arg.num_args(0..=1).require_equals(true).default_missing_value("true")
}

/// What flags, environment and the application's `trefoil.toml` come to together.
pub fn resolve_config(matches: &ArgMatches, app: &App) -> Result<ResolvedConfig, CommandError> {
    app.resolve_config(given_flags(matches)).map_err(CommandError::Usage)
}

fn given_flags(matches: &ArgMatches) -> Vec<(&'static Setting, String)> {
    let given = |setting: &'static Setting| {
        // A subcommand has only some of the flags.
        let value = matches.try_get_one::<String>(setting.name).ok().flatten()?;
        Some((setting, value.clone()))
    };
    SETTINGS.iter().filter_map(given).collect()
}
