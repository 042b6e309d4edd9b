//! `trefoil migrate`: shows or carries out what it takes to bring a store to the schema.

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};

use super::{Failure, flags, folder_argument, open};
use crate::app::App;
use crate::config::Config;

pub fn command() -> Command {
    let plan = Arg::new("plan")
        .long("plan")
        .action(ArgAction::SetTrue)
        .help("Show every step and the rows it touches");
    let apply = Arg::new("apply").long("apply").action(ArgAction::SetTrue).help("Carry the steps out");
    let allow_drop = Arg::new("allow-drop")
        .long("allow-drop")
        .value_name("TYPE[.FIELD]")
        .action(ArgAction::Append)
        .conflicts_with("plan")
        .help("Agree to lose this type or field; once for each loss");
    let command = Command::new("migrate")
        .about("Bring the stored records to a changed schema")
        .arg(folder_argument())
        .args([plan, apply, allow_drop])
        .group(ArgGroup::new("what").args(["plan", "apply"]).required(true));
    flags::with_settings(command, |setting| ["data", "database"].contains(&setting.name))
}

/// What is to become of the plan.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Plan,
    /// With the losses that were agreed to, as `Type` or `Type.field`.
    Apply {
        allowed: Vec<String>,
    },
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let app = open(matches)?;
    let settled = flags::settle(matches, &app)?;
    let step = if matches.get_flag("plan") {
        Step::Plan
    } else {
        let allowed = matches.get_many::<String>("allow-drop").into_iter().flatten().cloned();
        Step::Apply { allowed: allowed.collect() }
    };
    migrate(app, settled.config, step)
}

fn migrate(app: App, config: Config, step: Step) -> Result<(), Failure> {
    let _ = (app, config, step);
    Err(Failure::run("migration is not part of this build"))
}
