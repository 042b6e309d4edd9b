//! Why a field is kept nowhere, said so that its author knows what to do.

use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ObjectType;

use crate::sdl::diagnostic_log::Log;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Scalar,
    Interface,
    Union,
    Arguments,
    Connection,
    Root,
    ListOfLists,
    HoldsRecords,
    /// `@resolver` says who answers: nothing to warn of.
    Resolver,
    /// Someone else complains.
    Mistake,
}

pub(crate) fn warn(log: &mut Log, ty: &ObjectType, def: &FieldDefinition, why: Why) {
    let name = def.ty.inner_named_type().as_str();
    let resolver = format!("register a resolver for `{}.{}`", ty.name, def.name);
    let (reason, help) = match why {
        Why::Resolver | Why::Mistake => return,
        Why::Scalar => (format!("Trefoil does not know the scalar `{name}`"), scalar_help(name, &resolver)),
        Why::Interface => (format!("`{name}` is an interface"), resolver),
        Why::Union => (format!("`{name}` is a union"), resolver),
        Why::Arguments => ("it takes arguments".into(), format!("{resolver}, or remove the arguments")),
        Why::Connection => (
            format!("`{name}` is a connection, which only list operations can answer"),
            format!("make it a list of records, or {resolver}"),
        ),
        Why::Root => (format!("`{name}` is a root type"), resolver),
        Why::ListOfLists => ("it is a list of lists of records".into(), resolver),
        Why::HoldsRecords => (
            format!("`{name}` holds records and so is no value inside its owner"),
            format!("give `{name}` an `id: ID!`, or {resolver}"),
        ),
    };
    log.warning(
        def.name.location(),
        "NOT_STORED",
        format!("`{}.{}` is not stored: {reason}", ty.name, def.name),
    )
    .label("errors when requested")
    .help(help);
}

/// Other servers' names for what we have.
fn scalar_help(name: &str, resolver: &str) -> String {
    let ours = match name.to_ascii_lowercase().as_str() {
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
    format!("use `{ours}`, or {resolver}")
}
