//! Parses and validates a document once, and stores the plans of its operations.

use std::sync::Arc;

use apollo_compiler::diagnostic::{Diagnostic, ToCliReport};
use apollo_compiler::executable::{Operation, OperationType, Selection, SelectionSet};
use apollo_compiler::parser::Parser;
use apollo_compiler::response::GraphQLError;
use apollo_compiler::validation::{DiagnosticData, DiagnosticList, Valid};
use apollo_compiler::{ExecutableDocument, Name, Node, ast};
use parking_lot::RwLock;

use trefoil_config::ServerLimits;
use trefoil_engine::{Engine, RelationLengths};
use trefoil_model::Value;

use crate::document::operation_weight::OperationWeight;
use crate::document::suggest::UnknownName;
use crate::document::{limits, rules, suggest, tokens};
use crate::plan::input;
use crate::plan::roots::OperationPlan;
use crate::plan::variable_values::VariableValues;
use crate::plan::variables::DeclaredVariable;
use crate::response_error::{DocumentLocation, ResponseError};

/// Maximum nesting of brackets and braces for the parser, far above limits.depth.
const MAX_NESTING: usize = 200;

/// Token limit of the parser per token of limits.tokens: the parser counts white space and commas, too.
const RAW_TOKENS_PER_TOKEN: usize = 10;

/// Maximum number of stored plans per operation: one per combination of its `@skip` and `@include` variables.
const MAX_PLANS: usize = 16;

/// A valid document.
pub struct ParsedDocument {
    pub executable: Valid<ExecutableDocument>,
    operations: Vec<PreparedOperation>,
}

/// One operation of a document.
pub struct PreparedOperation {
    pub operation: Node<Operation>,
    pub declared_variables: Vec<DeclaredVariable>,
    /// Positions of the variables that `@skip` and `@include` use.
    include_variables: Vec<usize>,
    /// Present if the cost depends on variables, and is therefore checked for each request.
    variable_weight: Option<OperationWeight>,
    plans: RwLock<Vec<(IncludeFlags, Arc<OperationPlan>)>>,
}

/// The values of `include_variables`, in order; `None` where a client sent null in spite of a default.
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
            let too_deep = parser.recursion_reached() > MAX_NESTING;
            match (too_deep, parser.tokens_reached() > settings.limits.tokens * RAW_TOKENS_PER_TOKEN) {
                (true, _) => vec![limits::limit_exceeded(
                    "the nesting of the document",
                    format_args!("over {MAX_NESTING}"),
                    settings.limits.depth,
                    "depth",
                )],
                (false, true) => {
                    let found = format_args!("over {}, including whitespace", parser.tokens_reached() - 1)
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
            .map(|operation| PreparedOperation::new(engine, settings, &document, operation))
            .collect();
        for prepared in &operations {
            prepared.check_introspection(&document, settings)?;
        }
        Ok(ParsedDocument { executable: document, operations })
    }

    pub fn operation(&self, name: Option<&str>) -> Result<&PreparedOperation, ResponseError> {
        let found = match name {
            Some(name) => self.operations.iter().find(|prepared| {
                prepared.operation.name.as_ref().is_some_and(|own_name| own_name.as_str() == name)
            }),
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

/// The part of the configuration that this crate uses for documents.
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

/// Validates a document after checking its limits, because validation costs more.
fn validate(
    engine: &Engine,
    settings: &GraphqlSettings,
    ast: &ast::Document,
) -> Result<Valid<ExecutableDocument>, Vec<ResponseError>> {
    let schema = &engine.model().schema;
    let (document, mut diagnostics) = match ast.to_executable(schema) {
        Ok(document) => (document, None),
        Err(error) => (error.partial, Some(error.errors)),
    };
    for operation in document.operations.iter() {
        let weight = greatest_weight(engine, settings, &document, operation);
        limits::check_weight(&weight, &settings.limits)
            .and_then(|()| {
                limits::check_cost(engine, &document, operation, (&weight, None), &settings.limits)
            })
            .map_err(|failure| vec![failure])?;
    }
    let document = match document.validate(schema) {
        Ok(document) => document,
        Err(error) => {
            match &mut diagnostics {
                Some(diagnostics) => diagnostics.merge(error.errors),
                None => diagnostics = Some(error.errors),
            }
            Valid::assume_valid(error.partial)
        }
    };
    let findings = rules::check(schema, &document);
    let mut errors = Vec::new();
    for diagnostic in diagnostics.iter().flat_map(DiagnosticList::iter) {
        let mut failure = response_error(&diagnostic.unstable_to_json_compat(), "GRAPHQL_VALIDATION_FAILED");
        let kind = diagnostic.error.unstable_error_name();
        // Suggestions would disclose the schema where introspection is disabled.
        if settings.introspection
            && errors.len() < suggest::MAX_SUGGESTIONS
            && let Some(unknown) = kind.and_then(|kind| UnknownName::in_message(kind, &failure.message))
        {
            failure = failure.with_unknown_name(engine, unknown);
        }
        let ignored = match kind {
            Some(rules::MULTIPLE_FIELDS) => true,
            Some(rules::MISSING_SUBSELECTION) => has_selection(&diagnostic),
            Some(rules::UNSUPPORTED_VALUE) => {
                failure.locations.iter().any(|location| findings.allowed_nulls.contains(location))
            }
            _ => false,
        };
        if !ignored {
            errors.push(failure);
        }
    }
    match (errors.is_empty(), findings.errors.is_empty()) {
        (true, true) => Ok(document),
        (true, false) => Err(findings.errors),
        (false, _) => Err(errors),
    }
}

/// The weight of an operation if every list without a limit has the greatest length that it counts as.
fn greatest_weight(
    engine: &Engine,
    settings: &GraphqlSettings,
    document: &ExecutableDocument,
    operation: &Operation,
) -> OperationWeight {
    OperationWeight::new(engine.model(), document, operation, &settings.limits, &RelationLengths::default())
}

/// True if the field has sub-fields in the text, but only unknown ones: each of those has its own diagnostic.
fn has_selection(diagnostic: &Diagnostic<'_, DiagnosticData>) -> bool {
    let Some(span) = diagnostic.error.location() else { return false };
    let source = diagnostic.sources.get(&span.file_id());
    source.is_some_and(|source| source.source_text()[..span.end_offset()].trim_end().ends_with('}'))
}

fn response_errors(errors: &DiagnosticList, code: &str) -> Vec<ResponseError> {
    errors.iter().map(|diagnostic| response_error(&diagnostic.unstable_to_json_compat(), code)).collect()
}

fn response_error(error: &GraphQLError, code: &str) -> ResponseError {
    let locations = error.locations.iter().map(|at| DocumentLocation { line: at.line, column: at.column });
    ResponseError::new(code, error.message.clone()).with_locations(&locations.collect::<Vec<_>>())
}

impl PreparedOperation {
    fn new(
        engine: &Engine,
        settings: &GraphqlSettings,
        document: &ExecutableDocument,
        operation: &Node<Operation>,
    ) -> PreparedOperation {
        let schema = &engine.model().schema;
        let weight = greatest_weight(engine, settings, document, operation);
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
        let variables = operation.variables.iter().enumerate();
        PreparedOperation {
            operation: operation.clone(),
            declared_variables: declared.collect(),
            include_variables: variables
                .filter(|(_, variable)| names.contains(&&variable.name))
                .map(|(i, _)| i)
                .collect(),
            variable_weight: Some(weight).filter(OperationWeight::depends_on_variables),
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
            let message = "introspection is disabled on this server (setting `introspection`)";
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

    /// The stored plan for these variables, or a new one; `on_stored` is called if the new one is stored.
    pub fn plan(
        &self,
        engine: &Engine,
        settings: &GraphqlSettings,
        document: &Valid<ExecutableDocument>,
        variables: &VariableValues,
        on_stored: impl FnOnce(&OperationPlan),
    ) -> Result<Arc<OperationPlan>, ResponseError> {
        if let Some(weight) = &self.variable_weight {
            let weight = (weight, Some(variables));
            limits::check_cost(engine, document, &self.operation, weight, &settings.limits)?;
        }
        let key =
            self.include_variables.iter().map(|position| variables.get(*position).and_then(Value::as_bool));
        let stored = self.plans.read();
        if let Some((_, plan)) = stored.iter().find(|(flags, _)| flags.iter().copied().eq(key.clone())) {
            return Ok(plan.clone());
        }
        drop(stored);
        let plan = Arc::new(OperationPlan::new(engine, document, &self.operation, variables)?);
        let mut plans = self.plans.write();
        let is_stored = plans.iter().any(|(flags, _)| flags.iter().copied().eq(key.clone()));
        if !is_stored && !plan.single_use && plans.len() < MAX_PLANS {
            plans.push((key.collect(), plan.clone()));
            drop(plans);
            on_stored(&plan);
        }
        Ok(plan)
    }
}

/// Collects the names of variables in `@skip` and `@include`.
fn collect_include_variables<'a>(set: &'a SelectionSet, names: &mut Vec<&'a Name>) {
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
