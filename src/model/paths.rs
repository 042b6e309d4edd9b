//! Who owns which path: the server itself, text endpoints and lists, record types.

use std::collections::HashMap;

use apollo_compiler::Schema;

use super::check::type_span;
use super::log::Log;
use super::parse::Claim;
use super::{RecordType, naming};

/// The server's own path that `path` (with its leading slash) would take, if any.
pub fn own(path: &str) -> Option<&'static str> {
    let first = path.strip_prefix('/').unwrap_or(path).split('/').next().unwrap_or_default();
    match first {
        "" => Some("/"),
        "openapi.json" => Some("/openapi.json"),
        "docs" => Some("/docs"),
        "health" => Some("/health"),
        "metrics" => Some("/metrics"),
        "_" => Some("/_/"),
        _ if first.starts_with("graphql") => Some("/graphql"),
        _ => None,
    }
}

/// One segment, lower case, words joined by hyphens.
pub fn is_segment(path: &str) -> bool {
    path.split('-').all(|word| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

pub(super) fn check(records: &[RecordType], schema: &Schema, reserved: &[Claim], log: &mut Log) {
    let mut taken: HashMap<&str, &RecordType> = HashMap::new();
    // A type whose name makes no table is told to be renamed already.
    for record in records.iter().filter(|record| !record.table.is_empty()) {
        let path = record.path.as_str();
        if !is_segment(path) {
            not_a_segment(record, schema, log);
            continue;
        }
        let under = |claim: &&Claim| {
            claim.path.strip_prefix('/').is_some_and(|rest| rest.split('/').next() == Some(path))
        };
        let same_table = |other: &RecordType| other.table.eq_ignore_ascii_case(&record.table);
        let by = match (own(path), reserved.iter().find(under), taken.get(path)) {
            (Some(_), _, _) => "which is the server's own".to_owned(),
            (None, Some(claim), _) if claim.path.trim_start_matches('/') == path => {
                format!("which {} has", claim.by)
            }
            (None, Some(claim), _) => format!("under which {} has `{}`", claim.by, claim.path),
            // Types of one table are told to be renamed already.
            (None, None, Some(other)) if same_table(other) => continue,
            (None, None, Some(other)) => format!("which the type `{}` has", other.name),
            (None, None, None) => {
                taken.insert(path, record);
                continue;
            }
        };
        let free = free_path(record, records, reserved);
        log.error(
            path_span(record, schema),
            "PATH_CLASH",
            format!("`{}` wants the path `/{path}`, {by}", record.name),
        )
        .label(format!("is served at `/{path}`"))
        .help(format!("give it another: `type {} @resource(path: \"{free}\")`", record.name));
    }
}

fn not_a_segment(record: &RecordType, schema: &Schema, log: &mut Log) {
    let bare = record.path.trim_matches('/');
    let last = bare.rsplit('/').next().unwrap_or_default();
    let kebab = heck::ToKebabCase::to_kebab_case(last);
    let better = if is_segment(&kebab) { kebab } else { "things".to_owned() };
    log.error(
        path_span(record, schema),
        "PATH",
        format!(
            "`{}` is no path of a resource: one segment in lower case, words joined by hyphens",
            record.path
        ),
    )
    .label("cannot be served")
    .help(format!("write `@resource(path: \"{better}\")`"));
}

/// The value of `@resource(path:)`, else the type's name.
fn path_span(record: &RecordType, schema: &Schema) -> Option<apollo_compiler::parser::SourceSpan> {
    let given = schema
        .get_object(&record.name)
        .and_then(|ty| ty.directives.get("resource")?.specified_argument_by_name("path")?.location());
    given.or_else(|| type_span(schema, record))
}

fn free_path(record: &RecordType, records: &[RecordType], reserved: &[Claim]) -> String {
    let taken = |path: &str| {
        own(path).is_some()
            || records.iter().any(|other| other.path == path)
            || reserved.iter().any(|claim| claim.path.split('/').nth(1) == Some(path))
    };
    let plain = naming::path(&record.name);
    let choices = [plain.clone(), format!("my-{plain}"), format!("{plain}-list"), format!("all-{plain}")];
    choices
        .into_iter()
        .find(|path| is_segment(path) && !taken(path))
        .unwrap_or_else(|| "other-path".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_paths() {
        for path in
            ["/", "/graphql", "/graphql/schema.graphqls", "/graphqls", "/docs", "/health/live", "/_/x.js"]
        {
            assert!(own(path).is_some(), "{path}");
        }
        for path in ["/users", "/doc", "/api/docs", "/healthy", "/metric", "/openapi", "/_x"] {
            assert_eq!(own(path), None, "{path}");
        }
    }

    #[test]
    fn segments() {
        for path in ["users", "order-lines", "v2", "a-1"] {
            assert!(is_segment(path), "{path}");
        }
        for path in ["", "/users", "a/b", "Users", "a_b", "-a", "a--b", "ä", "a b"] {
            assert!(!is_segment(path), "{path}");
        }
    }
}
