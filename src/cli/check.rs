//! `trefoil check`: every mistake in an application and what answers each operation, for people or for programs.

use std::fmt::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use super::{Failure, folder_argument, open, say};
use crate::app::{App, Mistake};
use crate::engine::resolvers::root_name;
use crate::engine::{Binding, Deed, Registry, Verb};
use crate::model::SourceFile;
use crate::model::diagnostic::{Colour, Diagnostic, Severity};
use crate::server::load::{Understood, understand};

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

pub fn run(matches: &ArgMatches, registry: &Registry) -> Result<(), Failure> {
    let findings = match open(matches) {
        Ok(app) => Findings::of(app, registry),
        Err(Failure::Application(mistakes)) => Findings { mistakes, ..Findings::default() },
        Err(other) => return Err(other),
    };
    let is_json = matches.get_one::<String>("format").is_some_and(|format| format == "json");
    say(&if is_json { findings.for_programs() } else { findings.for_people() })?;
    if findings.errors() == 0 { Ok(()) } else { Err(Failure::Reported) }
}

/// Everything there is to say about an application.
#[derive(Default)]
struct Findings {
    /// In the folder, `trefoil.toml` and the seed.
    mistakes: Vec<Mistake>,
    /// In the schema.
    diagnostics: Vec<Diagnostic>,
    sources: Vec<SourceFile>,
    operations: Vec<Answered>,
}

/// One operation and what answers it.
struct Answered {
    name: String,
    by: Result<String, String>,
    at: crate::model::Place,
}

impl Findings {
    fn of(app: App, registry: &Registry) -> Findings {
        let (diagnostics, operations) = match understand(&app, registry) {
            Ok(understood) => {
                let operations = operations(&understood);
                (understood.warnings, operations)
            }
            Err(diagnostics) => (diagnostics, Vec::new()),
        };
        Findings { mistakes: Vec::new(), diagnostics, sources: app.schema, operations }
    }

    fn errors(&self) -> usize {
        self.mistakes.len()
            + self.diagnostics.iter().filter(|found| found.severity == Severity::Error).count()
    }

    fn for_people(&self) -> String {
        let mut text = String::new();
        for mistake in &self.mistakes {
            let _ = writeln!(text, "{}", mistake.snippet());
        }
        for diagnostic in &self.diagnostics {
            let _ = writeln!(text, "{}\n", diagnostic.render(&self.sources, Colour::Plain).trim_end());
        }
        let width = self.operations.iter().map(|operation| operation.name.len()).max().unwrap_or(0);
        for Answered { name, by, .. } in &self.operations {
            let _ = match by {
                Ok(what) => writeln!(text, "  {name:<width$}  {what}"),
                Err(why) => writeln!(text, "! {name:<width$}  {why}"),
            };
        }
        let gap = if self.operations.is_empty() { "" } else { "\n" };
        text + &format!("{gap}{}\n", self.summary())
    }

    fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            more => Some(format!("{more} {many}")),
        };
        let warnings = self.diagnostics.iter().filter(|found| found.severity == Severity::Warning).count();
        let unanswered = self.operations.iter().filter(|operation| operation.by.is_err()).count();
        let parts = [
            count(self.errors(), "mistake", "mistakes").or(Some("no mistakes".into())),
            count(warnings, "warning", "warnings"),
            count(unanswered, "operation that nothing answers", "operations that nothing answers"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn for_programs(&self) -> String {
        let schema = |severity: Severity| {
            let found = self.diagnostics.iter().filter(move |found| found.severity == severity);
            found.map(Diagnostic::to_json)
        };
        let mistakes: Vec<Value> =
            self.mistakes.iter().map(mistake_json).chain(schema(Severity::Error)).collect();
        let warnings: Vec<Value> = schema(Severity::Warning).collect();
        let operations: Vec<Value> = self.operations.iter().map(operation_json).collect();
        let report = json!({ "mistakes": mistakes, "warnings": warnings, "operations": operations });
        format!("{report:#}\n")
    }
}

fn operations(understood: &Understood) -> Vec<Answered> {
    let model = &understood.model;
    let roots = model.roots.iter().zip(&understood.bindings);
    let answered = roots.map(|(root, binding)| Answered {
        name: format!("{}.{}", root_name(root.root), root.name),
        at: root.at.clone(),
        by: match binding {
            Binding::Builtin(builtin) => {
                Ok(format!("{} {}", verb(builtin.verb), model.record(builtin.record).name))
            }
            Binding::Registered(_) => Ok("a registered resolver".to_owned()),
            Binding::Missing(why) => Err(why.clone()),
        },
    });
    answered.collect()
}

fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::List => "lists",
        Verb::Get => "gets one",
        Verb::Create => "creates a",
        Verb::Update => "updates a",
        Verb::Delete => "deletes a",
        Verb::Watch(Deed::Created) => "tells of each new",
        Verb::Watch(Deed::Updated) => "tells of each changed",
        Verb::Watch(Deed::Deleted) => "tells of each deleted",
    }
}

fn operation_json(operation: &Answered) -> Value {
    json!({
        "operation": operation.name,
        "resolver": operation.by.as_ref().ok(),
        "missing": operation.by.as_ref().err(),
        "file": operation.at.file,
        "line": operation.at.line,
    })
}

fn mistake_json(mistake: &Mistake) -> Value {
    json!({
        "severity": "error",
        "file": mistake.at.file,
        "line": mistake.at.line,
        "column": mistake.at.column,
        "message": mistake.message,
        "help": mistake.help,
    })
}
