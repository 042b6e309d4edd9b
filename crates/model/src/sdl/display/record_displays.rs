//! Reads `@display` on types and enum values, and gives its words to the served schema.

use std::collections::HashSet;

use apollo_compiler::parser::SourceSpan;
use apollo_compiler::schema::ExtendedType;
use apollo_compiler::validation::Valid;
use apollo_compiler::{Node, Schema, ast};
use indexmap::IndexMap;

use crate::display_words::ChoiceDisplay;
use crate::naming::names::nearest_name;
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives::{DirectiveReader, DisplayPlace, is_builtin_directive};
use crate::sdl::record_types::PartialModel;
use crate::{EnumType, Field, RecordType};

/// Sets the displays of record types and enum values.
pub(crate) fn read_displays(
    partial_model: &mut PartialModel,
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) {
    for i in 0..partial_model.records.len() {
        let Some(ty) = schema.get_object(&partial_model.records[i].name) else { continue };
        let directives = ty.directives.iter().map(|directive| &directive.node);
        let Some(directive) = display_directive(directives, redeclared) else { continue };
        let mut reader = DirectiveReader { log: &mut *log, redeclared };
        reader.check_display_place(directive, DisplayPlace::Type);
        let display = reader.read_record_display(directive);
        let columns = reader.text_list_argument(directive, "columns");
        check_columns(&partial_model.records[i], &columns, log);
        partial_model.records[i].display = display;
    }
    for found in partial_model.enums.values_mut() {
        read_enum(found, schema, redeclared, log);
    }
}

fn display_directive<'d>(
    mut directives: impl Iterator<Item = &'d Node<ast::Directive>>,
    redeclared: &HashSet<String>,
) -> Option<&'d Node<ast::Directive>> {
    directives.find(|directive| directive.name == "display" && is_builtin_directive(redeclared, directive))
}

fn read_enum(found: &mut EnumType, schema: &Schema, redeclared: &HashSet<String>, log: &mut DiagnosticLog) {
    let Some(ExtendedType::Enum(ty)) = schema.types.get(found.name.as_str()) else { return };
    let displays = ty.values.values().map(|value| {
        let Some(directive) = display_directive(value.directives.iter(), redeclared) else {
            return ChoiceDisplay::default();
        };
        let mut reader = DirectiveReader { log: &mut *log, redeclared };
        reader.report_unknown_arguments(directive);
        reader.check_display_place(directive, DisplayPlace::EnumValue);
        reader.read_choice_display(directive)
    });
    found.displays = displays.collect();
}

type WrittenTexts<'s> = [(&'s str, &'s Node<ast::Value>)];

fn check_columns(record: &RecordType, columns: &WrittenTexts<'_>, log: &mut DiagnosticLog) {
    for (name, value) in columns {
        let field = record.find_field(name).map(|id| record.field(id));
        match field {
            Some(field) if field.is_stored() && field.kind.is_comparable() => {}
            Some(_) => {
                let message = format!("`{}.{name}` does not fit into a column", record.name);
                let diagnostic = log.error(value.location(), "DISPLAY", message);
                diagnostic
                    .label("not a single value")
                    .help("a column has a text, number, time, choice or reference");
            }
            None => report_unknown(record, name, value.location(), log),
        }
    }
}

fn report_unknown(record: &RecordType, name: &str, span: Option<SourceSpan>, log: &mut DiagnosticLog) {
    let known = record.fields.iter().map(|field| field.name.as_str());
    let near = nearest_name(name, known).map(|near| format!("did you mean `{near}`?"));
    let message = format!("`{}` has no field `{name}`", record.name);
    log.error(span, "DISPLAY", message).label("unknown field").help = near;
}

/// The words of `@display` in descriptions, for GraphiQL and introspection.
pub(crate) fn describe_displayed(
    schema: Valid<Schema>,
    records: &[RecordType],
    enums: &IndexMap<String, EnumType>,
) -> Valid<Schema> {
    let has_words = |field: &Field| field.display.label.is_some() || field.display.hint.is_some();
    let is_plain =
        records.iter().all(|record| record.display.label.is_none() && !record.fields.iter().any(has_words))
            && enums.values().all(|found| found.displays.iter().all(|display| display.label.is_none()));
    if is_plain {
        return schema;
    }
    let mut schema = schema.into_inner();
    for record in records {
        let Some(ExtendedType::Object(ty)) = schema.types.get_mut(record.name.as_str()) else { continue };
        let ty = ty.make_mut();
        describe(&mut ty.description, record.display.label.as_deref(), None);
        for field in &record.fields {
            if let Some(declared) = ty.fields.get_mut(field.name.as_str()).filter(|_| has_words(field)) {
                let (label, hint) = (field.display.label.as_deref(), field.display.hint.as_deref());
                describe(&mut declared.make_mut().description, label, hint);
            }
        }
    }
    for found in enums.values() {
        let Some(ExtendedType::Enum(ty)) = schema.types.get_mut(found.name.as_str()) else { continue };
        let labels = found.values.iter().zip(&found.displays).filter(|(_, display)| display.label.is_some());
        for (name, display) in labels {
            if let Some(value) = ty.make_mut().values.get_mut(name.as_str()) {
                describe(&mut value.make_mut().description, display.label.as_deref(), None);
            }
        }
    }
    Valid::assume_valid(schema)
}

/// The label, and below it the description, or else the hint.
fn describe(description: &mut Option<Node<str>>, label: Option<&str>, hint: Option<&str>) {
    let words = [label, description.as_deref().or(hint)];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    *description = (!words.is_empty()).then(|| Node::new_str(&words.join("\n\n")));
}
