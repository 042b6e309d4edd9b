//! Who owns which path: the server itself, text endpoints and lists, record types.

use std::collections::HashMap;

use apollo_compiler::Schema;

use crate::RecordType;
use crate::naming::names;
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::parse::ReservedPath;
use crate::sdl::schema_checks::type_span;

/// The server's own paths; one that ends in `…` stands for everything that begins so.
pub const RESERVED_PATHS: [&str; 7] =
    ["/", "/graphql…", "/openapi.json", "/docs", "/health/…", "/metrics", "/_/…"];

/// Whether a request for `path` is the server's own to answer.
pub fn is_reserved(path: &str) -> bool {
    RESERVED_PATHS.iter().any(|own| match own.strip_suffix('…') {
        Some(begin) => path.starts_with(begin),
        None => path == *own,
    })
}

/// Whether something that answers at `path` and below it would stand in the server's way.
pub fn is_reserved_below(path: &str) -> bool {
    let below = format!("{path}/");
    is_reserved(path) || RESERVED_PATHS.iter().any(|own| own.starts_with(&below))
}

fn is_reserved_segment(segment: &str) -> bool {
    is_reserved_below(&format!("/{segment}"))
}

/// One segment, lower case, words joined by hyphens.
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
    // A type whose name makes no table is told to be renamed already.
    for record in records.iter().filter(|record| !record.table.is_empty()) {
        let path = record.path.as_str();
        if !is_path_segment(path) {
            report_invalid_segment(record, schema, log);
            continue;
        }
        let under = |claim: &&ReservedPath| {
            claim.path.strip_prefix('/').is_some_and(|rest| rest.split('/').next() == Some(path))
        };
        let same_table = |other: &RecordType| other.table.eq_ignore_ascii_case(&record.table);
        let by = match (reserved.iter().find(under), taken.get(path)) {
            (_, _) if is_reserved_segment(path) => "which is the server's own".to_owned(),
            (Some(claim), _) if claim.path.trim_start_matches('/') == path => {
                format!("which {} has", claim.owner)
            }
            (Some(claim), _) => format!("under which {} has `{}`", claim.owner, claim.path),
            // Types of one table are told to be renamed already.
            (None, Some(other)) if same_table(other) => continue,
            (None, Some(other)) => format!("which the type `{}` has", other.name),
            (None, None) => {
                taken.insert(path, record);
                continue;
            }
        };
        let free = suggest_free_path(record, records, reserved);
        log.error(
            path_span(record, schema),
            "PATH_CLASH",
            format!("`{}` wants the path `/{path}`, {by}", record.name),
        )
        .label(format!("is served at `/{path}`"))
        .help(format!("give it another: `type {} @resource(path: \"{free}\")`", record.name));
    }
}

fn report_invalid_segment(record: &RecordType, schema: &Schema, log: &mut DiagnosticLog) {
    let bare = record.path.trim_matches('/');
    let last = bare.rsplit('/').next().unwrap_or_default();
    let kebab = heck::ToKebabCase::to_kebab_case(last);
    let better = if is_path_segment(&kebab) { kebab } else { "things".to_owned() };
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

fn suggest_free_path(record: &RecordType, records: &[RecordType], reserved: &[ReservedPath]) -> String {
    let taken = |path: &str| {
        is_reserved_segment(path)
            || records.iter().any(|other| other.path == path)
            || reserved.iter().any(|claim| claim.path.split('/').nth(1) == Some(path))
    };
    let plain = names::collection_path(&record.name);
    let choices = [plain.clone(), format!("my-{plain}"), format!("{plain}-list"), format!("all-{plain}")];
    choices
        .into_iter()
        .find(|path| is_path_segment(path) && !taken(path))
        .unwrap_or_else(|| "other-path".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_paths() {
        for own in [
            "/",
            "/graphql",
            "/graphql/schema.graphqls",
            "/graphqls",
            "/docs",
            "/health/live",
            "/metrics",
            "/_/app.css",
        ] {
            assert!(is_reserved(own), "{own}");
        }
        for free in
            ["/hello", "/health", "/healthy", "/docs/intro", "/api/docs", "/_", "/_x", "/openapi", "/metric"]
        {
            assert!(!is_reserved(free), "{free}");
        }
        for list in ["/health", "/_", "/docs", "/graphql"] {
            assert!(is_reserved_below(list), "{list}");
        }
        assert!(!is_reserved_below("/items"));
    }

    #[test]
    fn segments() {
        for path in ["users", "order-lines", "v2", "a-1"] {
            assert!(is_path_segment(path), "{path}");
        }
        for path in ["", "/users", "a/b", "Users", "a_b", "-a", "a--b", "ä", "a b"] {
            assert!(!is_path_segment(path), "{path}");
        }
    }
}
