//! `trefoil check`: every mistake in an application and what answers each operation, for people or for programs.

use std::fmt::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use crate::{AppSource, Failure, folder_argument, say};
use trefoil_application::App;
use trefoil_engine::resolvers::root_name;
use trefoil_engine::{Binding, Deed, Registry, Verb};

use trefoil_model::diagnostic::{Diagnostic, Severity, render};
use trefoil_model::{Place, SourceFile};
use trefoil_server::load_application::{Understood, understand};
use trefoil_server::{StartError, lifecycle};

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
    let source = AppSource::of(matches);
    let (app, mistakes) = source.read();
    source.tell(&app);
    let findings = Findings::of(app, mistakes, registry)?;
    let is_json = matches.get_one::<String>("format").is_some_and(|format| format == "json");
    say(&if is_json { findings.for_programs() } else { findings.for_people() })?;
    if findings.errors() == 0 { Ok(()) } else { Err(Failure::Reported) }
}

/// Everything there is to say about an application.
struct Findings {
    diagnostics: Vec<Diagnostic>,
    sources: Vec<SourceFile>,
    operations: Vec<Answered>,
}

/// One operation and what answers it.
struct Answered {
    name: String,
    by: Result<String, String>,
    at: Place,
}

impl Findings {
    /// `diagnostics` is what reading the files has found already.
    fn of(app: App, mut diagnostics: Vec<Diagnostic>, registry: &Registry) -> Result<Findings, Failure> {
        let mut operations = Vec::new();
        if !app.schema.is_empty() {
            match understand(&app, registry) {
                Ok(understood) => {
                    operations = self::operations(&understood);
                    diagnostics.extend(understood.warnings.iter().cloned());
                    diagnostics.extend(seed_mistakes(&app, &understood, registry)?);
                }
                Err(mistakes) => diagnostics.extend(mistakes),
            }
        }
        diagnostics.extend(trefoil_pages::audit(&app));
        let mut sources = [app.schema, app.others, app.views].concat();
        for source in sources.iter_mut().filter(|source| source.name.ends_with(".toml")) {
            source.text = without_passwords(&source.text);
        }
        Ok(Findings { diagnostics, sources, operations })
    }

    fn of_severity(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |found| found.severity == severity)
    }

    fn errors(&self) -> usize {
        self.of_severity(Severity::Error).count()
    }

    fn for_people(&self) -> String {
        let mut text = render(&self.sources, &self.diagnostics);
        if !text.is_empty() {
            text += "\n\n";
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
        let warnings = self.of_severity(Severity::Warning).count();
        let unanswered = self.operations.iter().filter(|operation| operation.by.is_err()).count();
        let parts = [
            count(self.errors(), "mistake", "mistakes").or(Some("no mistakes".into())),
            count(warnings, "warning", "warnings"),
            count(unanswered, "operation that nothing answers", "operations that nothing answers"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn for_programs(&self) -> String {
        let [mistakes, warnings] = [Severity::Error, Severity::Warning]
            .map(|severity| self.of_severity(severity).map(Diagnostic::to_json).collect::<Vec<_>>());
        let operations: Vec<Value> = self.operations.iter().map(operation_json).collect();
        let report = json!({ "mistakes": mistakes, "warnings": warnings, "operations": operations });
        format!("{report:#}\n")
    }
}

/// What a first start would say about the seed.
fn seed_mistakes(
    app: &App,
    understood: &Understood,
    registry: &Registry,
) -> Result<Vec<Diagnostic>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Failure::run)?;
    match runtime.block_on(lifecycle::rehearse_seed(app, understood, registry)) {
        Ok(()) => Ok(Vec::new()),
        Err(StartError::Seed(mistakes)) => Ok(mistakes),
        Err(other) => Err(Failure::Start(other)),
    }
}

fn operations(understood: &Understood) -> Vec<Answered> {
    let model = &understood.model;
    let roots = model.roots.iter().zip(&understood.bindings);
    let answered = roots.map(|(root, binding)| Answered {
        name: format!("{}.{}", root_name(root.root), root.name),
        at: root.at.clone(),
        by: match binding {
            Binding::Builtin(builtin) => Ok(does(builtin.verb, &model.record(builtin.record).name)),
            Binding::Registered(_) => Ok("a registered resolver".to_owned()),
            Binding::Missing(why) => Err(why.clone()),
        },
    });
    answered.collect()
}

fn does(verb: Verb, record: &str) -> String {
    let verb = match verb {
        Verb::List => "lists every",
        Verb::Get => "gets one",
        Verb::Create => "creates one",
        Verb::Update => "updates one",
        Verb::Delete => "deletes one",
        Verb::Watch(Deed::Created) => "tells of each new",
        Verb::Watch(Deed::Updated) => "tells of each changed",
        Verb::Watch(Deed::Deleted) => "tells of each deleted",
    };
    format!("{verb} {record}")
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

/// The text with stars for what stands in an address with a user, byte for byte: places in it stay what they are. Lines
/// of the file are shown beside mistakes, and reports are kept where others read them.
fn without_passwords(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['"', '\'', '\n']).unwrap_or(part.len());
        let (address, rest) = part.split_at(end);
        let is_secret = address.contains('@') || address.contains("password=");
        shown += "://";
        shown += &if is_secret { "*".repeat(address.len()) } else { address.to_owned() };
        shown += rest;
    }
    shown
}
