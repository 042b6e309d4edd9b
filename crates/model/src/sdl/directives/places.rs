//! Reports directives that do not fit the field they stand on.

use apollo_compiler::ast::FieldDefinition;
use apollo_compiler::schema::ObjectType;

use crate::FieldKind;
use crate::sdl::diagnostic_log::suggest_or_else;
use crate::sdl::directives::{FieldDirectives, expected_kind};
use crate::sdl::record_types::{FieldOwner, RecordTypeReader};

impl RecordTypeReader<'_> {
    /// Reports directives that do not fit their field.
    pub(crate) fn check_directives(
        &mut self,
        ty: &ObjectType,
        def: &FieldDefinition,
        directives: &FieldDirectives<'_>,
        kind: &FieldKind,
        owner: FieldOwner,
    ) {
        for directive in &directives.directives {
            let name = directive.name.as_str();
            let place = format!("`{}.{}`", ty.name, def.name);
            let misplaced = owner == FieldOwner::EmbeddedValue
                && matches!(
                    name,
                    "unique" | "reference" | "renamedFrom" | "createdAt" | "updatedAt" | "version"
                );
            let (message, help) = if misplaced {
                (
                    format!("`@{name}` is not allowed on {place}, a field of an embedded value"),
                    "remove it".to_owned(),
                )
            } else if name == "reference" && !kind.is_reference() {
                let records = self.record_ids.keys().copied();
                let help = suggest_or_else(def.ty.inner_named_type(), records, || "remove it".into());
                (
                    format!("`@reference` is not allowed on {place}, which is not a reference to a record"),
                    help,
                )
            } else if kind.is_id() && !matches!(name, "unique" | "renamedFrom") {
                (
                    format!("`@{name}` is not allowed on {place}: ids are assigned by the store"),
                    "remove it".to_owned(),
                )
            } else if let Some(purpose) = expected_kind(name, kind) {
                (
                    format!("`@{name}` is only for {purpose}, but {place} is `{}`", def.ty),
                    better_directive(name, kind),
                )
            } else {
                continue;
            };
            self.log
                .error(directive.location(), "DIRECTIVE_PLACE", message)
                .label(format!("does not fit `{}`", def.ty))
                .help(help);
        }
    }

    /// Reports directives on a list of records: only `@reference(inverse:)` and, for sides of a link,
    /// `@renamedFrom` are allowed.
    pub(crate) fn check_list_directives(
        &mut self,
        ty: &ObjectType,
        def: &FieldDefinition,
        directives: &FieldDirectives<'_>,
    ) {
        for directive in directives
            .directives
            .iter()
            .filter(|directive| !matches!(directive.name.as_str(), "reference" | "renamedFrom"))
        {
            let message = format!(
                "`@{}` is not allowed on `{}.{}`, a list of records",
                directive.name, ty.name, def.name
            );
            self.log
                .error(directive.location(), "DIRECTIVE_PLACE", message)
                .label("a list of records stores no value")
                .help("remove it");
        }
        if let Some(reference) =
            directives.reference.as_ref().filter(|reference| reference.on_delete.is_some())
        {
            let target = def.ty.inner_named_type();
            let message =
                format!("`onDelete` must be on the reference, not on the list `{}.{}`", ty.name, def.name);
            self.log
                .error(reference.directive.location(), "REFERENCE", message)
                .label("this side is not the reference")
                .help(format!("move it to the field of `{target}` that refers to `{}`", ty.name));
        }
    }
}

/// Help for a directive that does not fit its field.
fn better_directive(directive: &str, kind: &FieldKind) -> String {
    match directive {
        "range" if kind.is_text() => "use `@length` for text".into(),
        "length" if expected_kind("range", kind).is_none() => "use `@range` for numbers".into(),
        "createdAt" | "updatedAt" => "declare `scalar DateTime` and make the field a `DateTime`".into(),
        "version" => "make the field an `Int`".into(),
        _ => "remove it".into(),
    }
}
