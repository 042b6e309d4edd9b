//! The entry point: SDL files in, a [`Model`] out, or all mistakes of all files.

use std::collections::HashSet;
use std::sync::OnceLock;

use apollo_compiler::ast::Document;
use apollo_compiler::parser::{FileId, Parser, SourceMap};
use apollo_compiler::validation::{DiagnosticList, Valid};
use apollo_compiler::{Name, Schema};

use crate::access::{self, AccessModel};
use crate::diagnostic::{Diagnostic, Severity};
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives::{self, foreign_directives};
use crate::sdl::display::{record_displays, record_titles};
use crate::sdl::record_types::PartialModel;
use crate::sdl::resource_paths::ReservedPath;
use crate::sdl::{
    default_values, generate, graphql_errors, implied_types, merge_extensions, record_types, relations,
    root_fields, schema_checks, syntax_errors,
};
use crate::{Model, RecordType, RootField, SourceFile};

/// Reads a schema. On success the diagnostics are warnings, such as fields that are not stored.
pub fn parse_schema(
    files: &[SourceFile],
    reserved: &[ReservedPath],
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    parse_with(files, reserved, false)
}

/// Reads the schema of a protected application: without any rule, everything is refused.
pub fn parse_protected_schema(
    files: &[SourceFile],
    reserved: &[ReservedPath],
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    parse_with(files, reserved, true)
}

fn parse_with(
    files: &[SourceFile],
    reserved: &[ReservedPath],
    is_protected: bool,
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut parsed = parse_files(files);
    let mut read = read_documents(&parsed, reserved, is_protected);
    let mut generated = String::new();
    if parsed.errors.is_empty()
        && let Some(request) =
            generate::read_request(&read.schema, &read.partial_model, &read.redeclared, &mut read.log)
        && !read.log.has_errors()
    {
        let mut log = DiagnosticLog::new(parsed.sources.clone());
        generated = generate::generated_definitions(&read.schema, &read.partial_model, &request, &mut log);
        if !generated.is_empty() {
            parsed.add_file(&generated, generate::GENERATED_FILE);
            parsed.collect_sources();
            read = read_documents(&parsed, reserved, is_protected);
        }
        read.log.diagnostics.extend(log.diagnostics);
    }
    let ReadSchema { schema, partial_model, root_fields, access, mut log, .. } = read;
    // A mistake in a type may be the reason why its operations are not generated.
    if schema.schema_definition.query.is_none() && parsed.errors.is_empty() && !log.has_errors() {
        schema_checks::report_missing_query(&schema, files, &mut log);
    }
    let valid = validate_schema(schema, &mut log);
    let diagnostics = finish_diagnostics(log.diagnostics, files, !parsed.errors.is_empty());
    match valid {
        Some(schema) if diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning) => {
            let PartialModel { mut records, enums, embedded, .. } = partial_model;
            let schema = match &access {
                Some(access) => served_schema(schema, &mut records, access),
                None => schema,
            };
            let schema = record_displays::describe_displayed(schema, &records, &enums);
            let (schema, plain_sdl) = directives::add_atomic_directive(schema);
            let hash = xxhash_rust::xxh3::xxh3_64(plain_sdl.as_bytes());
            let sdl = schema.to_string();
            let mut model = Model {
                records,
                enums,
                embedded,
                root_fields,
                schema,
                sdl,
                hash,
                global_ids: false,
                generated,
                access,
                time_zone: OnceLock::new(),
                ruled_fields: OnceLock::new(),
            };
            model.mark_global_ids();
            Ok((model, diagnostics))
        }
        _ => Err(diagnostics),
    }
}

/// The schema as it is served: what rules may hide is nullable.
fn served_schema(schema: Valid<Schema>, records: &mut [RecordType], access: &AccessModel) -> Valid<Schema> {
    access::mark_hidden_fields(records, access);
    let mut schema = schema.into_inner();
    access::make_nullable(&mut schema, records);
    Valid::assume_valid(schema)
}

/// A schema with all that is read of it before it is validated.
struct ReadSchema {
    schema: Schema,
    partial_model: PartialModel,
    root_fields: Vec<RootField>,
    access: Option<AccessModel>,
    redeclared: HashSet<String>,
    log: DiagnosticLog,
}

fn read_documents(parsed: &ParsedFiles, reserved: &[ReservedPath], is_protected: bool) -> ReadSchema {
    let mut log = DiagnosticLog::new(parsed.sources.clone());
    for (text, errors) in &parsed.errors {
        syntax_errors::report_syntax_errors(&mut log, text, errors);
    }
    merge_extensions::warn_repeated_roots(&mut log, &parsed.repeated_roots);
    let mut schema = build_schema(parsed, &mut log);
    let redeclared = schema_checks::redeclared_directives(&schema, parsed.builtin_file, &mut log);
    foreign_directives::remove_foreign_directives(&mut schema, parsed.builtin_file, &mut log);
    let mut partial_model = record_types::read_record_types(&schema, &redeclared, &mut log);
    relations::resolve_relations(&mut partial_model, &schema, &mut log);
    let root_fields = root_fields::read_root_fields(&schema, &redeclared, &mut log);
    schema_checks::check_schema(&mut partial_model, &schema, &redeclared, reserved, &mut log);
    record_titles::read_titles(&mut partial_model, &schema, &redeclared, &mut log);
    record_displays::read_displays(&mut partial_model, &schema, &redeclared, &mut log);
    default_values::read_defaults(&mut partial_model, &schema, &redeclared, &mut log);
    let mut access = access::read_access(&schema, &partial_model, &root_fields, is_protected, &mut log);
    access::read_actor_fields(&schema, &mut partial_model, &redeclared, access.as_mut(), &mut log);
    ReadSchema { schema, partial_model, root_fields, access, redeclared, log }
}

struct ParsedFiles {
    documents: Vec<Document>,
    /// The errors of each file, with its text.
    errors: Vec<(String, DiagnosticList)>,
    sources: SourceMap,
    /// The file of the definitions that we add.
    builtin_file: Option<FileId>,
    /// The names of root types that one file has twice.
    repeated_roots: Vec<Name>,
}

fn parse_files(files: &[SourceFile]) -> ParsedFiles {
    let mut parsed = ParsedFiles {
        documents: Vec::new(),
        errors: Vec::new(),
        sources: SourceMap::default(),
        builtin_file: None,
        repeated_roots: Vec::new(),
    };
    for file in files.iter().filter(|file| !is_blank_file(&file.text)) {
        parsed.add_file(&file.text, &file.name);
    }
    parsed.repeated_roots = merge_extensions::extend_repeated_roots(&mut parsed.documents);
    let added =
        missing_definitions(files, &parsed.documents) + &implied_types::implied_types(&parsed.documents);
    if !added.is_empty() {
        parsed.add_file(&added, "trefoil.graphqls");
        parsed.builtin_file =
            parsed.documents.last().and_then(|document| document.sources.keys().last().copied());
    }
    parsed.collect_sources();
    parsed
}

impl ParsedFiles {
    fn add_file(&mut self, text: &str, name: &str) {
        let parsed = Parser::new().parse_ast(text, name).or_else(|failed| {
            let without = syntax_errors::without_empty_bodies(text);
            let document = without.and_then(|text| Parser::new().parse_ast(text, name).ok());
            document.ok_or(failed)
        });
        match parsed {
            Ok(document) => self.documents.push(document),
            Err(failed) => {
                self.documents.push(failed.partial);
                self.errors.push((text.to_owned(), failed.errors));
            }
        }
    }

    fn collect_sources(&mut self) {
        let maps = self.documents.iter().flat_map(|document| document.sources.iter());
        self.sources = SourceMap::new(maps.map(|(id, file)| (*id, file.clone())).collect());
    }
}

/// True if the file has only white space and comments; the parser would refuse it.
fn is_blank_file(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    text.lines().all(|line| {
        let code = line.split('#').next().unwrap_or_default();
        code.chars().all(|letter| letter.is_whitespace() || letter == ',')
    })
}

/// Definitions of the built-in directives that the schema uses but does not declare.
fn missing_definitions(files: &[SourceFile], documents: &[Document]) -> String {
    let definitions = || documents.iter().flat_map(|document| &document.definitions);
    let declared: HashSet<&str> = definitions()
        .filter_map(|definition| definition.as_directive_definition())
        .map(|directive| directive.name.as_str())
        .collect();
    let types = implied_types::declared_types(documents);
    let is_needed = |name: &str| {
        !declared.contains(name) && files.iter().any(|file| mentions_directive(&file.text, name))
    };
    let mut lines: Vec<&str> = directives::BUILTIN_DIRECTIVES
        .iter()
        .filter(|definition| is_needed(definition.name))
        .map(|definition| definition.sdl)
        .collect();
    for (name, sdl) in directives::HELPER_TYPES {
        if !types.contains_key(name) && lines.iter().any(|line| line.contains(name)) {
            lines.push(sdl);
        }
    }
    lines.join("\n")
}

fn mentions_directive(text: &str, directive: &str) -> bool {
    let mut uses = text.split('@').skip(1).filter_map(|rest| rest.trim_start().strip_prefix(directive));
    uses.any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_'))
}

/// Builds one schema of all documents, with extensions merged.
fn build_schema(parsed: &ParsedFiles, log: &mut DiagnosticLog) -> Schema {
    let mut builder = Schema::builder().adopt_orphan_extensions().ignore_builtin_redefinitions();
    for document in &parsed.documents {
        builder = builder.add_ast(document);
    }
    let mut schema = match builder.build() {
        Ok(schema) => schema,
        Err(failed) => {
            graphql_errors::report_build_errors(log, &failed.errors);
            failed.partial
        }
    };
    merge_extensions::merge_extensions(&mut schema);
    if parsed.documents.is_empty() {
        log.warning(None, "EMPTY", "the schema is empty").help("define record types in graphql/*.graphqls");
        return Schema::parse("type Query { _: Boolean }", "trefoil.graphqls")
            .expect("a query type is a schema");
    }
    schema
}

fn validate_schema(schema: Schema, log: &mut DiagnosticLog) -> Option<Valid<Schema>> {
    let mut failed = match schema.validate() {
        Ok(valid) => return Some(valid),
        Err(failed) => failed,
    };
    if foreign_directives::remove_misused(&mut failed.partial, &failed.errors, log) {
        failed = match failed.partial.validate() {
            Ok(valid) => return Some(valid),
            Err(failed) => failed,
        };
    }
    graphql_errors::report_validation_errors(log, &failed.partial, &failed.errors);
    None
}

/// Drops duplicates and diagnostics that only follow from syntax errors, and sorts by position.
fn finish_diagnostics(
    mut diagnostics: Vec<Diagnostic>,
    files: &[SourceFile],
    has_syntax_errors: bool,
) -> Vec<Diagnostic> {
    let position = |file: &str| files.iter().position(|source| source.name == file).unwrap_or(usize::MAX);
    if has_syntax_errors {
        let syntax_errors: Vec<(String, usize)> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.code == "SYNTAX")
            .map(|diagnostic| (diagnostic.file.clone(), diagnostic.span.start))
            .collect();
        diagnostics.retain(|diagnostic| {
            diagnostic.code == "SYNTAX"
                || schema_checks::survives_syntax_errors(diagnostic, &syntax_errors, files)
        });
    }
    diagnostics
        .sort_by_key(|diagnostic| (position(&diagnostic.file), diagnostic.span.start, diagnostic.severity));
    diagnostics.dedup();
    diagnostics
}
