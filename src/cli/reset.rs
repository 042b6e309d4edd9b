//! `trefoil reset`: empties the store and seeds it again, once somebody has said that this is meant.

use std::io::{IsTerminal, Write, stdin, stdout};

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Failure, folder_argument, say, stores};
use crate::app::App;
use crate::config::Config;
use crate::engine::Registry;
use crate::server::life;
use crate::sql::transfer::{self, Place};

pub fn command() -> Command {
    let yes = Arg::new("yes").long("yes").action(ArgAction::SetTrue).help("Do not ask");
    let command = Command::new("reset")
        .about("Empty the store and load the seeds again")
        .arg(folder_argument())
        .arg(yes);
    stores::with_store(command)
}

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let (app, config) = stores::settle(matches)?;
    let place = stores::place(&config)?;
    if !matches.get_flag("yes") && !is_meant(&place)? {
        return say("nothing was changed\n");
    }
    stores::make_folder(&place)?;
    stores::run(reset(&app, &config, registry, &place))??;
    say(&format!("{place}: empty, and the seeds of {} loaded\n", app.name))
}

fn is_meant(place: &Place) -> Result<bool, Failure> {
    if !stdin().is_terminal() {
        return Err(Failure::usage("reset removes every record: --yes says that this is meant"));
    }
    let mut out = stdout().lock();
    let asked =
        write!(out, "This removes every record in {place}. Type yes to go on: ").and_then(|()| out.flush());
    asked.map_err(Failure::run)?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(Failure::run)?;
    Ok(answer.trim() == "yes")
}

/// The seeds are tried first: a mistake in them must not cost the records.
async fn reset(app: &App, config: &Config, registry: &Registry, place: &Place) -> Result<(), Failure> {
    life::rehearse(app, registry).await.map_err(Failure::Start)?;
    match place {
        Place::File(path) => life::make_anew(app, config, registry, path).await.map_err(Failure::Start),
        Place::Postgres(url) => {
            transfer::empty(url).await.map_err(Failure::run)?;
            life::ready(app, config, registry).await.map(drop).map_err(Failure::Start)
        }
    }
}
