//! Reads what records are called: `@title` on a type or on its fields.

use std::collections::HashSet;
use std::ops::Range;

use apollo_compiler::parser::SourceSpan;
use apollo_compiler::schema::ObjectType;
use apollo_compiler::{Node, Schema, ast};

use crate::access::RuleError;
use crate::naming::names::{self, nearest_name};
use crate::record_title::RecordTitle;
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives::{DirectiveReader, directive_argument, is_builtin_directive};
use crate::sdl::record_types::PartialModel;
use crate::{Field, FieldId, FieldKind, RecordType, Scalar};

/// Sets the title of each record type.
pub(crate) fn read_titles(
    partial_model: &mut PartialModel,
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) {
    for record in &mut partial_model.records {
        let Some(ty) = schema.get_object(&record.name) else { continue };
        let title = TitleReader { record, ty, redeclared, log }.read();
        record.title = title.unwrap_or_else(|| guessed_title(&record.fields));
    }
}

/// Names of fields that are titles, best first.
const TITLE_NAMES: [&str; 3] = ["name", "title", "label"];

/// Names of fields that say what a record is about, where nothing says what it is called.
const TOPIC_NAMES: [&str; 2] = ["subject", "item"];

/// Words for the names of a person.
const GIVEN_NAMES: [&str; 3] = ["first_name", "given_name", "forename"];
const FAMILY_NAMES: [&str; 4] = ["last_name", "family_name", "surname", "second_name"];

/// The title of a type that says none: a text with one of [`TITLE_NAMES`], the names of a person, the first required
/// text that no other record has, one with one of [`TOPIC_NAMES`], or else the first required text.
fn guessed_title(fields: &[Field]) -> RecordTitle {
    let find = |is_wanted: &dyn Fn(&Field) -> bool| {
        fields.iter().position(|field| is_text(field) && is_wanted(field)).map(FieldId)
    };
    let called = |names: &[&str]| {
        names.iter().find_map(|name| find(&|field| names::snake_words(&field.name) == *name))
    };
    let first_of = |names: &[&str]| names.iter().find_map(|name| find(&|field| field.name == *name));
    let named = first_of(&TITLE_NAMES);
    let person = || called(&GIVEN_NAMES).zip(called(&FAMILY_NAMES)).map(|(given, family)| [given, family]);
    if let (None, Some(names)) = (named, person()) {
        return RecordTitle::of_fields(names);
    }
    let unique = || find(&|field| field.required && field.unique);
    let topic = || first_of(&TOPIC_NAMES);
    RecordTitle::of_fields(named.or_else(unique).or_else(topic).or_else(|| find(&|field| field.required)))
}

fn is_text(field: &Field) -> bool {
    matches!(field.kind.scalar(), Some(Scalar::String | Scalar::Email)) && field.is_stored()
}

struct TitleReader<'r> {
    record: &'r RecordType,
    ty: &'r ObjectType,
    redeclared: &'r HashSet<String>,
    log: &'r mut DiagnosticLog,
}

impl TitleReader<'_> {
    /// What the type says; `None` if it says nothing, or nothing that can be read.
    fn read(mut self) -> Option<RecordTitle> {
        let own = self.ty.directives.iter().map(|directive| &directive.node);
        let own = own.clone().find(|directive| self.is_title(directive)).cloned();
        let fields = self.marked_fields();
        match (own, fields.first()) {
            (Some(_), Some((_, on_field))) => {
                let message = format!("`{}` says twice what its records are called", self.record.name);
                self.log
                    .error(on_field.location(), "TITLE", message)
                    .label("one too many")
                    .help("keep `@title` on the type or on its fields");
                None
            }
            (Some(directive), None) => self.read_template(&directive),
            (None, Some(_)) => Some(RecordTitle::of_fields(fields.into_iter().map(|(field, _)| field))),
            (None, None) => None,
        }
    }

    fn is_title(&self, directive: &Node<ast::Directive>) -> bool {
        directive.name == "title" && is_builtin_directive(self.redeclared, directive)
    }

    /// The fields with `@title`.
    fn marked_fields(&mut self) -> Vec<(FieldId, Node<ast::Directive>)> {
        let mut marked = Vec::new();
        for (name, definition) in &self.ty.fields {
            let directive = definition.directives.iter().find(|directive| self.is_title(directive));
            let (Some(directive), Some(field)) = (directive, self.record.find_field(name)) else { continue };
            if let Some(template) = directive_argument(directive, "template") {
                self.log
                    .error(template.location(), "TITLE", "a template is for the whole type")
                    .label("not on a field")
                    .help(format!("write it on the type: `type {} @title(template: …)`", self.record.name));
            }
            marked.push((field, directive.clone()));
        }
        marked
    }

    fn read_template(&mut self, directive: &Node<ast::Directive>) -> Option<RecordTitle> {
        let mut reader = DirectiveReader { log: self.log, redeclared: self.redeclared };
        let template = reader.text_argument(directive, "template");
        if directive_argument(directive, "template").is_none() {
            self.log
                .error(directive.location(), "TITLE", "`@title` on a type needs a template")
                .label("no template given")
                .help("write `@title(template: \"{name}\")`, with fields in braces");
        }
        let literal = directive_argument(directive, "template").and_then(|value| value.location());
        self.parse(template?, literal)
    }

    fn parse(&mut self, template: &str, literal: Option<SourceSpan>) -> Option<RecordTitle> {
        let (mut fields, mut rest, mut is_right) = (Vec::new(), 0, true);
        let pieces = template_pieces(template);
        let mistakes = pieces.iter().filter_map(|piece| self.field_of(template, piece).err());
        for mistake in mistakes.collect::<Vec<_>>() {
            self.log.rule_error(literal, mistake);
            is_right = false;
        }
        for piece in pieces {
            if let Ok(field) = self.field_of(template, &piece) {
                fields.push((template[rest..piece.start].to_owned(), field));
            }
            rest = piece.end;
        }
        if fields.is_empty() && is_right {
            let message = "a title without a field is the same for all records".to_owned();
            let mistake = RuleError::new(0..template.len(), "TITLE", message).label("no field in braces");
            self.log.rule_error(literal, mistake.help("write `{name}` where a value stands"));
            is_right = false;
        }
        is_right.then(|| RecordTitle::from_template(fields, &template[rest..]))
    }

    /// The field in a piece of a template.
    fn field_of(&self, template: &str, piece: &Range<usize>) -> Result<FieldId, RuleError> {
        let mistake = |span: Range<usize>, message: String| RuleError::new(span, "TITLE", message);
        let text = &template[piece.clone()];
        let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            let sign = &text[..1];
            return Err(mistake(piece.start..piece.start + 1, format!("this `{sign}` has no other brace"))
                .label("alone")
                .help("write the name of a field between `{` and `}`"));
        };
        let span = if name.is_empty() { piece.clone() } else { piece.start + 1..piece.end - 1 };
        let owner = &self.record.name;
        let Some(field) = self.record.find_field(name) else {
            let known = self.record.fields.iter().filter(|field| field.is_stored());
            let near = nearest_name(name, known.map(|field| field.name.as_str()));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            let mistake = mistake(span, format!("`{owner}` has no field `{name}`")).label("unknown field");
            return Err(RuleError { help, ..mistake });
        };
        let kind = &self.record.field(field).kind;
        match self.record.field(field).is_stored() && kind.is_comparable() && !kind.is_reference() {
            true => Ok(field),
            false => Err(mistake(span, format!("`{owner}.{name}` is no single value"))
                .label(unfit_label(kind))
                .help("a title is made of texts, numbers, times and choices of the record itself")),
        }
    }
}

fn unfit_label(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Relation(_) => "leads to other records",
        FieldKind::Unstored => "is not stored",
        FieldKind::Id(_) | FieldKind::Value(_) => "has parts",
    }
}

/// The pieces in braces with their braces, and braces without another one up to the next.
fn template_pieces(template: &str) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut open: Option<usize> = None;
    for (at, sign) in template.match_indices(['{', '}']) {
        match (sign, open) {
            ("{", Some(before)) => pieces.push(before..before + 1),
            ("}", Some(start)) => pieces.push(start..at + 1),
            ("}", None) => pieces.push(at..at + 1),
            _ => {}
        }
        open = (sign == "{").then_some(at);
    }
    pieces.extend(open.map(|at| at..at + 1));
    pieces
}

#[cfg(test)]
mod tests {
    use crate::{SourceFile, parse_schema};

    fn title(fields: &str) -> String {
        let text = format!("type Thing {{ id: ID! {fields} }} type Query {{ things: [Thing!]! }}");
        let model = parse_schema(&[SourceFile { name: "t.graphqls".into(), text }], &[]).expect("a schema").0;
        let thing = model.record(model.find_record("Thing").expect("the type"));
        let names = thing.title.fields().map(|field| thing.field(field).name.as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn titles_are_guessed_in_this_order() {
        for (fields, expected) in [
            ("title: String label: String name: String", "name"),
            ("label: String! title: String", "title"),
            ("firstName: String lastName: String label: String", "label"),
            ("lastName: String firstName: String code: String! @unique", "firstName lastName"),
            ("item: String! subject: String! code: String! @unique", "code"),
            ("code: String @unique note: String! item: String", "item"),
            ("item: String subject: String", "subject"),
            ("size: Int note: String text: String! more: String!", "text"),
            ("size: Int! note: String", ""),
        ] {
            assert_eq!(title(fields), expected, "{fields}");
        }
    }
}
