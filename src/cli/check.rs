//! `trefoil check`: every mistake in an application, for people or for programs.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use super::{Failure, folder_argument, open, say};
use crate::app::Mistake;

pub fn command() -> Command {
    let format = Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(["human", "json"]))
        .default_value("human")
        .help("How to report");
    Command::new("check")
        .about("Report every mistake in an application folder, and what each operation does")
        .arg(folder_argument())
        .arg(format)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let mistakes = match open(matches) {
        Ok(_) => Vec::new(),
        Err(Failure::Application(mistakes)) => mistakes,
        Err(other @ (Failure::Usage(_) | Failure::Run(_) | Failure::Reported)) => return Err(other),
    };
    let is_json = matches.get_one::<String>("format").is_some_and(|format| format == "json");
    say(&if is_json { for_programs(&mistakes) } else { for_people(&mistakes) })?;
    if mistakes.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}

fn for_people(mistakes: &[Mistake]) -> String {
    let snippets: Vec<String> = mistakes.iter().map(Mistake::snippet).collect();
    let count = match mistakes.len() {
        0 => return "no mistakes\n".into(),
        1 => "1 mistake".into(),
        many => format!("{many} mistakes"),
    };
    format!("{}\n{count}\n", snippets.join("\n"))
}

fn for_programs(mistakes: &[Mistake]) -> String {
    let mistakes: Vec<Value> = mistakes.iter().map(as_json).collect();
    format!("{:#}\n", json!({ "mistakes": mistakes }))
}

fn as_json(mistake: &Mistake) -> Value {
    json!({
        "file": mistake.at.file,
        "line": mistake.at.line,
        "column": mistake.at.column,
        "message": mistake.message,
        "help": mistake.help,
    })
}
