//! Loads an application's files into a model with its resolvers, or returns every mistake in them.

use std::sync::Arc;

use trefoil_application::App;
use trefoil_engine::arguments::display_order::order_mistakes;
use trefoil_engine::arguments::warnings::argument_warnings;
use trefoil_engine::{ResolverBinding, ResolverRegistry, binding};
use trefoil_model::access::AccessRule;
use trefoil_model::diagnostic::{Diagnostic, Severity};
use trefoil_model::sdl::schema_warning::SchemaWarning;
use trefoil_model::{Model, ReservedPath, RootType, parse_protected_schema, parse_schema};

use crate::start_error::StartError;

/// An application that can be served.
pub struct LoadedApplication {
    pub model: Arc<Model>,
    pub bindings: Vec<ResolverBinding>,
    /// Problems that do not prevent serving.
    pub warnings: Vec<Diagnostic>,
}

/// Parses the schema and binds its resolvers. Paths of the manifest take precedence over those of record types. Ids are as
/// in a new store, see [`LoadedApplication::for_store`].
pub fn load_application(
    app: &App,
    registry: &ResolverRegistry,
) -> Result<LoadedApplication, Vec<Diagnostic>> {
    // A program that answers `node` itself has ids of its own.
    let is_answered = registry.get("Query", "node").is_some();
    load_with_ids(app, registry, app.manifest.global_ids.unwrap_or(!is_answered))
}

fn load_with_ids(
    app: &App,
    registry: &ResolverRegistry,
    global_ids: bool,
) -> Result<LoadedApplication, Vec<Diagnostic>> {
    let parse = if app.manifest.has_auth { parse_protected_schema } else { parse_schema };
    let (mut model, mut warnings) = parse(&app.schema, &reserved_paths(app))?;
    if !global_ids {
        model.drop_global_ids();
    }
    // Rules of the manifest may name roles that the schema does not.
    let wrong_rules = app.add_rules(&mut model);
    let mut mistakes = app.schema_mismatches(&model);
    mistakes.extend(order_mistakes(&model));
    mistakes.extend(wrong_rules);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let unknown = unknown_resolvers(&model, registry);
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let bindings = binding::bind_root_fields(&model, registry);
    let misplaced = misplaced_calls(&model, &bindings);
    if !misplaced.is_empty() {
        return Err(misplaced);
    }
    let mut found = argument_warnings(&model, &bindings);
    found.extend(binding::page_warnings(&model, &bindings, registry));
    warnings.extend(model.locate_warnings(found));
    warnings.extend(app.manifest_warnings());
    Ok(LoadedApplication { model: Arc::new(model), bindings, warnings })
}

/// Registered resolvers for fields that the schema does not have.
fn unknown_resolvers(model: &Model, registry: &ResolverRegistry) -> Vec<Diagnostic> {
    let is_known = |name: &str| {
        let Some((type_name, field)) = name.split_once('.') else { return false };
        match type_name {
            "Query" => model.find_root_field(RootType::Query, field).is_some(),
            "Mutation" => model.find_root_field(RootType::Mutation, field).is_some(),
            "Subscription" => model.find_root_field(RootType::Subscription, field).is_some(),
            _ => model.schema.type_field(type_name, field).is_ok(),
        }
    };
    let mut names: Vec<&str> = registry.names().filter(|name| !is_known(name)).collect();
    names.sort_unstable();
    let report = |name: &&str| {
        let message = format!("a resolver is registered for `{name}`, which the schema does not have");
        let mut diagnostic = Diagnostic::new(Severity::Error, "UNKNOWN_FIELD", message);
        diagnostic.help("add the field to the schema, or register the resolver as `Type.field`");
        diagnostic
    };
    names.iter().map(report).collect()
}

/// `@allow(call:)` on operations that the store answers: they follow the rules of the types.
fn misplaced_calls(model: &Model, bindings: &[ResolverBinding]) -> Vec<Diagnostic> {
    let calls = model.access.iter().flat_map(|access| &access.calls);
    let warning = |(position, _): (&usize, &AccessRule)| {
        let record = match &bindings[*position] {
            ResolverBinding::Builtin(builtin) => &model.record(builtin.record).name,
            ResolverBinding::Abstract(operation) => &operation.type_name,
            ResolverBinding::Registered(_) | ResolverBinding::Missing(_) => return None,
        };
        let root = &model.root_fields[*position];
        Some(SchemaWarning {
            code: "DIRECTIVE_PLACE",
            type_name: model.root_type_name(root.root_kind).to_owned(),
            field: root.name.clone(),
            argument: None,
            message: format!(
                "`@allow(call: …)` is for registered resolvers, and the store answers `{}`",
                root.name
            ),
            label: "follows the rules of its type",
            help: format!("write the rule at `{record}`, where it holds on every face"),
        })
    };
    let mut mistakes = model.locate_warnings(calls.filter_map(warning).collect());
    mistakes.iter_mut().for_each(|mistake| mistake.severity = Severity::Error);
    mistakes
}

/// The paths of text endpoints and plain lists.
fn reserved_paths(app: &App) -> Vec<ReservedPath> {
    let texts =
        app.manifest.text_endpoints.iter().map(|text| (&text.path, "a text endpoint of trefoil.toml"));
    // A list cannot share its path.
    let lists = app.manifest.plain_lists.iter().map(|list| (&list.path, "a plain list of trefoil.toml"));
    texts
        .chain(lists)
        .map(|(path, owner)| ReservedPath { path: path.clone(), owner: owner.to_owned() })
        .collect()
}

impl LoadedApplication {
    /// Refuses an application without rules: one that is served does not lose them while others reach it.
    pub fn require_rules(&self) -> Result<(), StartError> {
        if self.model.access.is_some() {
            return Ok(());
        }
        let reason = "the schema has no @allow and no @account any more, and trefoil.toml no [auth], so everybody who \
                      reaches this server could read and change everything: put the rules back, or start the server with \
                      --open to allow this";
        Err(StartError::Schema(reason.to_owned()))
    }

    /// The name of the application, if its schema has rules.
    pub fn protected_name<'a>(&self, app: &'a App) -> Option<&'a str> {
        self.model.access.as_ref().map(|_| app.name.as_str())
    }

    /// The application on a store: without global ids if the store was created without them and `trefoil.toml` does not
    /// ask for them.
    pub fn for_store(
        self,
        app: &App,
        registry: &ResolverRegistry,
        store_has_global_ids: bool,
    ) -> Result<LoadedApplication, Vec<Diagnostic>> {
        let keeps_ids = !self.model.global_ids || store_has_global_ids || app.manifest.global_ids.is_some();
        if keeps_ids { Ok(self) } else { load_with_ids(app, registry, false) }
    }

    /// The operations without a resolver, each with an explanation.
    pub fn unanswered_operations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.model.root_fields.iter().zip(&self.bindings).filter_map(|(root, binding)| match binding {
            ResolverBinding::Missing(reason) => Some((root.name.as_str(), reason.as_str())),
            ResolverBinding::Builtin(_) | ResolverBinding::Abstract(_) | ResolverBinding::Registered(_) => {
                None
            }
        })
    }
}
