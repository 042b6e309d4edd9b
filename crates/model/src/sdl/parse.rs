//! SDL files in, a [`Model`] out, or every mistake of all files at once.

use std::collections::HashSet;

use apollo_compiler::Schema;
use apollo_compiler::ast::Document;
use apollo_compiler::parser::{FileId, Parser, SourceMap};
use apollo_compiler::validation::{DiagnosticList, Valid};

use crate::diagnostic::{Diagnostic, Severity};
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::{
    default_values, directives, graphql_errors, merge_extensions, record_types, relations, root_fields,
    schema_checks, syntax_errors,
};
use crate::{Model, SourceFile};

/// A path of the application that is no record type's: a text endpoint or a plain list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedPath {
    /// With its leading slash: `/api/info`.
    pub path: String,
    /// Who claims it, for messages: `the list items`.
    pub owner: String,
}

/// On success also what should be known: fields that are not stored, and the like.
pub fn parse_schema(
    files: &[SourceFile],
    reserved: &[ReservedPath],
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let read = parse_files(files);
    let mut log = DiagnosticLog::new(read.sources.clone());
    for (text, errors) in &read.errors {
        syntax_errors::report_syntax_errors(&mut log, text, errors);
    }
    let schema = build_schema(&read, files, &mut log);
    let theirs = schema_checks::redeclared_directives(&schema, read.builtin_file, &mut log);
    let mut draft = record_types::read_record_types(&schema, &theirs, &mut log);
    relations::resolve_relations(&mut draft, &schema, &mut log);
    let roots = root_fields::read_root_fields(&schema, &theirs, &mut log);
    schema_checks::check_schema(&mut draft, &schema, &theirs, reserved, &mut log);
    default_values::read_defaults(&mut draft, &schema, &theirs, &mut log);
    let valid = validate_schema(schema, &mut log);
    let found = finish_diagnostics(log.diagnostics, files, !read.errors.is_empty());
    match valid {
        Some(schema) if found.iter().all(|diagnostic| diagnostic.severity == Severity::Warning) => {
            let sdl = schema.to_string();
            let hash = xxhash_rust::xxh3::xxh3_64(sdl.as_bytes());
            let record_types::PartialModel { records, enums, embedded, .. } = draft;
            Ok((Model { records, enums, embedded, root_fields: roots, schema, sdl, hash }, found))
        }
        _ => Err(found),
    }
}

struct ParsedFiles {
    documents: Vec<Document>,
    /// With the text each list speaks of.
    errors: Vec<(String, DiagnosticList)>,
    sources: SourceMap,
    /// The file that holds the definitions we add.
    builtin_file: Option<FileId>,
}

fn parse_files(files: &[SourceFile]) -> ParsedFiles {
    let mut read = ParsedFiles {
        documents: Vec::new(),
        errors: Vec::new(),
        sources: SourceMap::default(),
        builtin_file: None,
    };
    for file in files.iter().filter(|file| !is_blank_file(&file.text)) {
        read.add_file(&file.text, &file.name);
    }
    let declared: HashSet<&str> = read.documents.iter().flat_map(declared_names).collect();
    let added = missing_definitions(files, &declared);
    if !added.is_empty() {
        read.add_file(&added, "trefoil.graphqls");
        read.builtin_file =
            read.documents.last().and_then(|document| document.sources.keys().last().copied());
    }
    let maps = read.documents.iter().flat_map(|document| document.sources.iter());
    read.sources = SourceMap::new(maps.map(|(id, file)| (*id, file.clone())).collect());
    read
}

impl ParsedFiles {
    fn add_file(&mut self, text: &str, name: &str) {
        match Parser::new().parse_ast(text, name) {
            Ok(document) => self.documents.push(document),
            Err(failed) => {
                self.documents.push(failed.partial);
                self.errors.push((text.to_owned(), failed.errors));
            }
        }
    }
}

/// Nothing but what GraphQL ignores; the parser would refuse such a file.
fn is_blank_file(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    text.lines().all(|line| {
        let code = line.split('#').next().unwrap_or_default();
        code.chars().all(|letter| letter.is_whitespace() || letter == ',')
    })
}

/// Directives as `@name`, types as `name`.
fn declared_names(document: &Document) -> impl Iterator<Item = &str> {
    document.definitions.iter().filter_map(|definition| {
        if definition.as_directive_definition().is_some() || !definition.is_extension_definition() {
            definition.name().map(|name| name.as_str())
        } else {
            None
        }
    })
}

/// Definitions of those directives of ours that the schema uses and does not declare.
fn missing_definitions(files: &[SourceFile], declared: &HashSet<&str>) -> String {
    let wanted = |name: &str| {
        !declared.contains(name) && files.iter().any(|file| mentions_directive(&file.text, name))
    };
    let mut lines: Vec<&str> = directives::BUILTIN_DIRECTIVES
        .iter()
        .filter(|definition| wanted(definition.name))
        .map(|definition| definition.sdl)
        .collect();
    for (name, sdl) in directives::HELPER_TYPES {
        if !declared.contains(name) && lines.iter().any(|line| line.contains(name)) {
            lines.push(sdl);
        }
    }
    lines.join("\n")
}

fn mentions_directive(text: &str, directive: &str) -> bool {
    let mut uses = text.split('@').skip(1).filter_map(|rest| rest.trim_start().strip_prefix(directive));
    uses.any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_'))
}

/// All documents as one schema, extensions merged into what they extend.
fn build_schema(read: &ParsedFiles, files: &[SourceFile], log: &mut DiagnosticLog) -> Schema {
    let mut builder = Schema::builder().adopt_orphan_extensions().ignore_builtin_redefinitions();
    for document in &read.documents {
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
    if read.documents.is_empty() {
        log.warning(None, "EMPTY", "the schema is empty").help("define record types in graphql/*.graphqls");
        return Schema::parse("type Query { _: Boolean }", "trefoil.graphqls")
            .expect("a query type is a schema");
    }
    if schema.schema_definition.query.is_none() && read.errors.is_empty() {
        schema_checks::report_missing_query(&schema, files, log);
    }
    schema
}

fn validate_schema(schema: Schema, log: &mut DiagnosticLog) -> Option<Valid<Schema>> {
    match schema.validate() {
        Ok(valid) => Some(valid),
        Err(failed) => {
            graphql_errors::report_validation_errors(log, &failed.partial, &failed.errors);
            None
        }
    }
}

/// Drops what only follows from broken syntax and what is said twice, and sorts by place.
fn finish_diagnostics(mut found: Vec<Diagnostic>, files: &[SourceFile], broken: bool) -> Vec<Diagnostic> {
    let position = |file: &str| files.iter().position(|source| source.name == file).unwrap_or(usize::MAX);
    if broken {
        let stumbles: Vec<(String, usize)> = found
            .iter()
            .filter(|diagnostic| diagnostic.code == "SYNTAX")
            .map(|diagnostic| (diagnostic.file.clone(), diagnostic.span.start))
            .collect();
        found.retain(|diagnostic| {
            diagnostic.code == "SYNTAX" || schema_checks::survives_syntax_errors(diagnostic, &stumbles, files)
        });
    }
    found.sort_by_key(|diagnostic| (position(&diagnostic.file), diagnostic.span.start, diagnostic.severity));
    found.dedup();
    found
}
