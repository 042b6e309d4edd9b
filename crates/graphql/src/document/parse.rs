//! A document from its text: parsed, held against the limits and validated once; then only its plans are asked for.

use std::sync::{Arc, RwLock};

use apollo_compiler::diagnostic::{Diagnostic, ToCliReport};
use apollo_compiler::executable::{Operation, OperationType, Selection, SelectionSet};
use apollo_compiler::parser::Parser;
use apollo_compiler::response::GraphQLError;
use apollo_compiler::validation::{DiagnosticData, DiagnosticList, Valid};
use apollo_compiler::{ExecutableDocument, Node, ast};

use trefoil_config::ServerLimits;
use trefoil_engine::Engine;
use trefoil_model::Value;

use crate::document::{limits, rules, suggest, tokens};
use crate::plan::input;
use crate::plan::roots::OperationPlan;
use crate::plan::variables::{DeclaredVariable, VariableValues};
use crate::response_error::{DocumentLocation, ResponseError};

/// Levels of brackets and braces that the parser follows; what limits.depth allows is far below.
const MAX_NESTING: usize = 200;

/// Tokens that the parser takes for each one that counts: white space and commas are tokens to it.
const RAW_TOKENS_PER_TOKEN: usize = 10;

/// Ways to answer one operation that are kept, one for each combination of its `@skip` and `@include` variables.
const MAX_PLANS: usize = 16;

/// A document that may be run.
pub struct ParsedDocument {
    pub executable: Valid<ExecutableDocument>,
    operations: Vec<PreparedOperation>,
}

/// One operation of a document.
pub struct PreparedOperation {
    pub operation: Node<Operation>,
    pub declared_variables: Vec<DeclaredVariable>,
    /// The variables that `@skip` and `@include` look at.
    include_variables: Vec<usize>,
    /// The cost depends on variables and is judged with them.
    cost_uses_variables: bool,
    plans: RwLock<Vec<(IncludeFlags, Arc<OperationPlan>)>>,
}

/// What `@skip` and `@include` look at, in order; null where a client gave null in spite of a default.
type IncludeFlags = Vec<Option<bool>>;

impl ParsedDocument {
    pub fn parse(
        engine: &Engine,
        settings: &GraphqlSettings,
        text: &str,
    ) -> Result<ParsedDocument, Vec<ResponseError>> {
        limits::check_tokens(text, &settings.limits).map_err(|failure| vec![failure])?;
        let mut parser = Parser::new()
            .recursion_limit(MAX_NESTING)
            .token_limit(settings.limits.tokens * RAW_TOKENS_PER_TOKEN);
        let ast = parser.parse_ast(text, "GraphQL").map_err(|error| {
            let exhausted = parser.recursion_reached() > MAX_NESTING;
            match (exhausted, parser.tokens_reached() > settings.limits.tokens * RAW_TOKENS_PER_TOKEN) {
                (true, _) => vec![limits::limit_exceeded(
                    "the nesting of the document",
                    format_args!("over {MAX_NESTING}"),
                    settings.limits.depth,
                    "depth",
                )],
                (false, true) => {
                    let found = format_args!("over {}, white space included", parser.tokens_reached() - 1)
                        .to_string();
                    vec![limits::limit_exceeded(
                        "the number of tokens",
                        found,
                        settings.limits.tokens,
                        "tokens",
                    )]
                }
                (false, false) => response_errors(&error.errors, "GRAPHQL_PARSE_FAILED"),
            }
        })?;
        reject_bare_names(text)?;
        let document = validate(engine, settings, &ast)?;
        let operations: Vec<_> = document
            .operations
            .iter()
            .map(|operation| PreparedOperation::new(engine, &document, operation))
            .collect();
        for prepared in &operations {
            prepared.check_introspection(&document, settings)?;
        }
        Ok(ParsedDocument { executable: document, operations })
    }

    pub fn operation(&self, name: Option<&str>) -> Result<&PreparedOperation, ResponseError> {
        let found = match name {
            Some(name) => self
                .operations
                .iter()
                .find(|prepared| prepared.operation.name.as_ref().is_some_and(|own| own.as_str() == name)),
            None if self.operations.len() > 1 => {
                let message = "Must provide operation name if query contains multiple operations.";
                return Err(ResponseError::new("OPERATION_RESOLUTION_FAILURE", message));
            }
            None => self.operations.first(),
        };
        found.ok_or_else(|| {
            let message = match name {
                Some(name) => format!("Unknown operation named \"{name}\"."),
                None => "Must provide an operation.".to_owned(),
            };
            ResponseError::new("OPERATION_RESOLUTION_FAILURE", message)
        })
    }
}

/// What of the configuration this face looks at.
#[derive(Debug, Clone)]
pub struct GraphqlSettings {
    pub limits: ServerLimits,
    pub introspection: bool,
}

fn reject_bare_names(text: &str) -> Result<(), Vec<ResponseError>> {
    let Some(token) = tokens::find_bare_name(text) else { return Ok(()) };
    let before = &text[..token.offset];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = format!("syntax error: expected `:` and a value after `{}`", token.text);
    Err(vec![
        ResponseError::new("GRAPHQL_PARSE_FAILED", message)
            .with_locations(&[DocumentLocation { line, column }]),
    ])
}

/// The limits come first: validation costs more than counting.
fn validate(
    engine: &Engine,
    settings: &GraphqlSettings,
    ast: &ast::Document,
) -> Result<Valid<ExecutableDocument>, Vec<ResponseError>> {
    let schema = &engine.model().schema;
    let (document, mut complaints) = match ast.to_executable(schema) {
        Ok(document) => (document, None),
        Err(error) => (error.partial, Some(error.errors)),
    };
    for operation in document.operations.iter() {
        limits::check_operation(&document, operation, None, &settings.limits)
            .map_err(|failure| vec![failure])?;
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
    let rules::RuleFindings { errors: breaches, allowed_nulls: free_nulls } = rules::check(schema, &document);
    let mut refused = Vec::new();
    for complaint in complaints.iter().flat_map(DiagnosticList::iter) {
        let mut failure = response_error(&complaint.unstable_to_json_compat(), "GRAPHQL_VALIDATION_FAILED");
        let kind = complaint.error.unstable_error_name();
        // Who may not ask for the schema is not told it name by name.
        if settings.introspection
            && refused.len() < suggest::MAX_SUGGESTIONS
            && let Some(meant) = kind.and_then(|kind| suggest::suggest_name(schema, kind, &failure.message))
        {
            failure.message += &format!(" Did you mean \"{meant}\"?");
        }
        let pardoned = match kind {
            Some(rules::MULTIPLE_FIELDS) => true,
            Some(rules::MISSING_SUBSELECTION) => has_selection(&complaint),
            Some(rules::UNSUPPORTED_VALUE) => {
                failure.locations.iter().any(|place| free_nulls.contains(place))
            }
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

fn response_errors(errors: &DiagnosticList, code: &str) -> Vec<ResponseError> {
    errors.iter().map(|diagnostic| response_error(&diagnostic.unstable_to_json_compat(), code)).collect()
}

fn response_error(error: &GraphQLError, code: &str) -> ResponseError {
    let places = error.locations.iter().map(|at| DocumentLocation { line: at.line, column: at.column });
    ResponseError::new(code, error.message.clone()).with_locations(&places.collect::<Vec<_>>())
}

impl PreparedOperation {
    fn new(engine: &Engine, document: &ExecutableDocument, operation: &Node<Operation>) -> PreparedOperation {
        let schema = &engine.model().schema;
        let declared = operation.variables.iter().map(|variable| DeclaredVariable {
            name: variable.name.to_string(),
            definition: variable.clone(),
            default: variable
                .default_value
                .as_ref()
                .map(|value| input::constant_value(schema, &variable.ty, value)),
            location: rules::document_location(variable, &document.sources),
        });
        let mut names = Vec::new();
        collect_include_variables(&operation.selection_set, &mut names);
        document
            .fragments
            .values()
            .for_each(|fragment| collect_include_variables(&fragment.selection_set, &mut names));
        let known = operation.variables.iter().enumerate();
        PreparedOperation {
            operation: operation.clone(),
            declared_variables: declared.collect(),
            include_variables: known
                .filter(|(_, variable)| names.contains(&&variable.name))
                .map(|(i, _)| i)
                .collect(),
            cost_uses_variables: limits::depends_on_variables(document, operation),
            plans: RwLock::default(),
        }
    }

    fn check_introspection(
        &self,
        document: &Valid<ExecutableDocument>,
        settings: &GraphqlSettings,
    ) -> Result<(), Vec<ResponseError>> {
        let hidden = !settings.introspection && self.uses_introspection(document);
        if hidden {
            let message = "introspection is switched off on this server (setting `introspection`)";
            return Err(vec![ResponseError::new("INTROSPECTION_DISABLED", message)]);
        }
        Ok(())
    }

    fn uses_introspection(&self, document: &ExecutableDocument) -> bool {
        let mut roots = self.operation.root_fields(document);
        roots.any(|field| matches!(field.name.as_str(), "__schema" | "__type"))
    }

    pub fn operation_type(&self) -> OperationType {
        self.operation.operation_type
    }

    /// The plan for these variables, from before where there is one; a new one that is kept is told to `grown`.
    pub fn plan(
        &self,
        engine: &Engine,
        settings: &GraphqlSettings,
        document: &Valid<ExecutableDocument>,
        variables: &VariableValues,
        grown: impl FnOnce(&OperationPlan),
    ) -> Result<Arc<OperationPlan>, ResponseError> {
        if self.cost_uses_variables {
            limits::check_operation(document, &self.operation, Some(variables), &settings.limits)?;
        }
        let key =
            self.include_variables.iter().map(|position| variables.get(*position).and_then(Value::as_bool));
        let known = self.plans.read().unwrap_or_else(|broken| broken.into_inner());
        if let Some((_, plan)) = known.iter().find(|(flags, _)| flags.iter().copied().eq(key.clone())) {
            return Ok(plan.clone());
        }
        drop(known);
        let plan = Arc::new(OperationPlan::new(engine, document, &self.operation, variables)?);
        let mut plans = self.plans.write().unwrap_or_else(|broken| broken.into_inner());
        let known = plans.iter().any(|(flags, _)| flags.iter().copied().eq(key.clone()));
        if !known && !plan.single_use && plans.len() < MAX_PLANS {
            plans.push((key.collect(), plan.clone()));
            drop(plans);
            grown(&plan);
        }
        Ok(plan)
    }
}

/// The names of variables that decide what is included.
fn collect_include_variables<'a>(set: &'a SelectionSet, names: &mut Vec<&'a apollo_compiler::Name>) {
    for selection in &set.selections {
        for directive in selection.directives().iter().filter(|d| d.name == "skip" || d.name == "include") {
            if let Some(ast::Value::Variable(name)) = directive.specified_argument_by_name("if").map(|v| &**v)
            {
                names.push(name);
            }
        }
        match selection {
            Selection::Field(field) => collect_include_variables(&field.selection_set, names),
            Selection::InlineFragment(fragment) => collect_include_variables(&fragment.selection_set, names),
            Selection::FragmentSpread(_) => {}
        }
    }
}
