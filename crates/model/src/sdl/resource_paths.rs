//! Path ownership: the server's own paths, text endpoints, plain lists and record types.

use std::collections::HashMap;

use apollo_compiler::Schema;
use apollo_compiler::parser::SourceSpan;
use heck::ToKebabCase;

use crate::RecordType;
use crate::naming::names;
use crate::sdl::diagnostic_log::{DiagnosticLog, type_span};

/// A path of the application that does not belong to a record type: a text endpoint or a plain list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedPath {
    /// The path with its leading slash: `/api/info`.
    pub path: String,
    /// The owner, for messages: `the list items`.
    pub owner: String,
}

/// The server's own paths; one that ends in `…` means every path with that prefix.
pub const RESERVED_PATHS: [&str; 7] =
    ["/", "/graphql…", "/openapi.json", "/docs", "/health/…", "/metrics", "/_/…"];

/// True if the server itself answers `path`.
pub fn is_reserved(path: &str) -> bool {
    RESERVED_PATHS.iter().any(|reserved| match reserved.strip_suffix('…') {
        Some(prefix) => path.starts_with(prefix),
        None => path == *reserved,
    })
}

/// True if a resource at `path` and below it would hide one of the server's own paths.
pub fn is_reserved_below(path: &str) -> bool {
    let below = format!("{path}/");
    is_reserved(path) || RESERVED_PATHS.iter().any(|reserved| reserved.starts_with(&below))
}

fn is_reserved_segment(segment: &str) -> bool {
    is_reserved_below(&format!("/{segment}"))
}

/// True for one segment in lower case, words joined by hyphens.
pub fn is_path_segment(path: &str) -> bool {
    path.split('-').all(|word| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

pub(crate) fn check_paths(
    records: &[RecordType],
    schema: &Schema,
    reserved: &[ReservedPath],
    log: &mut DiagnosticLog,
) {
    let mut taken: HashMap<&str, &RecordType> = HashMap::new();
    // A type without a table name has been reported already.
    for record in records.iter().filter(|record| !record.table.is_empty()) {
        let path = record.path.as_str();
        if !is_path_segment(path) {
            report_invalid_segment(record, schema, log);
            continue;
        }
        let is_below = |reserved_path: &&ReservedPath| {
            reserved_path.path.strip_prefix('/').is_some_and(|rest| rest.split('/').next() == Some(path))
        };
        let same_table = |other: &RecordType| other.table.eq_ignore_ascii_case(&record.table);
        let conflict = match (reserved.iter().find(is_below), taken.get(path)) {
            (_, _) if is_reserved_segment(path) => "which is reserved for the server".to_owned(),
            (Some(reserved_path), _) if reserved_path.path.trim_start_matches('/') == path => {
                format!("which is used by {}", reserved_path.owner)
            }
            (Some(reserved_path), _) => {
                format!("but {} uses `{}` below it", reserved_path.owner, reserved_path.path)
            }
            // Types that share a table have been reported already.
            (None, Some(other)) if same_table(other) => continue,
            (None, Some(other)) => format!("which is used by the type `{}`", other.name),
            (None, None) => {
                taken.insert(path, record);
                continue;
            }
        };
        let suggestion = suggest_free_path(record, records, reserved);
        log.error(
            path_span(record, schema),
            "PATH_CLASH",
            format!("`{}` cannot be served at `/{path}`, {conflict}", record.name),
        )
        .label(format!("path is `/{path}`"))
        .help(format!("choose another path: `type {} @resource(path: \"{suggestion}\")`", record.name));
    }
}

fn report_invalid_segment(record: &RecordType, schema: &Schema, log: &mut DiagnosticLog) {
    let trimmed = record.path.trim_matches('/');
    let last = trimmed.rsplit('/').next().unwrap_or_default();
    let kebab = last.to_kebab_case();
    let suggestion = if is_path_segment(&kebab) { kebab } else { "things".to_owned() };
    log.error(
        path_span(record, schema),
        "PATH",
        format!(
            "`{}` is not a valid resource path: use one segment of lower-case words joined by hyphens",
            record.path
        ),
    )
    .label("invalid path")
    .help(format!("write `@resource(path: \"{suggestion}\")`"));
}

/// The span of `@resource(path:)`, else of the type's name.
fn path_span(record: &RecordType, schema: &Schema) -> Option<SourceSpan> {
    let argument = schema
        .get_object(&record.name)
        .and_then(|ty| ty.directives.get("resource")?.specified_argument_by_name("path")?.location());
    argument.or_else(|| type_span(schema, record))
}

fn suggest_free_path(record: &RecordType, records: &[RecordType], reserved: &[ReservedPath]) -> String {
    let is_taken = |path: &str| {
        is_reserved_segment(path)
            || records.iter().any(|other| other.path == path)
            || reserved.iter().any(|reserved_path| reserved_path.path.split('/').nth(1) == Some(path))
    };
    let plain = names::collection_path(&record.name);
    let choices = [plain.clone(), format!("my-{plain}"), format!("{plain}-list"), format!("all-{plain}")];
    choices
        .into_iter()
        .find(|path| is_path_segment(path) && !is_taken(path))
        .unwrap_or_else(|| "other-path".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_paths() {
        for path in [
            "/",
            "/graphql",
            "/graphql/schema.graphqls",
            "/graphqls",
            "/docs",
            "/health/live",
            "/metrics",
            "/_/app.css",
        ] {
            assert!(is_reserved(path), "{path}");
        }
        for path in
            ["/hello", "/health", "/healthy", "/docs/intro", "/api/docs", "/_", "/_x", "/openapi", "/metric"]
        {
            assert!(!is_reserved(path), "{path}");
        }
        for path in ["/health", "/_", "/docs", "/graphql"] {
            assert!(is_reserved_below(path), "{path}");
        }
        assert!(!is_reserved_below("/items"));
    }

    #[test]
    fn path_segments() {
        for path in ["users", "order-lines", "v2", "a-1"] {
            assert!(is_path_segment(path), "{path}");
        }
        for path in ["", "/users", "a/b", "Users", "a_b", "-a", "a--b", "ä", "a b"] {
            assert!(!is_path_segment(path), "{path}");
        }
    }
}
