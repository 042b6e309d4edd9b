//! Reports directives that do not fit the field they stand on.

use apollo_compiler::Node;
use apollo_compiler::ast::{Directive, FieldDefinition};
use apollo_compiler::schema::ObjectType;

use crate::sdl::diagnostic_log::suggest_or_else;
use crate::sdl::directives::{
    DirectiveReader, DisplayPlace, FieldDirectives, directive_argument, expected_kind, expected_kind_of_use,
};
use crate::sdl::record_keys::key_of_kind;
use crate::sdl::record_types::{FieldOwner, RecordTypeReader};
use crate::{FieldKind, KeyForm, Scalar, ValueFormat};

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
            if name == "allow" && (kind.is_id() || owner == FieldOwner::EmbeddedValue) {
                // Reported with the rules, or with all fields of the type.
                continue;
            }
            if name == "search" {
                if owner == FieldOwner::EmbeddedValue || !kind.is_text() {
                    self.warn_search(directive, &format!("{place} is no text field of a record"));
                }
                continue;
            }
            if name == "display" {
                self.check_display(directive, directives, kind, owner, &place);
                continue;
            }
            let misplaced = owner == FieldOwner::EmbeddedValue
                && matches!(
                    name,
                    "key"
                        | "unique"
                        | "reference"
                        | "renamedFrom"
                        | "title"
                        | "createdAt"
                        | "updatedAt"
                        | "version"
                        | "createdBy"
                        | "updatedBy"
                );
            let is_of_actor = name == "default" && directive_argument(directive, "from").is_some();
            let misplaced = misplaced || (owner == FieldOwner::EmbeddedValue && is_of_actor);
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
            } else if name == "key" && !kind.is_id() {
                key_help(&place, def, directive)
            } else if kind.is_id() && name == "resolver" {
                (
                    format!("`@resolver` is not allowed on {place}: the key of a record is stored"),
                    "remove it".to_owned(),
                )
            } else if kind.is_id() && !may_stand_on_key(name, kind) {
                (
                    format!("`@{name}` is not allowed on {place}: the server assigns its ids"),
                    "remove it".to_owned(),
                )
            } else if kind.is_id() {
                continue;
            } else if let Some(purpose) = expected_kind_of_use(directive, kind) {
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

    /// The weight of a field in the full-text index of its type.
    pub(crate) fn search_weight(
        &mut self,
        ty: &ObjectType,
        directives: &FieldDirectives<'_>,
        kind: &FieldKind,
        key: KeyForm,
    ) -> Option<u32> {
        let (weight, directive) = directives.search.filter(|_| kind.is_text())?;
        if !key.is_integer() {
            self.warn_search(directive, &format!("the ids of `{}` are not integers", ty.name));
            return None;
        }
        Some(weight)
    }

    /// Other servers have a directive of this name for all kinds of fields.
    fn warn_search(&mut self, directive: &Node<Directive>, reason: &str) {
        self.log
            .warning(directive.location(), "UNKNOWN_DIRECTIVE", format!("`@search` has no effect: {reason}"))
            .label("ignored")
            .help("searches look into the fields without it, as long as no field of the type has it");
    }

    fn check_display(
        &mut self,
        directive: &Node<Directive>,
        directives: &FieldDirectives<'_>,
        kind: &FieldKind,
        owner: FieldOwner,
        place: &str,
    ) {
        let of_value = if owner == FieldOwner::Record { DisplayPlace::Field } else { DisplayPlace::Member };
        let mut reader = DirectiveReader { log: self.log, redeclared: self.redeclared };
        reader.check_display_place(directive, of_value);
        let display = &directives.display;
        if display.sum && owner == FieldOwner::Record && !kind.is_number() {
            self.report_sum(directive, &format!("{place} is no number of a record"));
        }
        let fits =
            |format: ValueFormat| if format.is_of_numbers() { kind.is_number() } else { kind.is_text() };
        if let Some(format) = display.format.filter(|format| !fits(*format)) {
            let purpose = if format.is_of_numbers() { "numbers" } else { "texts" };
            self.log
                .error(
                    directive_argument(directive, "format").and_then(|value| value.location()),
                    "DIRECTIVE_ARGUMENT",
                    format!("this format is for {purpose}, and {place} is none"),
                )
                .label("does not fit the field")
                .help("remove the argument");
        }
    }

    fn report_sum(&mut self, directive: &Node<Directive>, reason: &str) {
        self.log
            .error(directive.location(), "DIRECTIVE_ARGUMENT", format!("`sum` is for numbers, and {reason}"))
            .label("has no sum")
            .help("remove the argument");
    }

    /// Reports directives on a list of records: only `@reference(inverse:)` and, for sides of a link, `@renamedFrom` are
    /// allowed. `@allow` is judged with the rules.
    pub(crate) fn check_list_directives(
        &mut self,
        ty: &ObjectType,
        def: &FieldDefinition,
        directives: &FieldDirectives<'_>,
    ) {
        if let Some((_, directive)) = directives.search {
            self.warn_search(directive, "a list of records stores no text");
        }
        let display = directives.directives.iter().find(|directive| directive.name == "display");
        if let Some(directive) = display.filter(|_| directives.display.sum) {
            self.report_sum(directive, &format!("`{}.{}` is a list of records", ty.name, def.name));
        }
        for directive in directives.directives.iter().filter(|directive| {
            !matches!(directive.name.as_str(), "reference" | "renamedFrom" | "search" | "display" | "allow")
        }) {
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

/// Clients choose text keys, so these may have rules.
fn may_stand_on_key(directive: &str, kind: &FieldKind) -> bool {
    match directive {
        "key" | "unique" | "renamedFrom" | "title" => true,
        "notBlank" | "length" | "pattern" | "email" => kind.key_form() == Some(KeyForm::Text),
        _ => false,
    }
}

/// The mistake of a `@key` that does not make its field the key.
fn key_help(place: &str, def: &FieldDefinition, directive: &Directive) -> (String, String) {
    let kind = directive_argument(directive, "kind").and_then(|kind| kind.as_enum());
    let scalar = Scalar::from_name(def.ty.inner_named_type()).filter(|_| !def.ty.is_list());
    match (kind, scalar) {
        (Some(kind), Some(scalar)) if key_of_kind(kind, scalar).is_some() => (
            format!("`@key` is not allowed on {place}: another field is the key already"),
            "remove one of them".to_owned(),
        ),
        (Some(kind), _) => (
            format!("`@key(kind: {kind})` does not fit {place}, which is `{}`", def.ty),
            "COUNT is for ID, Int, Long and String; UUID for ID, String and UUID; TEXT for ID and String"
                .to_owned(),
        ),
        (None, _) => (
            format!("`@key` on {place} needs a kind"),
            "write `@key(kind: COUNT)`, `UUID` or `TEXT`".to_owned(),
        ),
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
