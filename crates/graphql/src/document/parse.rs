//! A document from its text: parsed, held against the limits and validated once; then only its plans are asked for.

use std::sync::{Arc, RwLock};

use apollo_compiler::ExecutableDocument;
use apollo_compiler::diagnostic::{Diagnostic, ToCliReport};
use apollo_compiler::executable::{Operation, OperationType, Selection, SelectionSet};
use apollo_compiler::parser::Parser;
use apollo_compiler::response::GraphQLError;
use apollo_compiler::validation::{DiagnosticData, DiagnosticList, Valid};
use apollo_compiler::{Node, ast};

use crate::document::{limits, rules, suggest, tokens};
use crate::plan::input;
use crate::plan::roots::Plan;
use crate::plan::variables::{Declared, Variables};
use crate::response_error::{Failure, Place};
use trefoil_config::Limits;
use trefoil_engine::Engine;
use trefoil_model::Value;

/// Levels of brackets and braces that the parser follows; what limits.depth allows is far below.
const NESTING: usize = 200;

/// Tokens that the parser takes for each one that counts: white space and commas are tokens to it.
const IGNORED_TOKENS: usize = 10;

/// Ways to answer one operation that are kept, one for each combination of its `@skip` and `@include` variables.
const PLANS: usize = 16;

/// A document that may be run.
pub struct Document {
    pub document: Valid<ExecutableDocument>,
    operations: Vec<Prepared>,
}

/// One operation of a document.
pub struct Prepared {
    pub operation: Node<Operation>,
    pub declared: Vec<Declared>,
    /// The variables that `@skip` and `@include` look at.
    flags: Vec<usize>,
    /// The cost depends on variables and is judged with them.
    weigh: bool,
    plans: RwLock<Vec<(Flags, Arc<Plan>)>>,
}

/// What `@skip` and `@include` look at, in order; null where a client gave null in spite of a default.
type Flags = Vec<Option<bool>>;

impl Document {
    pub fn parse(engine: &Engine, settings: &Settings, text: &str) -> Result<Document, Vec<Failure>> {
        limits::check_tokens(text, &settings.limits).map_err(|failure| vec![failure])?;
        let mut parser =
            Parser::new().recursion_limit(NESTING).token_limit(settings.limits.tokens * IGNORED_TOKENS);
        let ast = parser.parse_ast(text, "GraphQL").map_err(|error| {
            let exhausted = parser.recursion_reached() > NESTING;
            match (exhausted, parser.tokens_reached() > settings.limits.tokens * IGNORED_TOKENS) {
                (true, _) => vec![limits::exceeded(
                    "the nesting of the document",
                    format_args!("over {NESTING}"),
                    settings.limits.depth,
                    "depth",
                )],
                (false, true) => {
                    let found = format_args!("over {}, white space included", parser.tokens_reached() - 1)
                        .to_string();
                    vec![limits::exceeded("the number of tokens", found, settings.limits.tokens, "tokens")]
                }
                (false, false) => failures(&error.errors, "GRAPHQL_PARSE_FAILED"),
            }
        })?;
        refuse_bare_names(text)?;
        let document = validate(engine, settings, &ast)?;
        let operations: Vec<_> =
            document.operations.iter().map(|operation| Prepared::new(engine, &document, operation)).collect();
        for prepared in &operations {
            prepared.check(&document, settings)?;
        }
        Ok(Document { document, operations })
    }

    pub fn operation(&self, name: Option<&str>) -> Result<&Prepared, Failure> {
        let found = match name {
            Some(name) => self
                .operations
                .iter()
                .find(|prepared| prepared.operation.name.as_ref().is_some_and(|own| own.as_str() == name)),
            None if self.operations.len() > 1 => {
                let message = "Must provide operation name if query contains multiple operations.";
                return Err(Failure::new("OPERATION_RESOLUTION_FAILURE", message));
            }
            None => self.operations.first(),
        };
        found.ok_or_else(|| {
            let message = match name {
                Some(name) => format!("Unknown operation named \"{name}\"."),
                None => "Must provide an operation.".to_owned(),
            };
            Failure::new("OPERATION_RESOLUTION_FAILURE", message)
        })
    }
}

/// What of the configuration this face looks at.
#[derive(Debug, Clone)]
pub struct Settings {
    pub limits: Limits,
    pub introspection: bool,
}

fn refuse_bare_names(text: &str) -> Result<(), Vec<Failure>> {
    let Some(token) = tokens::bare_name(text) else { return Ok(()) };
    let before = &text[..token.at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = format!("syntax error: expected `:` and a value after `{}`", token.text);
    Err(vec![Failure::new("GRAPHQL_PARSE_FAILED", message).at(&[Place { line, column }])])
}

/// The limits come first: validation costs more than counting.
fn validate(
    engine: &Engine,
    settings: &Settings,
    ast: &ast::Document,
) -> Result<Valid<ExecutableDocument>, Vec<Failure>> {
    let schema = &engine.model().schema;
    let (document, mut complaints) = match ast.to_executable(schema) {
        Ok(document) => (document, None),
        Err(error) => (error.partial, Some(error.errors)),
    };
    for operation in document.operations.iter() {
        limits::check(&document, operation, None, &settings.limits).map_err(|failure| vec![failure])?;
    }
    let document = match document.validate(schema) {
        Ok(document) => document,
        Err(error) => {
            match &mut complaints {
                Some(complaints) => complaints.merge(error.errors),
                None => complaints = Some(error.errors),
            }
            Valid::assume_valid(error.partial)
        }
    };
    let rules::Findings { breaches, free_nulls } = rules::check(schema, &document);
    let mut refused = Vec::new();
    for complaint in complaints.iter().flat_map(DiagnosticList::iter) {
        let mut failure = failure(&complaint.unstable_to_json_compat(), "GRAPHQL_VALIDATION_FAILED");
        let kind = complaint.error.unstable_error_name();
        // Who may not ask for the schema is not told it name by name.
        if settings.introspection
            && refused.len() < suggest::MOST
            && let Some(meant) = kind.and_then(|kind| suggest::instead(schema, kind, &failure.message))
        {
            failure.message += &format!(" Did you mean \"{meant}\"?");
        }
        let pardoned = match kind {
            Some(rules::MULTIPLE_FIELDS) => true,
            Some(rules::NOTHING_SELECTED) => has_selection(&complaint),
            Some(rules::WRONG_VALUE) => failure.places.iter().any(|place| free_nulls.contains(place)),
            _ => false,
        };
        if !pardoned {
            refused.push(failure);
        }
    }
    match (refused.is_empty(), breaches.is_empty()) {
        (true, true) => Ok(document),
        (true, false) => Err(breaches),
        (false, _) => Err(refused),
    }
}

/// Its text selects sub-fields, but none that there is: each of them has its own complaint.
fn has_selection(complaint: &Diagnostic<'_, DiagnosticData>) -> bool {
    let Some(span) = complaint.error.location() else { return false };
    let source = complaint.sources.get(&span.file_id());
    source.is_some_and(|source| source.source_text()[..span.end_offset()].trim_end().ends_with('}'))
}

fn failures(errors: &DiagnosticList, code: &str) -> Vec<Failure> {
    errors.iter().map(|diagnostic| failure(&diagnostic.unstable_to_json_compat(), code)).collect()
}

fn failure(error: &GraphQLError, code: &str) -> Failure {
    let places = error.locations.iter().map(|at| Place { line: at.line, column: at.column });
    Failure::new(code, error.message.clone()).at(&places.collect::<Vec<_>>())
}

impl Prepared {
    fn new(engine: &Engine, document: &ExecutableDocument, operation: &Node<Operation>) -> Prepared {
        let schema = &engine.model().schema;
        let declared = operation.variables.iter().map(|variable| Declared {
            name: variable.name.to_string(),
            definition: variable.clone(),
            default: variable
                .default_value
                .as_ref()
                .map(|value| input::constant(schema, &variable.ty, value)),
            place: rules::place(variable, &document.sources),
        });
        let mut names = Vec::new();
        flags(&operation.selection_set, &mut names);
        document.fragments.values().for_each(|fragment| flags(&fragment.selection_set, &mut names));
        let known = operation.variables.iter().enumerate();
        Prepared {
            operation: operation.clone(),
            declared: declared.collect(),
            flags: known.filter(|(_, variable)| names.contains(&&variable.name)).map(|(i, _)| i).collect(),
            weigh: limits::depends_on_variables(document, operation),
            plans: RwLock::default(),
        }
    }

    fn check(&self, document: &Valid<ExecutableDocument>, settings: &Settings) -> Result<(), Vec<Failure>> {
        let hidden = !settings.introspection && self.introspects(document);
        if hidden {
            let message = "introspection is switched off on this server (setting `introspection`)";
            return Err(vec![Failure::new("INTROSPECTION_DISABLED", message)]);
        }
        Ok(())
    }

    fn introspects(&self, document: &ExecutableDocument) -> bool {
        let mut roots = self.operation.root_fields(document);
        roots.any(|field| matches!(field.name.as_str(), "__schema" | "__type"))
    }

    pub fn kind(&self) -> OperationType {
        self.operation.operation_type
    }

    /// The plan for these variables, from before where there is one; a new one that is kept is told to `grown`.
    pub fn plan(
        &self,
        engine: &Engine,
        settings: &Settings,
        document: &Valid<ExecutableDocument>,
        variables: &Variables,
        grown: impl FnOnce(&Plan),
    ) -> Result<Arc<Plan>, Failure> {
        if self.weigh {
            limits::check(document, &self.operation, Some(variables), &settings.limits)?;
        }
        let key = self.flags.iter().map(|position| variables.get(*position).and_then(Value::as_bool));
        let known = self.plans.read().unwrap_or_else(|broken| broken.into_inner());
        if let Some((_, plan)) = known.iter().find(|(flags, _)| flags.iter().copied().eq(key.clone())) {
            return Ok(plan.clone());
        }
        drop(known);
        let plan = Arc::new(Plan::new(engine, document, &self.operation, variables)?);
        let mut plans = self.plans.write().unwrap_or_else(|broken| broken.into_inner());
        let known = plans.iter().any(|(flags, _)| flags.iter().copied().eq(key.clone()));
        if !known && !plan.once && plans.len() < PLANS {
            plans.push((key.collect(), plan.clone()));
            drop(plans);
            grown(&plan);
        }
        Ok(plan)
    }
}

/// The names of variables that decide what is included.
fn flags<'a>(set: &'a SelectionSet, names: &mut Vec<&'a apollo_compiler::Name>) {
    for selection in &set.selections {
        for directive in selection.directives().iter().filter(|d| d.name == "skip" || d.name == "include") {
            if let Some(ast::Value::Variable(name)) = directive.specified_argument_by_name("if").map(|v| &**v)
            {
                names.push(name);
            }
        }
        match selection {
            Selection::Field(field) => flags(&field.selection_set, names),
            Selection::InlineFragment(fragment) => flags(&fragment.selection_set, names),
            Selection::FragmentSpread(_) => {}
        }
    }
}
