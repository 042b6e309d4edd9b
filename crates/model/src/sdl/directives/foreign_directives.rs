//! Removes the directives of other servers from a schema, with a warning: they have no effect here.

use std::collections::HashMap;

use apollo_compiler::ast::{Directive, FieldDefinition};
use apollo_compiler::diagnostic::ToCliReport;
use apollo_compiler::parser::{FileId, SourceSpan};
use apollo_compiler::schema::{DirectiveDefinition, ExtendedType};
use apollo_compiler::validation::DiagnosticList;
use apollo_compiler::{Node, Schema};
use indexmap::IndexMap;

use crate::naming::names;
use crate::sdl::diagnostic_log::{DiagnosticLog, is_user_written};
use crate::sdl::directives::declaration::{directive_uses, suggested_declaration};
use crate::sdl::directives::{self, BuiltinDirective};

/// Directives of ours whose names many servers use in another sense.
const SHARED_NAMES: [&str; 5] = ["default", "display", "index", "key", "search"];

/// Words in the names of directives that restrict access on other servers: `@hasRole`, `@canAccess`, `@rolesAllowed`.
const ACCESS_WORDS: [&str; 14] = [
    "authen",
    "authori",
    "role",
    "permission",
    "access",
    "scope",
    "admin",
    "owner",
    "private",
    "protected",
    "secured",
    "allow",
    "policy",
    "guard",
];

/// What may stand before such a word without a capital letter: `@isadmin`, `@preauthorize`.
const ACCESS_PREFIXES: [&str; 5] = ["is", "has", "can", "pre", "requires"];

/// Names of such directives without any of these words, in lower case.
const ACCESS_NAMES: [&str; 7] =
    ["aws_api_key", "aws_cognito_user_pools", "aws_iam", "aws_lambda", "aws_oidc", "logged_in", "loggedin"];

/// Where a directive is declared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectiveOrigin {
    Schema,
    /// By GraphQL or by Trefoil.
    Builtin,
}

/// The uses of a directive that has no effect.
struct DirectiveUses {
    first: Option<SourceSpan>,
    count: usize,
    help: String,
}

/// Removes what the schema does not declare, so that every tool can read the schema that is served.
pub(crate) fn remove_foreign_directives(
    schema: &mut Schema,
    builtin_file: Option<FileId>,
    log: &mut DiagnosticLog,
) {
    let mut found: IndexMap<String, DirectiveUses> = IndexMap::default();
    let mut has_foreign = false;
    let by_user =
        |definition: &DirectiveDefinition| is_user_written(definition.name.location(), builtin_file);
    let origins: HashMap<String, DirectiveOrigin> = schema
        .directive_definitions
        .iter()
        .map(|(name, definition)| {
            let origin = if by_user(definition) { DirectiveOrigin::Schema } else { DirectiveOrigin::Builtin };
            (name.to_string(), origin)
        })
        .collect();
    let origin = |name: &str| origins.get(name).copied();
    for (directive, location) in directive_uses(schema) {
        let name = directive.name.as_str();
        let is_foreign = is_foreign(origin(name), directive, location.name());
        has_foreign |= is_foreign;
        let is_ours = directives::find_directive(name).is_some();
        if is_foreign || (is_access_directive(name) && !is_ours) {
            let uses = found.entry(name.to_owned()).or_insert_with(|| DirectiveUses {
                first: directive.location(),
                count: 0,
                help: foreign_help(schema, name, directive.location()),
            });
            uses.count += 1;
        }
    }
    for (name, uses) in &found {
        report_foreign(log, name, uses);
    }
    if has_foreign {
        retain_directives(schema, &|directive, location| {
            !is_foreign(origin(&directive.name), directive, location)
        });
    }
}

/// The mistakes that a use of a directive can have.
const USE_ERRORS: [&str; 9] = [
    "FloatCoercionError",
    "IntCoercionError",
    "RequiredArgument",
    "UndefinedArgument",
    "UndefinedEnumValue",
    "UniqueArgument",
    "UniqueDirective",
    "UnsupportedLocation",
    "UnsupportedValueType",
];

/// Removes the uses that do not fit their declaration in the schema, such as a text for an enum, with a warning: other
/// servers take them, and here they have no effect anyway. Those of GraphQL itself have one. False if there are none.
pub(crate) fn remove_misused(schema: &mut Schema, errors: &DiagnosticList, log: &mut DiagnosticLog) -> bool {
    let is_of_use = |kind: Option<&str>| kind.is_some_and(|kind| USE_ERRORS.contains(&kind));
    let mistakes: Vec<(SourceSpan, String)> = errors
        .iter()
        .filter(|diagnostic| is_of_use(diagnostic.error.unstable_error_name()))
        .filter_map(|diagnostic| Some((diagnostic.error.location()?, diagnostic.error.to_string())))
        .collect();
    let mut misused: Vec<SourceSpan> = Vec::new();
    for (directive, _) in directive_uses(schema) {
        let defined = schema.directive_definitions.get(&directive.name);
        let is_known = directives::find_directive(&directive.name).is_some()
            || defined.is_some_and(|definition| definition.is_built_in());
        let Some(span) = directive.location().filter(|_| !is_known) else { continue };
        let Some((place, reason)) = mistakes.iter().find(|(place, _)| is_within(*place, span)) else {
            continue;
        };
        let message =
            format!("`@{}` has no effect here, and is not as it is declared: {reason}", directive.name);
        log.warning(Some(*place), "DIRECTIVE_ARGUMENT", message)
            .label("does not fit the declaration")
            .help(format!("write it as `directive @{}` says", directive.name));
        misused.push(span);
    }
    retain_directives(schema, &|directive, _| {
        directive.location().is_none_or(|span| !misused.contains(&span))
    });
    !misused.is_empty()
}

fn is_within(inner: SourceSpan, outer: SourceSpan) -> bool {
    inner.file_id() == outer.file_id()
        && outer.offset() <= inner.offset()
        && inner.end_offset() <= outer.end_offset()
}

/// True if the directive means something on another server only. A typing mistake in one of ours is a mistake, which
/// validation reports.
fn is_foreign(origin: Option<DirectiveOrigin>, directive: &Directive, location: &str) -> bool {
    match origin {
        Some(DirectiveOrigin::Schema) => false,
        Some(DirectiveOrigin::Builtin) => directives::find_directive(&directive.name)
            .is_some_and(|builtin| is_of_other_server(builtin, directive, location)),
        None => misspelt_builtin(&directive.name).is_none_or(|name| {
            let builtin = directives::find_directive(name);
            is_validation(directive)
                || builtin.is_some_and(|builtin| is_of_other_server(builtin, directive, location))
        }),
    }
}

/// True if a directive that is called like one of ours, or nearly so, is used in another sense: `@unique(fields: ["a"])`,
/// `@rename(to: "b")`. Arguments that are nearly ours are a typing mistake.
fn is_of_other_server(builtin: &BuiltinDirective, directive: &Directive, location: &str) -> bool {
    if directives::ACCESS_DIRECTIVES.contains(&builtin.name) {
        return directive.name == "role";
    }
    if SHARED_NAMES.contains(&builtin.name) && directive.name == builtin.name {
        return !fits_builtin(builtin, directive, location);
    }
    let definition = builtin.definition();
    let own = || definition.arguments.iter().map(|argument| argument.name.as_str());
    let begins_same = |name: &str, own: &str| name.get(..3).is_some_and(|begin| own.starts_with(begin));
    let is_ours =
        |name: &str| own().any(|own| begins_same(name, own)) || names::nearest_name(name, own()).is_some();
    !directive.arguments.is_empty() && !directive.arguments.iter().any(|argument| is_ours(&argument.name))
}

/// Laravel's `@rules(apply: ["required"])`, which is no `@rule`.
fn is_validation(directive: &Directive) -> bool {
    directive.name == "rules" && directive.arguments.iter().any(|argument| argument.name == "apply")
}

fn fits_builtin(builtin: &BuiltinDirective, directive: &Directive, location: &str) -> bool {
    let definition = builtin.definition();
    definition.locations.iter().any(|allowed| allowed.name() == location)
        && directive.arguments.iter().all(|argument| definition.argument_by_name(&argument.name).is_some())
}

/// The directive of ours that was meant: it differs by one letter or by case, or was cut short.
pub(crate) fn misspelt_builtin(name: &str) -> Option<&'static str> {
    // Other words, which other servers use.
    if matches!(name, "generated" | "create" | "update" | "upsert") {
        return None;
    }
    let is_cut_short = |builtin: &str| name.len() >= 4 && builtin.starts_with(name);
    let mut builtins = directives::BUILTIN_DIRECTIVES.iter().map(|builtin| builtin.name);
    builtins.find(|builtin| names::differ_by_one_edit(name, builtin) || is_cut_short(builtin))
}

fn foreign_help(schema: &Schema, name: &str, span: Option<SourceSpan>) -> String {
    match directives::find_directive(name) {
        Some(builtin) => format!("Trefoil's is `{}`", builtin.sdl),
        None => {
            format!("remove it, or declare it: `{}`", suggested_declaration(schema, name, span))
        }
    }
}

fn report_foreign(log: &mut DiagnosticLog, name: &str, uses: &DirectiveUses) {
    let times = match uses.count {
        1 => String::new(),
        count => format!(" (used {count} times)"),
    };
    if is_access_directive(name) {
        let message = format!("`@{name}` looks like an access rule and is NOT enforced{times}");
        log.warning(uses.first, "NOT_ENFORCED", message)
            .label("everyone has access")
            .help("keep the server where only trusted clients can reach it");
    } else {
        let message = format!("`@{name}` is not a directive of Trefoil and has no effect{times}");
        log.warning(uses.first, "UNKNOWN_DIRECTIVE", message).label("ignored").help(&uses.help);
    }
}

fn is_access_directive(name: &str) -> bool {
    let is_access_word = |word: &str| {
        let begins = |word: &str| ACCESS_WORDS.iter().any(|access| word.starts_with(access));
        let mut rests = ACCESS_PREFIXES.iter().filter_map(|prefix| word.strip_prefix(prefix));
        let is_auth = |word: &str| word == "auth" || begins(word);
        is_auth(word) || rests.any(is_auth)
    };
    let words = names::snake_words(name);
    ACCESS_NAMES.contains(&words.as_str()) || words.split('_').any(is_access_word)
}

/// Keeps the directives that `keep` accepts, given with their location as SDL writes it.
fn retain_directives(schema: &mut Schema, keep: &dyn Fn(&Node<Directive>, &str) -> bool) {
    let definition = schema.schema_definition.make_mut();
    definition.directives.0.retain(|directive| keep(directive, "SCHEMA"));
    for ty in schema.types.values_mut().filter(|ty| !ty.is_built_in()) {
        match ty {
            ExtendedType::Scalar(ty) => {
                ty.make_mut().directives.0.retain(|directive| keep(directive, "SCALAR"));
            }
            ExtendedType::Union(ty) => {
                ty.make_mut().directives.0.retain(|directive| keep(directive, "UNION"));
            }
            ExtendedType::Object(ty) => {
                let ty = ty.make_mut();
                ty.directives.0.retain(|directive| keep(directive, "OBJECT"));
                ty.fields.values_mut().for_each(|field| retain_on_field(field.make_mut(), keep));
            }
            ExtendedType::Interface(ty) => {
                let ty = ty.make_mut();
                ty.directives.0.retain(|directive| keep(directive, "INTERFACE"));
                ty.fields.values_mut().for_each(|field| retain_on_field(field.make_mut(), keep));
            }
            ExtendedType::Enum(ty) => {
                let ty = ty.make_mut();
                ty.directives.0.retain(|directive| keep(directive, "ENUM"));
                for value in ty.values.values_mut() {
                    value.make_mut().directives.0.retain(|directive| keep(directive, "ENUM_VALUE"));
                }
            }
            ExtendedType::InputObject(ty) => {
                let ty = ty.make_mut();
                ty.directives.0.retain(|directive| keep(directive, "INPUT_OBJECT"));
                for field in ty.fields.values_mut() {
                    field
                        .make_mut()
                        .directives
                        .0
                        .retain(|directive| keep(directive, "INPUT_FIELD_DEFINITION"));
                }
            }
        }
    }
}

fn retain_on_field(field: &mut FieldDefinition, keep: &dyn Fn(&Node<Directive>, &str) -> bool) {
    field.directives.0.retain(|directive| keep(directive, "FIELD_DEFINITION"));
    for argument in &mut field.arguments {
        argument.make_mut().directives.0.retain(|directive| keep(directive, "ARGUMENT_DEFINITION"));
    }
}
