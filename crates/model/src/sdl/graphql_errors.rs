//! Translates apollo-compiler's schema errors into diagnostics with help.

use apollo_compiler::Schema;
use apollo_compiler::diagnostic::ToCliReport;
use apollo_compiler::parser::SourceSpan;
use apollo_compiler::validation::{DiagnosticData, DiagnosticList};
use indexmap::IndexMap;

use crate::Scalar;
use crate::sdl::diagnostic_log::{DiagnosticLog, suggest_or_else};
use crate::sdl::directives::{self, declaration, foreign_directives};

/// Reports errors of building the schema: duplicate names, queries among the types, …
pub(crate) fn report_build_errors(log: &mut DiagnosticLog, errors: &DiagnosticList) {
    for diagnostic in errors.iter() {
        let message = diagnostic.error.to_string();
        let report = log.error(diagnostic.error.location(), "GRAPHQL", &message);
        match quoted_names(&message).next() {
            Some(name) if message.starts_with("the type ") => {
                report
                    .label("second definition")
                    .help(format!("use `extend type {name}` to add fields to the first definition"));
            }
            _ if message.starts_with("duplicate") || message.starts_with("the directive ") => {
                report.label("second definition").help("remove one of them");
            }
            _ if message.starts_with("a schema document") => {
                report.label("not part of a schema").help("remove it");
            }
            _ => {}
        }
    }
}

/// Reports violations of GraphQL's schema rules.
pub(crate) fn report_validation_errors(log: &mut DiagnosticLog, schema: &Schema, errors: &DiagnosticList) {
    let mut unknown_types: IndexMap<String, UnknownType> = IndexMap::new();
    for diagnostic in errors.iter() {
        let message = diagnostic.error.to_string();
        let span = diagnostic.error.location();
        match diagnostic.error.unstable_error_name() {
            // Reported by `report_missing_query`, with an example.
            Some("QueryRootOperationType") => {}
            Some("UndefinedDefinition") => {
                let name = quoted_names(&message).next().unwrap_or_default().to_owned();
                unknown_types.entry(name).or_insert(UnknownType { first_use: span, uses: 0 }).uses += 1;
            }
            Some("UndefinedDirective") => report_unknown_directive(log, span, &message),
            Some(kind) => report_invalid_schema(log, schema, kind, diagnostic.error),
            None => {
                log.error(span, "GRAPHQL", message);
            }
        }
    }
    for (name, unknown) in &unknown_types {
        report_unknown_type(log, schema, name, unknown);
    }
}

/// A type that is used and not defined: one mistake, however often it is used.
struct UnknownType {
    first_use: Option<SourceSpan>,
    uses: usize,
}

fn report_unknown_type(log: &mut DiagnosticLog, schema: &Schema, name: &str, unknown: &UnknownType) {
    let known = schema.types.keys().map(|name| name.as_str());
    let builtin_scalars = Scalar::ALL.iter().map(|scalar| scalar.name());
    let known = known.chain(builtin_scalars).filter(|known| !known.starts_with('_'));
    let help = match Scalar::from_name(name) {
        Some(_) => format!("declare it: `scalar {name}`"),
        None => suggest_or_else(name, known, || {
            let is_input = ["Input", "Filter", "Where"].iter().any(|ending| name.ends_with(ending));
            match is_input {
                true => format!("define it: `input {name} {{ … }}`"),
                false => format!("define it: `type {name} {{ … }}`, or `scalar {name}`"),
            }
        }),
    };
    let label = match unknown.uses {
        1 => "unknown type".to_owned(),
        uses => format!("unknown type, used {uses} times"),
    };
    log.error(unknown.first_use, "UNKNOWN_TYPE", format!("there is no type `{name}`"))
        .label(&label)
        .help(help);
}

/// Only misspelt directives of ours get here: others were removed before validation.
fn report_unknown_directive(log: &mut DiagnosticLog, span: Option<SourceSpan>, message: &str) {
    let name = quoted_names(message).next().unwrap_or_default().trim_start_matches('@');
    let report = log.error(span, "UNKNOWN_DIRECTIVE", format!("there is no directive `@{name}`"));
    report.label("unknown directive");
    if let Some(builtin) = foreign_directives::misspelt_builtin(name) {
        report.help(format!("did you mean `@{builtin}`?"));
    }
}

fn report_invalid_schema(log: &mut DiagnosticLog, schema: &Schema, kind: &str, error: &DiagnosticData) {
    let message = error.to_string();
    let span = error.location();
    let names: Vec<&str> = quoted_names(&message).collect();
    let name = |i: usize| names.get(i).copied().unwrap_or_default();
    let first = message.split(' ').next().unwrap_or_default();
    let (code, message, help) = match kind {
        "UndefinedArgument"
        | "UnsupportedValueType"
        | "IntCoercionError"
        | "FloatCoercionError"
        | "UndefinedEnumValue"
        | "RequiredArgument" => {
            // `DirectiveReader` has reported it with more detail.
            if log.has_error_within(span) {
                return;
            }
            let directive =
                name(0).trim_start_matches('@').split('(').next().and_then(directives::find_directive);
            (
                "DIRECTIVE_ARGUMENT",
                message.clone(),
                directive.map(|builtin| format!("its definition is `{}`", builtin.sdl)),
            )
        }
        "UnsupportedLocation" => {
            let location = message.split("for ").last().unwrap_or_default().replace(" location", "");
            let help = directives::find_directive(first)
                .map(|builtin| format!("its definition is `{}`", builtin.sdl));
            (
                "DIRECTIVE_PLACE",
                format!("`@{first}` is not allowed on {}", declaration::location_phrase(&location)),
                help,
            )
        }
        "UniqueDirective" => {
            let name = message.split(' ').nth(2).unwrap_or_default();
            ("GRAPHQL", format!("`@{name}` is not repeatable"), Some("remove one of them".to_owned()))
        }
        "MissingInterfaceField" => {
            let ty =
                schema.get_interface(name(1)).and_then(|ty| Some(ty.fields.get(name(2))?.ty.to_string()));
            let help = ty.map(|ty| format!("add `{}: {ty}` to `{}`", name(2), name(0)));
            ("GRAPHQL", message.clone(), help)
        }
        "InvalidImplementationFieldType" => {
            let field = name(0).split('.').nth(1).unwrap_or_default();
            ("GRAPHQL", message.clone(), Some(format!("make it `{field}: {}`", name(1))))
        }
        "OutputType" => {
            ("GRAPHQL", message.clone(), Some("input types can only be used for arguments".to_owned()))
        }
        "InputType" => {
            ("GRAPHQL", message.clone(), Some("use a scalar, an enum or an `input` type".to_owned()))
        }
        "EmptyFieldSet" | "EmptyValueSet" | "EmptyInputValueSet" | "EmptyMemberSet" => {
            ("GRAPHQL", message.clone(), Some("add one or remove the type".to_owned()))
        }
        "ReservedName" => ("GRAPHQL", message.clone(), Some("rename it".to_owned())),
        _ => ("GRAPHQL", message.clone(), None),
    };
    log.error(span, code, message).help = help;
}

/// The words between backquotes.
fn quoted_names(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}
