//! SDL files in, a [`Model`] out, or every mistake of all files at once.

use std::collections::HashSet;

use apollo_compiler::Schema;
use apollo_compiler::ast::Document;
use apollo_compiler::parser::{FileId, Parser, SourceMap};
use apollo_compiler::validation::{DiagnosticList, Valid};

use crate::diagnostic::{Diagnostic, Severity};
use crate::sdl::diagnostic_log::Log;
use crate::sdl::{
    default_values, directives, graphql_errors, merge_extensions, record_types, relations, root_fields,
    schema_checks, syntax_errors,
};
use crate::{Model, SourceFile};

/// A path of the application that is no record type's: a text endpoint or a plain list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// With its leading slash: `/api/info`.
    pub path: String,
    /// Who claims it, for messages: `the list items`.
    pub by: String,
}

/// On success also what should be known: fields that are not stored, and the like.
pub fn parse(files: &[SourceFile], reserved: &[Claim]) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let read = read(files);
    let mut log = Log::new(read.sources.clone());
    for (text, errors) in &read.errors {
        syntax_errors::report(&mut log, text, errors);
    }
    let schema = build(&read, files, &mut log);
    let theirs = schema_checks::declared_otherwise(&schema, read.ours, &mut log);
    let mut draft = record_types::read(&schema, &theirs, &mut log);
    relations::resolve(&mut draft, &schema, &mut log);
    let roots = root_fields::read(&schema, &theirs, &mut log);
    schema_checks::all(&mut draft, &schema, &theirs, reserved, &mut log);
    default_values::read(&mut draft, &schema, &theirs, &mut log);
    let valid = validate(schema, &mut log);
    let found = settle(log.found, files, !read.errors.is_empty());
    match valid {
        Some(schema) if found.iter().all(|diagnostic| diagnostic.severity == Severity::Warning) => {
            let sdl = schema.to_string();
            let hash = xxhash_rust::xxh3::xxh3_64(sdl.as_bytes());
            let record_types::Draft { records, enums, embedded, .. } = draft;
            Ok((Model { records, enums, embedded, roots, schema, sdl, hash }, found))
        }
        _ => Err(found),
    }
}

struct Read {
    documents: Vec<Document>,
    /// With the text each list speaks of.
    errors: Vec<(String, DiagnosticList)>,
    sources: SourceMap,
    /// The file that holds the definitions we add.
    ours: Option<FileId>,
}

fn read(files: &[SourceFile]) -> Read {
    let mut read =
        Read { documents: Vec::new(), errors: Vec::new(), sources: SourceMap::default(), ours: None };
    for file in files.iter().filter(|file| !is_blank(&file.text)) {
        read.add(&file.text, &file.name);
    }
    let declared: HashSet<&str> = read.documents.iter().flat_map(declared_names).collect();
    let added = additions(files, &declared);
    if !added.is_empty() {
        read.add(&added, "trefoil.graphqls");
        read.ours = read.documents.last().and_then(|document| document.sources.keys().last().copied());
    }
    let maps = read.documents.iter().flat_map(|document| document.sources.iter());
    read.sources = SourceMap::new(maps.map(|(id, file)| (*id, file.clone())).collect());
    read
}

impl Read {
    fn add(&mut self, text: &str, name: &str) {
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
fn is_blank(text: &str) -> bool {
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
fn additions(files: &[SourceFile], declared: &HashSet<&str>) -> String {
    let wanted = |name: &str| !declared.contains(name) && files.iter().any(|file| mentions(&file.text, name));
    let mut lines: Vec<&str> = directives::DIRECTIVES
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

fn mentions(text: &str, directive: &str) -> bool {
    let mut uses = text.split('@').skip(1).filter_map(|rest| rest.trim_start().strip_prefix(directive));
    uses.any(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_'))
}

/// All documents as one schema, extensions merged into what they extend.
fn build(read: &Read, files: &[SourceFile], log: &mut Log) -> Schema {
    let mut builder = Schema::builder().adopt_orphan_extensions().ignore_builtin_redefinitions();
    for document in &read.documents {
        builder = builder.add_ast(document);
    }
    let mut schema = match builder.build() {
        Ok(schema) => schema,
        Err(failed) => {
            graphql_errors::building(log, &failed.errors);
            failed.partial
        }
    };
    merge_extensions::extensions(&mut schema);
    if read.documents.is_empty() {
        log.warning(None, "EMPTY", "the schema is empty").help("define record types in graphql/*.graphqls");
        return Schema::parse("type Query { _: Boolean }", "trefoil.graphqls")
            .expect("a query type is a schema");
    }
    if schema.schema_definition.query.is_none() && read.errors.is_empty() {
        schema_checks::no_query(&schema, files, log);
    }
    schema
}

fn validate(schema: Schema, log: &mut Log) -> Option<Valid<Schema>> {
    match schema.validate() {
        Ok(valid) => Some(valid),
        Err(failed) => {
            graphql_errors::validation(log, &failed.partial, &failed.errors);
            None
        }
    }
}

/// Drops what only follows from broken syntax and what is said twice, and sorts by place.
fn settle(mut found: Vec<Diagnostic>, files: &[SourceFile], broken: bool) -> Vec<Diagnostic> {
    let position = |file: &str| files.iter().position(|source| source.name == file).unwrap_or(usize::MAX);
    if broken {
        let stumbles: Vec<(String, usize)> = found
            .iter()
            .filter(|diagnostic| diagnostic.code == "SYNTAX")
            .map(|diagnostic| (diagnostic.file.clone(), diagnostic.span.start))
            .collect();
        found.retain(|diagnostic| {
            diagnostic.code == "SYNTAX" || schema_checks::survives(diagnostic, &stumbles, files)
        });
    }
    found.sort_by_key(|diagnostic| (position(&diagnostic.file), diagnostic.span.start, diagnostic.severity));
    found.dedup();
    found
}
