//! The settings as command line flags.

use clap::{Arg, ArgMatches, Command};

use trefoil_application::App;
use trefoil_config::{ResolvedConfig, SETTINGS, Setting};

use crate::command_error::CommandError;

/// The command with a flag for every setting that `is_included` accepts.
pub fn add_setting_flags(mut command: Command, is_included: fn(&Setting) -> bool) -> Command {
    for setting in SETTINGS.iter().filter(|setting| is_included(setting)) {
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
    // `--open` alone means true; the required = keeps `--open my-app` from taking the folder as its value.
    arg.num_args(0..=1).require_equals(true).default_missing_value("true")
}

/// The settings from flags, environment and the application's `trefoil.toml`.
pub fn resolve_config(matches: &ArgMatches, app: &App) -> Result<ResolvedConfig, CommandError> {
    app.resolve_config(present_flags(matches)).map_err(CommandError::Usage)
}

fn present_flags(matches: &ArgMatches) -> Vec<(&'static Setting, String)> {
    let value_of = |setting: &'static Setting| {
        // A subcommand has only some of the flags.
        let value = matches.try_get_one::<String>(setting.name).ok().flatten()?;
        Some((setting, value.clone()))
    };
    SETTINGS.iter().filter_map(value_of).collect()
}
