//! Warnings about fields that are not stored, or not checked, with the reason and what to do.

use std::collections::BTreeSet;

use apollo_compiler::Schema;
use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ObjectType;

use crate::sdl::diagnostic_log::DiagnosticLog;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnstoredReason {
    Interface,
    Union,
    HasArguments,
    Connection,
    RootType,
    ListOfLists,
    HoldsRecords,
    /// It is computed of related records: no warning.
    IsSummary,
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
        UnstoredReason::HasResolver | UnstoredReason::IsSummary | UnstoredReason::AlreadyReported => return,
        UnstoredReason::Interface => (format!("`{name}` is an interface"), resolver),
        UnstoredReason::Union => (format!("`{name}` is a union"), resolver),
        UnstoredReason::HasArguments => {
            ("it takes arguments".into(), format!("{resolver}, or remove the arguments"))
        }
        UnstoredReason::Connection => {
            (format!("`{name}` is a connection, and its nodes are no records of one type"), resolver)
        }
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

pub(crate) fn warn_unknown_scalars(log: &mut DiagnosticLog, schema: &Schema, names: &BTreeSet<&str>) {
    for name in names {
        let span = schema.types.get(*name).and_then(|ty| ty.name().location());
        let message = format!("unknown scalar `{name}`: its values are stored as JSON, without any check");
        log.warning(span, "UNKNOWN_SCALAR", message)
            .label("accepts everything")
            .help("use Long, Decimal, Date, DateTime, UUID, URL or Email for values that are to be checked");
    }
}
