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

impl Model {
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
