//! Which operations are generated: all of them where the schema has no `Query`, else where `@generate` says so.

use std::collections::{HashMap, HashSet};

use apollo_compiler::Schema;
use apollo_compiler::ast::Directive;

use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives::DirectiveReader;
use crate::sdl::record_types::PartialModel;

/// The operations to generate for a record type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GenerationFlags {
    pub queries: bool,
    pub mutations: bool,
    pub subscriptions: bool,
    pub aggregates: bool,
}

impl GenerationFlags {
    const ALL: GenerationFlags =
        GenerationFlags { queries: true, mutations: true, subscriptions: true, aggregates: true };
}

/// What is generated for the whole schema, and for types that say otherwise.
#[derive(Debug)]
pub(crate) struct GenerationRequest {
    schema: GenerationFlags,
    types: HashMap<String, GenerationFlags>,
}

impl GenerationRequest {
    pub fn flags(&self, type_name: &str) -> GenerationFlags {
        self.types.get(type_name).copied().unwrap_or(self.schema)
    }
}

/// `None` if nothing is to be generated.
pub(crate) fn read_request(
    schema: &Schema,
    model: &PartialModel,
    redeclared: &HashSet<String>,
    log: &mut DiagnosticLog,
) -> Option<GenerationRequest> {
    let mut reader = DirectiveReader { log, redeclared };
    let is_ours = !redeclared.contains("generate");
    let definition = &schema.schema_definition;
    let on_schema = definition.directives.iter().find(|directive| is_ours && directive.name == "generate");
    let mut types = HashMap::new();
    for record in &model.records {
        let directives = schema.get_object(&record.name).map(|ty| &ty.directives);
        let directive = directives.and_then(|directives| directives.get("generate"));
        if let Some(directive) = directive.filter(|_| is_ours) {
            types.insert(record.name.clone(), read_flags(&mut reader, directive));
        }
    }
    let has_query = definition.query.as_ref().is_some_and(|root| schema.get_object(&root.name).is_some());
    let schema = match on_schema {
        Some(directive) => {
            reader.report_unknown_arguments(directive);
            read_flags(&mut reader, directive)
        }
        None if has_query => GenerationFlags::default(),
        None => GenerationFlags::ALL,
    };
    (schema != GenerationFlags::default() || !types.is_empty()).then_some(GenerationRequest { schema, types })
}

fn read_flags(reader: &mut DirectiveReader<'_>, directive: &Directive) -> GenerationFlags {
    let mut flag = |name: &str| reader.flag_argument(directive, name).unwrap_or(true);
    GenerationFlags {
        queries: flag("queries"),
        mutations: flag("mutations"),
        subscriptions: flag("subscriptions"),
        aggregates: flag("aggregates"),
    }
}
