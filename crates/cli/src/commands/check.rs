//! `trefoil check`: reports every mistake in an application and the resolver of each operation, as text or JSON.

use std::fmt::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use trefoil_application::App;
use trefoil_engine::{ChangeKind, OperationVerb, ResolverBinding, ResolverRegistry};
use trefoil_model::diagnostic::{Diagnostic, Severity, render_all};
use trefoil_model::{Model, SourceFile, SourceLocation};
use trefoil_server::load_application::{LoadedApplication, load_application};
use trefoil_server::{StartError, lifecycle};

use crate::application_argument::{AppSource, folder_argument};
use crate::command_error::CommandError;
use crate::commands::rules_table::RulesTable;
use crate::terminal_output::print_output;

pub fn command() -> Command {
    let format = Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(["human", "json"]))
        .default_value("human")
        .help("Output format");
    let strict = Arg::new("strict")
        .long("strict")
        .action(ArgAction::SetTrue)
        .help("Exit with 1 for warnings and for operations without a resolver, too");
    let rules = Arg::new("rules")
        .long("rules")
        .action(ArgAction::SetTrue)
        .help("Show who may do what, by the rules of the schema, instead of the operations");
    Command::new("check")
        .about("Report the mistakes in an application folder, and what each operation does")
        .arg(folder_argument())
        .arg(format)
        .arg(strict)
        .arg(rules)
}

pub fn run(matches: &ArgMatches, registry: &ResolverRegistry) -> Result<(), CommandError> {
    let source = AppSource::of(matches);
    let (app, mistakes) = source.read();
    source.print_source(&app);
    let mut report = CheckReport::collect(app, mistakes, registry)?;
    report.shows_rules = matches.get_flag("rules");
    let is_json = matches.get_one::<String>("format").is_some_and(|format| format == "json");
    print_output(&if is_json { report.to_json_text() } else { report.to_text() })?;
    let is_accepted =
        if matches.get_flag("strict") { report.is_flawless() } else { report.error_count() == 0 };
    if is_accepted { Ok(()) } else { Err(CommandError::Reported) }
}

/// Everything that `check` reports about an application.
struct CheckReport {
    diagnostics: Vec<Diagnostic>,
    sources: Vec<SourceFile>,
    operations: Vec<OperationReport>,
    /// Who may do what; `None` for an open application.
    rules: Option<RulesTable>,
    /// The required fields that rules may hide: `Post.author`.
    hidden_fields: Vec<String>,
    /// Types with the fields that pages filter by without an index.
    unindexed_filters: Vec<(String, Vec<String>)>,
    shows_rules: bool,
}

/// An operation and its resolver, or why there is none.
struct OperationReport {
    name: String,
    resolver: Result<String, String>,
    /// The required fields that no argument sets, each with the value that it gets.
    filled: Vec<(String, &'static str)>,
    location: SourceLocation,
}

impl CheckReport {
    /// `diagnostics` are those found while the files were read.
    fn collect(
        app: App,
        mut diagnostics: Vec<Diagnostic>,
        registry: &ResolverRegistry,
    ) -> Result<CheckReport, CommandError> {
        let (mut operations, mut rules) = (Vec::new(), None);
        let (mut hidden_fields, mut unindexed_filters) = (Vec::new(), Vec::new());
        if !app.schema.is_empty() {
            match load_application(&app, registry) {
                Ok(application) => {
                    operations = report_operations(&application);
                    let model = &application.model;
                    rules = model.access.as_ref().map(|access| RulesTable::new(model, access));
                    hidden_fields = required_but_hidden(model);
                    unindexed_filters = filters_without_index(model);
                    diagnostics.extend(application.warnings.iter().cloned());
                    diagnostics.extend(check_seed(&app, &application, registry)?);
                }
                Err(mistakes) => diagnostics.extend(mistakes),
            }
        }
        diagnostics.extend(trefoil_pages::check_views(&app));
        let mut sources = [app.schema, app.other_files, app.views].concat();
        for source in sources.iter_mut().filter(|source| source.name.ends_with(".toml")) {
            source.text = mask_passwords(&source.text);
        }
        let shows_rules = false;
        Ok(CheckReport {
            diagnostics,
            sources,
            operations,
            rules,
            hidden_fields,
            unindexed_filters,
            shows_rules,
        })
    }

    fn with_severity(&self, severity: Severity) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |diagnostic| diagnostic.severity == severity)
    }

    fn error_count(&self) -> usize {
        self.with_severity(Severity::Error).count()
    }

    /// True if there are no errors, no warnings and no unbound operations.
    fn is_flawless(&self) -> bool {
        self.diagnostics.is_empty() && self.operations.iter().all(|operation| operation.resolver.is_ok())
    }

    fn to_text(&self) -> String {
        let mut text = render_all(&self.sources, &self.diagnostics);
        if !text.is_empty() {
            text += "\n\n";
        }
        if self.shows_rules {
            return text + &self.rules_text() + &format!("\n{}\n", self.summary());
        }
        let width = self.operations.iter().map(|operation| operation.name.len()).max().unwrap_or(0);
        for OperationReport { name, resolver, filled, .. } in &self.operations {
            let _ = match resolver {
                Ok(description) => writeln!(text, "  {name:<width$}  {description}{}", filled_text(filled)),
                Err(reason) => writeln!(text, "! {name:<width$}  {reason}"),
            };
        }
        let gap = if self.operations.is_empty() { "" } else { "\n" };
        if !self.hidden_fields.is_empty() {
            let fields = self.hidden_fields.join(", ");
            let _ = writeln!(text, "{gap}null where a rule hides them, in spite of `!`: {fields}");
        }
        if !self.unindexed_filters.is_empty() {
            let _ = writeln!(
                text,
                "{gap}pages filter by these fields without an index; where there are many records, add @index to the type:"
            );
            for (record, fields) in &self.unindexed_filters {
                let _ = writeln!(text, "  {record}: {}", fields.join(", "));
            }
        }
        text + &format!("{gap}{}\n", self.summary())
    }

    fn rules_text(&self) -> String {
        match &self.rules {
            Some(table) => table.to_text(),
            None if self.error_count() > 0 => String::new(),
            None => "everybody may read and change everything: no @allow, no @account\n".to_owned(),
        }
    }

    fn summary(&self) -> String {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            more => Some(format!("{more} {many}")),
        };
        let warnings = self.with_severity(Severity::Warning).count();
        let unanswered = self.operations.iter().filter(|operation| operation.resolver.is_err()).count();
        let parts = [
            count(self.error_count(), "mistake", "mistakes").or(Some("no mistakes".into())),
            count(warnings, "warning", "warnings"),
            count(self.operations.len(), "operation", "operations"),
            (unanswered > 0).then(|| format!("{unanswered} of them without a resolver")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn to_json_text(&self) -> String {
        let [mistakes, warnings] = [Severity::Error, Severity::Warning]
            .map(|severity| self.with_severity(severity).map(Diagnostic::to_json).collect::<Vec<_>>());
        let operations: Vec<Value> = self.operations.iter().map(operation_json).collect();
        let mut report = json!({ "mistakes": mistakes, "warnings": warnings, "operations": operations });
        if !self.hidden_fields.is_empty() {
            report["hiddenFields"] = json!(self.hidden_fields);
        }
        if !self.unindexed_filters.is_empty() {
            let types = self.unindexed_filters.iter();
            let types = types.map(|(record, fields)| json!({ "type": record, "fields": fields }));
            report["unindexedFilters"] = types.collect();
        }
        if self.shows_rules {
            report["rules"] = self.rules.as_ref().map(RulesTable::to_json).into();
        }
        format!("{report:#}\n")
    }
}

fn required_but_hidden(model: &Model) -> Vec<String> {
    let fields =
        model.records.iter().flat_map(|record| record.fields.iter().map(move |field| (record, field)));
    let hidden = fields.filter(|(_, field)| field.required && field.may_be_hidden);
    hidden.map(|(record, field)| format!("{}.{}", record.name, field.name)).collect()
}

fn filters_without_index(model: &Model) -> Vec<(String, Vec<String>)> {
    let fields = |record| trefoil_pages::unindexed_filters(record).into_iter();
    let named = model.records.iter().map(|record| {
        (record.name.clone(), fields(record).map(|field| field.name.clone()).collect::<Vec<_>>())
    });
    named.filter(|(_, fields)| !fields.is_empty()).collect()
}

/// The diagnostics that a first start would give for the seed.
fn check_seed(
    app: &App,
    application: &LoadedApplication,
    registry: &ResolverRegistry,
) -> Result<Vec<Diagnostic>, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(CommandError::failed)?;
    match runtime.block_on(lifecycle::check_seed(app, application, registry)) {
        Ok(()) => Ok(Vec::new()),
        Err(StartError::Seed(mistakes)) => Ok(mistakes),
        Err(other) => Err(CommandError::Start(other)),
    }
}

fn report_operations(application: &LoadedApplication) -> Vec<OperationReport> {
    let model = &application.model;
    let roots = model.root_fields.iter().zip(&application.bindings);
    let reports = roots.map(|(root, binding)| OperationReport {
        name: format!("{}.{}", model.root_type_name(root.root_kind), root.name),
        location: root.location.clone(),
        resolver: match binding {
            ResolverBinding::Builtin(builtin) => {
                Ok(describe_operation(builtin.verb, &model.record(builtin.record).name))
            }
            ResolverBinding::Abstract(operation) => {
                Ok(describe_operation(operation.verb, &operation.type_name))
            }
            ResolverBinding::Registered(_) => Ok("registered resolver".to_owned()),
            ResolverBinding::Missing(reason) => Err(reason.clone()),
        },
        filled: match binding {
            ResolverBinding::Builtin(builtin) => {
                let record = model.record(builtin.record);
                let filled = builtin.filled_fields.iter();
                filled.map(|fill| (record.field(fill.field).name.clone(), fill.value.description())).collect()
            }
            ResolverBinding::Abstract(_) | ResolverBinding::Registered(_) | ResolverBinding::Missing(_) => {
                Vec::new()
            }
        },
    });
    reports.collect()
}

/// `; fills done with false, createdAt with the time`.
fn filled_text(filled: &[(String, &'static str)]) -> String {
    let parts: Vec<String> = filled.iter().map(|(field, value)| format!("{field} with {value}")).collect();
    if parts.is_empty() { String::new() } else { format!("; fills {}", parts.join(", ")) }
}

fn describe_operation(verb: OperationVerb, record: &str) -> String {
    let verb = match verb {
        OperationVerb::List => "lists every",
        OperationVerb::Get => "gets one",
        OperationVerb::Count => "counts every",
        OperationVerb::Exists => "says whether there is any",
        OperationVerb::Aggregate => "groups and sums up every",
        OperationVerb::Create => "creates one",
        OperationVerb::CreateMany => "creates each given",
        OperationVerb::Update => "updates one",
        OperationVerb::UpdateMany => "updates every matching",
        OperationVerb::Save => "saves one",
        OperationVerb::Upsert => "creates or updates one",
        OperationVerb::Delete => "deletes one",
        OperationVerb::DeleteMany => "deletes every matching",
        OperationVerb::Subscribe(ChangeKind::Created) => "sends each new",
        OperationVerb::Subscribe(ChangeKind::Updated) => "sends each changed",
        OperationVerb::Subscribe(ChangeKind::Deleted) => "sends each deleted",
        OperationVerb::SubscribeAll => "sends every change of any",
    };
    format!("{verb} {record}")
}

fn operation_json(operation: &OperationReport) -> Value {
    let filled = operation.filled.iter().map(|(field, value)| json!({ "field": field, "value": value }));
    json!({
        "operation": operation.name,
        "resolver": operation.resolver.as_ref().ok(),
        "missing": operation.resolver.as_ref().err(),
        "filled": filled.collect::<Vec<Value>>(),
        "file": operation.location.file,
        "line": operation.location.line,
    })
}

/// The text with every URL that has a user or password masked by stars of the same length, so that positions stay
/// valid. Lines of the file are shown beside mistakes, and others may read the reports.
fn mask_passwords(text: &str) -> String {
    let mut parts = text.split("://");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(['"', '\'', '\n']).unwrap_or(part.len());
        let (address, rest) = part.split_at(end);
        let is_secret = address.contains('@') || address.contains("password=");
        masked += "://";
        masked += &if is_secret { "*".repeat(address.len()) } else { address.to_owned() };
        masked += rest;
    }
    masked
}
