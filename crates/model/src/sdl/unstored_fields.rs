//! Warnings about fields that are not stored, with the reason and what to do.

use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ObjectType;

use crate::sdl::diagnostic_log::DiagnosticLog;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnstoredReason {
    UnknownScalar,
    Interface,
    Union,
    HasArguments,
    Connection,
    RootType,
    ListOfLists,
    HoldsRecords,
    /// `@resolver` names the resolver: no warning.
    HasResolver,
    /// Another check reports it.
    AlreadyReported,
}

pub(crate) fn warn_unstored(
    log: &mut DiagnosticLog,
    ty: &ObjectType,
    def: &FieldDefinition,
    reason: UnstoredReason,
) {
    let name = def.ty.inner_named_type().as_str();
    let resolver = format!("register a resolver for `{}.{}`", ty.name, def.name);
    let (explanation, help) = match reason {
        UnstoredReason::HasResolver | UnstoredReason::AlreadyReported => return,
        UnstoredReason::UnknownScalar => {
            (format!("the scalar `{name}` is not supported"), scalar_help(name, &resolver))
        }
        UnstoredReason::Interface => (format!("`{name}` is an interface"), resolver),
        UnstoredReason::Union => (format!("`{name}` is a union"), resolver),
        UnstoredReason::HasArguments => {
            ("it takes arguments".into(), format!("{resolver}, or remove the arguments"))
        }
        UnstoredReason::Connection => (
            format!("`{name}` is a connection, which only list operations can return"),
            format!("make it a list of records, or {resolver}"),
        ),
        UnstoredReason::RootType => (format!("`{name}` is a root type"), resolver),
        UnstoredReason::ListOfLists => ("it is a list of lists of records".into(), resolver),
        UnstoredReason::HoldsRecords => (
            format!("`{name}` contains records, so it cannot be an embedded value"),
            format!("give `{name}` an `id: ID!`, or {resolver}"),
        ),
    };
    log.warning(
        def.name.location(),
        "NOT_STORED",
        format!("`{}.{}` is not stored: {explanation}", ty.name, def.name),
    )
    .label("returns an error when queried")
    .help(help);
}

/// Suggests our scalar for another server's name of it.
fn scalar_help(name: &str, resolver: &str) -> String {
    let scalar = match name.to_ascii_lowercase().as_str() {
        "bigint" | "int64" | "biginteger" | "unsignedint" | "timestamp64" => "Long",
        "bigdecimal" | "money" | "numeric" | "currency" => "Decimal",
        "localdate" | "isodate" | "day" => "Date",
        "timestamp" | "instant" | "offsetdatetime" | "zoneddatetime" | "isodatetime" | "iso8601datetime" => {
            "DateTime"
        }
        "guid" | "uuid" => "UUID",
        "uri" | "url" | "link" => "URL",
        "emailaddress" | "email" => "Email",
        "jsonobject" | "object" | "map" | "any" | "json" => "JSON",
        _ => {
            return format!(
                "use one of Long, Decimal, Date, DateTime, UUID, URL, Email and JSON, or {resolver}"
            );
        }
    };
    format!("use `{scalar}`, or {resolver}")
}
