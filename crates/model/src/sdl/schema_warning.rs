//! Adds source positions to the engine's warnings about operations.

use crate::diagnostic::Diagnostic;
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::root_fields;
use crate::{Model, RootType};

/// A warning about a field or one of its arguments.
#[derive(Debug)]
pub struct SchemaWarning {
    pub code: &'static str,
    pub type_name: String,
    pub field: String,
    pub argument: Option<String>,
    pub message: String,
    /// What happens to a request.
    pub label: &'static str,
    pub help: String,
}

/// A word of `@display(sort:)` that lists cannot be sorted by.
#[derive(Debug)]
pub struct SortMistake {
    pub type_name: String,
    pub word: String,
    pub message: String,
}

impl Model {
    pub fn locate_sort_mistakes(&self, mistakes: Vec<SortMistake>) -> Vec<Diagnostic> {
        let mut log = DiagnosticLog::new(self.schema.sources.clone());
        for SortMistake { type_name, word, message } in mistakes {
            let ty = self.schema.get_object(&type_name);
            let written = ty.and_then(|ty| ty.directives.get("display")?.specified_argument_by_name("sort"));
            let items = written.map_or_else(Vec::new, |written| {
                written.as_list().map_or_else(|| vec![written], |items| items.iter().collect())
            });
            let item = items.into_iter().find(|item| item.as_str() == Some(&word));
            log.error(item.and_then(|item| item.location()), "DISPLAY", message).label("no order");
        }
        log.diagnostics
    }

    /// The name of a root type, whatever `schema { … }` calls it.
    pub fn root_type_name(&self, root: RootType) -> &str {
        let types = root_fields::root_types(&self.schema);
        types.into_iter().find(|(kind, _)| *kind == root).map_or("", |(_, name)| name)
    }

    pub fn locate_warnings(&self, warnings: Vec<SchemaWarning>) -> Vec<Diagnostic> {
        let mut log = DiagnosticLog::new(self.schema.sources.clone());
        for SchemaWarning { code, type_name, field, argument, message, label, help } in warnings {
            let field = self.schema.get_object(&type_name).and_then(|ty| ty.fields.get(field.as_str()));
            let argument = argument.and_then(|name| field?.argument_by_name(&name)?.name.location());
            let span = argument.or_else(|| field?.name.location());
            log.warning(span, code, message).label(label).help(help);
        }
        log.diagnostics
    }
}
