//! Checks of the schema as a whole: conflicting tables, columns and names, indexes, and reference cycles.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use apollo_compiler::Schema;
use apollo_compiler::parser::{FileId, SourceSpan};
use apollo_compiler::schema::DirectiveDefinition;

use crate::diagnostic::Diagnostic;
use crate::naming::names;
use crate::sdl::diagnostic_log::{DiagnosticLog, is_user_written, suggest_or_else, type_span};
use crate::sdl::directives::{self, BuiltinDirective, DirectiveReader};
use crate::sdl::record_types::PartialModel;
use crate::sdl::resource_paths::{self, ReservedPath};
use crate::sdl::syntax_errors;
use crate::{Field, FieldId, FieldKind, RecordType, SourceFile, ValueSource};

pub(crate) fn check_schema(
    partial_model: &mut PartialModel,
    schema: &Schema,
    redeclared: &HashSet<String>,
    reserved: &[ReservedPath],
    log: &mut DiagnosticLog,
) {
    check_tables(partial_model, schema, log);
    resource_paths::check_paths(&partial_model.records, schema, reserved, log);
    for i in 0..partial_model.records.len() {
        take_declared_key_names(&mut partial_model.records[i]);
        check_columns(&mut partial_model.records[i], schema, log);
        read_unique_within(&mut partial_model.records[i], schema, redeclared, log);
        partial_model.records[i].indexes = read_indexes(&partial_model.records[i], schema, redeclared, log);
    }
    add_reference_words(&mut partial_model.records);
    check_reference_cycles(&partial_model.records, schema, log);
}

/// Where a type has `user_id` or `userID` beside the reference `user`, that is the name of its key on every face.
fn take_declared_key_names(record: &mut RecordType) {
    for i in 0..record.fields.len() {
        if !record.fields[i].kind.is_reference() {
            continue;
        }
        let words = names::snake_words(&record.fields[i].input_name);
        let is_declared =
            |field: &&Field| field.kind.holds_key_text() && names::snake_words(&field.name) == words;
        let mut declared = record.fields.iter().filter(is_declared);
        if let (Some(field), None) = (declared.next(), declared.next()) {
            record.fields[i].input_name = field.name.clone();
        }
    }
}

/// Adds the other names of references: `departmentCode` where `code` is the key of `department`, and `vetId` for
/// `treatingVet` if no other field refers to a Vet. `approvedBy` is not the user of a record.
fn add_reference_words(records: &mut [RecordType]) {
    for i in 0..records.len() {
        let mut added: Vec<(usize, Vec<String>)> = Vec::new();
        let record = &records[i];
        for (position, field) in record.fields.iter().enumerate() {
            let Some(target) = field.kind.reference().map(|reference| reference.target) else { continue };
            let target_record = &records[target.0];
            let key = names::snake_words(&target_record.field(target_record.id_field()).name);
            let mut words = field.own_words();
            words.push(format!("{}_{key}", names::snake_words(&field.name)));
            let refers = |other: &&Field| other.kind.reference().is_some_and(|other| other.target == target);
            let is_only = record.fields.iter().filter(refers).count() == 1;
            if target.0 != i && is_only && !names::names_later_deed(&field.name) {
                let noun = names::snake_words(&target_record.name);
                words.extend([format!("{noun}_id"), format!("{noun}_{key}")]);
            }
            // A field that has these words as its own name keeps them.
            let is_taken = |word: &String| {
                let others = record.fields.iter().enumerate().filter(|(other, _)| *other != position);
                let mut stored = others.filter(|(_, other)| !other.kind.is_unstored());
                stored.any(|(_, other)| other.own_words().contains(word))
            };
            words.retain(|word| !is_taken(word));
            added.push((position, words));
        }
        for (position, words) in added {
            let field = &mut records[i].fields[position];
            field.name_words = OnceLock::from(words);
        }
    }
}

/// Built-in directives that the schema declares with another meaning; they are not read.
pub(crate) fn redeclared_directives(
    schema: &Schema,
    builtin_file: Option<FileId>,
    log: &mut DiagnosticLog,
) -> HashSet<String> {
    let mut redeclared = HashSet::new();
    for definition in directives::BUILTIN_DIRECTIVES {
        let Some(declared) = schema.directive_definitions.get(definition.name) else { continue };
        if is_user_written(declared.location(), builtin_file) && !is_compatible(declared, definition) {
            if directives::ACCESS_DIRECTIVES.contains(&definition.name) {
                let message =
                    format!("`@{}` restricts access and cannot be declared otherwise", definition.name);
                log.error(declared.name.location(), "DIRECTIVE_DECLARED", message)
                    .label("declared in another sense")
                    .help(format!("rename it; Trefoil's definition is `{}`", definition.sdl));
                continue;
            }
            log.warning(
                declared.name.location(),
                "DIRECTIVE_DECLARED",
                format!(
                    "`@{}` is declared differently from Trefoil's directive and has no effect",
                    definition.name
                ),
            )
            .label("ignored")
            .help(format!("Trefoil's definition is `{}`", definition.sdl));
            redeclared.insert(definition.name.to_owned());
        }
    }
    redeclared
}

fn is_compatible(declared: &DirectiveDefinition, builtin: &BuiltinDirective) -> bool {
    let builtin = builtin.definition();
    let mut required = builtin.arguments.iter().filter(|argument| argument.is_required());
    // In other places, and where only one counts, a rule would be read by nobody.
    let is_read = !directives::ACCESS_DIRECTIVES.contains(&declared.name.as_str())
        || declared.locations.iter().all(|place| builtin.locations.contains(place))
            && (builtin.repeatable || !declared.repeatable);
    is_read
        && declared.arguments.iter().all(|argument| builtin.argument_by_name(&argument.name).is_some())
        && required.all(|argument| declared.argument_by_name(&argument.name).is_some())
}

pub(crate) fn report_missing_query(schema: &Schema, files: &[SourceFile], log: &mut DiagnosticLog) {
    let first = schema
        .types
        .values()
        .find_map(|ty| ty.name().location().filter(|span| is_user_written(Some(*span), None)));
    let diagnostic = log.error(first, "NO_QUERY", "the schema has no `Query` type");
    diagnostic
        .label("the schema starts here")
        .help("add a record type, such as `type User { id: ID! name: String }`, or a `Query` type");
    if diagnostic.file.is_empty()
        && let Some(file) = files.first()
    {
        diagnostic.file = file.name.clone();
        (diagnostic.line, diagnostic.column) = (1, 1);
    }
}

/// True if a diagnostic is still valid despite syntax errors: it is before the first one of its file and does not
/// depend on what could not be read.
pub(crate) fn survives_syntax_errors(
    diagnostic: &Diagnostic,
    syntax_errors_at: &[(String, usize)],
    files: &[SourceFile],
) -> bool {
    let is_before = syntax_errors_at
        .iter()
        .all(|(file, offset)| *file != diagnostic.file || diagnostic.span.end <= *offset);
    let is_independent = match diagnostic.code {
        "DIRECTIVE_ARGUMENT" | "PATTERN" | "PATH" => true,
        "UNKNOWN_TYPE" | "UNKNOWN_DIRECTIVE" => {
            !syntax_errors::seems_to_define(files, underlined_name(diagnostic, files))
        }
        _ => false,
    };
    is_before && is_independent
}

/// The underlined name: `User`, or `@key` of `@key(fields: "id")`.
fn underlined_name<'a>(diagnostic: &Diagnostic, files: &'a [SourceFile]) -> &'a str {
    let file = files.iter().find(|file| file.name == diagnostic.file);
    let text = file.and_then(|file| file.text.get(diagnostic.span.clone())).unwrap_or_default();
    text.split('(').next().unwrap_or_default().trim_end()
}

fn field_span(schema: &Schema, record: &RecordType, field: &Field) -> Option<SourceSpan> {
    schema.get_object(&record.name)?.fields.get(field.name.as_str())?.name.location()
}

/// Reports record types and links that share a table. Like SQLite, ignores case and reserves some names.
fn check_tables(partial_model: &PartialModel, schema: &Schema, log: &mut DiagnosticLog) {
    let mut taken: HashMap<String, String> = HashMap::new();
    for record in &partial_model.records {
        let span = type_span(schema, record);
        let table = record.table.to_ascii_lowercase();
        if table.is_empty() || table.starts_with("trefoil_") || table.starts_with("sqlite_") {
            log.error(span, "NAME_CLASH", format!("`{}` is not a valid name for a record type", record.name))
                .label(format!("the table name `{table}` is not allowed"))
                .help("rename the type");
        } else if let Some(other) = taken.get(&table) {
            let same_name = other.eq_ignore_ascii_case(&record.name);
            let reason = if same_name { "differ only by case" } else { "use the same table" };
            log.error(span, "NAME_CLASH", format!("`{}` and `{other}` {reason}", record.name))
                .label(format!("its table is also `{table}`"))
                .help(
                    "rename one of the types, or keep the values of one inside their owners with `@embedded`",
                );
        } else {
            taken.insert(table, record.name.clone());
        }
    }
    for record in &partial_model.records {
        for field in &record.fields {
            let Some(link) = field.kind.link() else { continue };
            // Checked once, on the side that names the table.
            let table = &link.table;
            if *table != names::link_table(&record.table, &field.name) {
                continue;
            }
            let name = format!("{}.{}", record.name, field.name);
            if let Some(other) = taken.get(&table.to_ascii_lowercase()) {
                let message = format!("`{name}` and `{other}` use the same table");
                log.error(field_span(schema, record, field), "NAME_CLASH", message)
                    .label(format!("its link table is `{table}`"))
                    .help("rename one of them");
            } else {
                taken.insert(table.to_ascii_lowercase(), name);
            }
        }
    }
}

/// Reports fields that share a column, or a name in bodies and forms.
fn check_columns(record: &mut RecordType, schema: &Schema, log: &mut DiagnosticLog) {
    for i in 0..record.fields.len() {
        let field = &record.fields[i];
        let before = &record.fields[..i];
        // A reference `type` has the column `typeId`, so it may stand beside a value `Type`.
        let is_same = |other: &Field| {
            let is_key = field.kind.is_id() || other.kind.is_id();
            other.name.eq_ignore_ascii_case(&field.name) && (is_key || share_stored_name(other, field))
        };
        let clash = before.iter().enumerate().find(|(_, other)| is_same(other));
        if let Some((j, other)) = clash {
            let message =
                format!("`{0}.{1}` and `{0}.{2}` differ only by case", record.name, field.name, other.name);
            // `ID` beside the key `id`, as models on Go have it.
            let lost = if field.kind.is_id() { Some(j) } else { other.kind.is_id().then_some(i) };
            let Some(lost) = lost else {
                log.error(field_span(schema, record, field), "NAME_CLASH", message)
                    .label("column names ignore case")
                    .help("rename one of them");
                continue;
            };
            let message = format!("`{}.{}` is not stored: {message}", record.name, record.fields[lost].name);
            log.warning(field_span(schema, record, &record.fields[lost]), "NOT_STORED", message)
                .label("returns an error when queried")
                .help("rename it, or register a resolver for it");
            record.fields[lost].kind = FieldKind::Unstored;
            record.fields[lost].column.clear();
            continue;
        }
        let owner = record.fields.iter().enumerate().find(|(j, other)| {
            *j != i
                && other.kind.input_target().is_some()
                && other.input_name.eq_ignore_ascii_case(&field.name)
        });
        if let Some((_, other)) = owner.filter(|_| field.kind.is_id()) {
            let message = format!(
                "`{0}.{1}` and `{0}.{2}` have conflicting names",
                record.name, field.name, other.name
            );
            log.error(field_span(schema, record, other), "NAME_CLASH", message)
                .label(format!("bodies and forms call it `{}`, which is the key", other.input_name))
                .help("rename one of them");
            continue;
        }
        if let Some((_, other)) = owner.filter(|_| !field.kind.is_unstored()) {
            // `userId` beside the reference `user` shows its key.
            if !other.kind.is_reference() || !field.kind.holds_key_text() {
                log.warning(
                    field_span(schema, record, field),
                    "NOT_STORED",
                    format!(
                        "`{0}.{1}` is not stored: `{0}.{2}` already uses that name for its stored value",
                        record.name, field.name, other.name
                    ),
                )
                .label("returns an error when queried")
                .help(format!(
                    "remove it and query `{} {{ id }}` instead, or rename one of them",
                    other.name
                ));
            }
            record.fields[i].kind = FieldKind::Unstored;
            record.fields[i].column.clear();
            continue;
        }
        if let Some(other) = before.iter().find(|other| share_stored_name(other, field)) {
            let message = format!(
                "`{0}.{1}` and `{0}.{2}` have conflicting names",
                record.name, field.name, other.name
            );
            log.error(field_span(schema, record, field), "NAME_CLASH", message)
                .label(format!("`{}` also uses the name `{}`", other.name, field.input_name))
                .help("rename one of them");
        }
    }
}

/// True if two fields of a record share a column or an input name.
fn share_stored_name(one: &Field, other: &Field) -> bool {
    let have_columns = one.is_stored() && other.is_stored() && one.value_source != ValueSource::RecordVersion;
    (have_columns && one.column.eq_ignore_ascii_case(&other.column))
        || (one.kind.is_link()
            && other.kind.is_link()
            && one.input_name.eq_ignore_ascii_case(&other.input_name))
}

fn read_indexes(
    record: &RecordType,
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) -> Vec<Vec<FieldId>> {
    let Some(ty) = schema.get_object(&record.name) else { return Vec::new() };
    let mut indexes = Vec::new();
    for directive in ty.directives.get_all("index").filter(|_| !redeclared.contains("index")) {
        let names = DirectiveReader { log, redeclared }.text_list_argument(directive, "fields");
        let mut fields: Vec<FieldId> = Vec::new();
        for (name, value) in &names {
            match indexable_field(record, name) {
                Ok(field) if fields.contains(&field) => {
                    log.error(value.location(), "INDEX", format!("`{name}` is listed twice"))
                        .help("remove one of them");
                }
                Ok(field) => fields.push(field),
                Err((message, help)) => {
                    log.error(value.location(), "INDEX", message).label("cannot be indexed").help(help);
                }
            }
        }
        let items = directives::directive_argument(directive, "fields").and_then(|value| value.as_list());
        if items.is_some_and(|items| items.is_empty()) {
            log.error(directive.location(), "INDEX", "`@index` needs at least one field")
                .label("no field given")
                .help("write `@index(fields: [\"name\"])`");
        }
        indexes.push(fields);
    }
    indexes
}

/// Reads `@unique(within:)`, which names another field.
fn read_unique_within(
    record: &mut RecordType,
    schema: &Schema,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) {
    let Some(ty) = schema.get_object(&record.name).filter(|_| !redeclared.contains("unique")) else { return };
    for position in 0..record.fields.len() {
        let field = &record.fields[position];
        let declared = ty.fields.get(field.name.as_str());
        let Some(directive) = declared.and_then(|declared| declared.directives.get("unique")) else {
            continue;
        };
        let mut reader = DirectiveReader { log, redeclared };
        let Some(name) = reader.text_argument(directive, "within") else { continue };
        let ignores_case = reader.flag_argument(directive, "ignoreCase") == Some(true);
        // What stores no single value is reported with all directives that do not fit their field.
        if field.kind.is_id() || !field.kind.is_comparable() {
            continue;
        }
        let is_reference = |id: &FieldId| record.field(*id).kind.is_reference() && id.0 != position;
        match record.find_input_field(name).filter(is_reference) {
            Some(within) => {
                let field = &mut record.fields[position];
                field.unique_within = Some(within);
                field.ignores_case = ignores_case && field.kind.is_text();
            }
            None => {
                let references = record.fields.iter().filter(|other| other.kind.is_reference());
                let known: Vec<&str> = references.map(|other| other.name.as_str()).collect();
                let otherwise = || format!("name a reference of `{}`", record.name);
                let help = suggest_or_else(name, known, otherwise);
                let span =
                    directives::directive_argument(directive, "within").and_then(|value| value.location());
                let message = format!(
                    "`within` of `@unique` must name another field that is a reference, not `{name}`"
                );
                log.error(span, "DIRECTIVE_ARGUMENT", message).label("no reference").help(help);
            }
        }
    }
}

/// The field that an index names, by its own name or as `userId`.
fn indexable_field(record: &RecordType, name: &str) -> Result<FieldId, (String, String)> {
    let Some(id) = record.find_input_field(name) else {
        let known = record.fields.iter().filter(|field| field.is_stored()).map(|field| field.name.as_str());
        let help = suggest_or_else(name, known, || format!("name a field of `{}`", record.name));
        return Err((format!("`{}` has no field `{name}`", record.name), help));
    };
    let field = record.field(id);
    if field.kind.is_comparable() {
        return Ok(id);
    }
    Err((
        format!("`{}.{name}` is not stored as a single value", record.name),
        "only fields with single values and references can be indexed".to_owned(),
    ))
}

/// Warns about cycles of required references: no first record could be created.
fn check_reference_cycles(records: &[RecordType], schema: &Schema, log: &mut DiagnosticLog) {
    for (i, record) in records.iter().enumerate() {
        for field in &record.fields {
            let Some(reference) = field.kind.reference() else { continue };
            // Each cycle is reported once, at its first type.
            if field.required
                && references_back(records, reference.target.0, i, &mut vec![false; records.len()])
            {
                log.warning(
                    field_span(schema, record, field),
                    "CIRCLE",
                    format!(
                        "no `{}` can ever be created: `{}` is required and refers back to it",
                        record.name, field.name
                    ),
                )
                .label("each record requires another one")
                .help(format!("make it optional: `{}: {}`", field.name, records[reference.target.0].name));
            }
        }
    }
}

fn references_back(records: &[RecordType], from: usize, to: usize, seen: &mut [bool]) -> bool {
    if from == to {
        return true;
    }
    // Cycles through an earlier type have been reported there.
    if from < to || std::mem::replace(&mut seen[from], true) {
        return false;
    }
    records[from].fields.iter().any(|field| {
        let reference = field.kind.reference().filter(|_| field.required);
        reference.is_some_and(|reference| references_back(records, reference.target.0, to, seen))
    })
}
