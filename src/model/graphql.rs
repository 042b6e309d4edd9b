//! Says in our words what apollo-compiler finds wrong with the GraphQL of a schema.

use apollo_compiler::Schema;
use apollo_compiler::diagnostic::ToCliReport;
use apollo_compiler::validation::{DiagnosticData, DiagnosticList};

use super::directives;
use super::log::{Log, did_you_mean};

/// Syntax: where parsing stumbled.
pub(super) fn syntax(log: &mut Log, errors: &DiagnosticList) {
    for diagnostic in errors.iter() {
        let text = diagnostic.error.to_string();
        let message = text.strip_prefix("syntax error: ").unwrap_or(&text);
        log.error(diagnostic.error.location(), "SYNTAX", message).label("not understood");
    }
}

/// What could not be put together: names given twice, queries among the types, …
pub(super) fn building(log: &mut Log, errors: &DiagnosticList) {
    for diagnostic in errors.iter() {
        let message = diagnostic.error.to_string();
        let found = log.error(diagnostic.error.location(), "GRAPHQL", &message);
        match quoted(&message).next() {
            Some(name) if message.starts_with("the type ") => {
                found
                    .label("second definition")
                    .help(format!("write `extend type {name}` to add to the first"));
            }
            _ if message.starts_with("duplicate") => {
                found.label("second definition").help("remove one of the two");
            }
            _ => {}
        }
    }
}

/// What the rules of GraphQL schemas forbid.
pub(super) fn validation(log: &mut Log, schema: &Schema, errors: &DiagnosticList) {
    for diagnostic in errors.iter() {
        if let Some(kind) =
            diagnostic.error.unstable_error_name().filter(|kind| *kind != "QueryRootOperationType")
        {
            invalid(log, schema, kind, diagnostic.error);
        }
    }
}

/// Mistakes in directive arguments: our own readers say the same in better words.
pub(super) const OF_ARGUMENTS: &[&str] = &[
    "UndefinedArgument",
    "UnsupportedValueType",
    "IntCoercionError",
    "FloatCoercionError",
    "UndefinedEnumValue",
];

fn invalid(log: &mut Log, schema: &Schema, kind: &'static str, error: &DiagnosticData) {
    let message = error.to_string();
    let names: Vec<&str> = quoted(&message).collect();
    let name = names.first().copied().unwrap_or_default();
    let span = error.location();
    match kind {
        "UndefinedDefinition" => {
            let known = schema.types.keys().map(|name| name.as_str()).filter(|name| !name.starts_with("__"));
            let help =
                did_you_mean(name, known, || format!("define it: `type {name} {{ … }}` or `scalar {name}`"));
            log.error(span, "UNKNOWN_TYPE", format!("there is no type `{name}`"))
                .label("unknown type")
                .help(help);
        }
        "UndefinedDirective" => {
            let bare = name.trim_start_matches('@');
            let known = schema.directive_definitions.keys().map(|name| name.as_str());
            let known: Vec<&str> = known.chain(directives::DIRECTIVES.iter().map(|ours| ours.name)).collect();
            let help = match super::naming::nearest(bare, known) {
                Some(near) => format!("did you mean `@{near}`?"),
                None => format!("declare it: `directive @{bare} on …`"),
            };
            log.error(span, "UNKNOWN_DIRECTIVE", format!("there is no directive `@{bare}`"))
                .label("unknown directive")
                .help(help);
        }
        _ => {
            let code = if OF_ARGUMENTS.contains(&kind) || kind == "RequiredArgument" {
                "DIRECTIVE_ARGUMENT"
            } else {
                "GRAPHQL"
            };
            log.error(span, code, message);
        }
    }
}

/// The words between backquotes.
fn quoted(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}
