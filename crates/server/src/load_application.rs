//! From an application's files to a model with everything that answers it, or every reason why not.

use std::sync::Arc;

use trefoil_application::{App, resource_settings};
use trefoil_engine::{ResolverBinding, ResolverRegistry, argument_warnings, resolvers};
use trefoil_model::diagnostic::Diagnostic;
use trefoil_model::{Model, ReservedPath, parse_schema};

/// An application that can be served.
pub struct LoadedApplication {
    pub model: Arc<Model>,
    pub bindings: Vec<ResolverBinding>,
    /// What can be served all the same, but perhaps not as meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the schema; the manifest's paths are taken before any record type's.
pub fn load_application(
    app: &App,
    registry: &ResolverRegistry,
) -> Result<LoadedApplication, Vec<Diagnostic>> {
    let (model, mut warnings) = parse_schema(&app.schema, &reserved_paths(app))?;
    let mistakes = resource_settings::schema_mismatches(app, &model);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let bindings = resolvers::bind_root_fields(&model, registry);
    warnings.extend(model.locate_warnings(argument_warnings::argument_warnings(&model, &bindings)));
    Ok(LoadedApplication { model: Arc::new(model), bindings, warnings })
}

/// The paths that text endpoints and plain lists take.
fn reserved_paths(app: &App) -> Vec<ReservedPath> {
    let texts =
        app.manifest.text_endpoints.iter().map(|text| (&text.path, "a text endpoint of trefoil.toml"));
    // A list may share its address with nobody.
    let lists = app.manifest.plain_lists.iter().map(|list| (&list.path, "a plain list of trefoil.toml"));
    texts.chain(lists).map(|(path, by)| ReservedPath { path: path.clone(), owner: by.to_owned() }).collect()
}

impl LoadedApplication {
    /// The operations that nothing answers, each with an explanation.
    pub fn unanswered_operations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.model.root_fields.iter().zip(&self.bindings).filter_map(|(root, binding)| match binding {
            ResolverBinding::Missing(why) => Some((root.name.as_str(), why.as_str())),
            ResolverBinding::Builtin(_) | ResolverBinding::Registered(_) => None,
        })
    }
}
