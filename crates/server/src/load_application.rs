//! From an application's files to a model with everything that answers it, or every reason why not.

use std::sync::Arc;

use trefoil_application::{App, resource_settings};
use trefoil_engine::{Binding, Registry, argument_warnings, resolvers};
use trefoil_model::diagnostic::Diagnostic;
use trefoil_model::{Claim, Model, parse};

/// An application that can be served.
pub struct Understood {
    pub model: Arc<Model>,
    pub bindings: Vec<Binding>,
    /// What can be served all the same, but perhaps not as meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the schema; the manifest's paths are taken before any record type's.
pub fn understand(app: &App, registry: &Registry) -> Result<Understood, Vec<Diagnostic>> {
    let (model, mut warnings) = parse(&app.schema, &claims(app))?;
    let mistakes = resource_settings::mistakes(app, &model);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let bindings = resolvers::bind(&model, registry);
    warnings.extend(model.warnings(argument_warnings::doubts(&model, &bindings)));
    Ok(Understood { model: Arc::new(model), bindings, warnings })
}

/// The paths that text endpoints and plain lists take.
fn claims(app: &App) -> Vec<Claim> {
    let texts = app.manifest.texts.iter().map(|text| (&text.path, "a text endpoint of trefoil.toml"));
    // A list may share its address with nobody.
    let lists = app.manifest.lists.iter().map(|list| (&list.path, "a plain list of trefoil.toml"));
    texts.chain(lists).map(|(path, by)| Claim { path: path.clone(), by: by.to_owned() }).collect()
}

impl Understood {
    /// The operations that nothing answers, each with an explanation.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &str)> {
        self.model.roots.iter().zip(&self.bindings).filter_map(|(root, binding)| match binding {
            Binding::Missing(why) => Some((root.name.as_str(), why.as_str())),
            Binding::Builtin(_) | Binding::Registered(_) => None,
        })
    }
}
