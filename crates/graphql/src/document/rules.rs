//! Corrections of apollo-compiler's validation to match graphql-js: missing rules, and diagnostics to ignore.

use std::collections::HashSet;

use apollo_compiler::ast::{self, Type, Value, VariableDefinition};
use apollo_compiler::executable::{Operation, OperationType, Selection, SelectionSet};
use apollo_compiler::parser::SourceMap;
use apollo_compiler::schema::ExtendedType;
use apollo_compiler::{ExecutableDocument, Name, Node, Schema};

use crate::response_error::{DocumentLocation, ResponseError};

/// apollo-compiler's error for a subscription with several fields; it counts every occurrence of a response key.
pub const MULTIPLE_FIELDS: &str = "SubscriptionUsesMultipleFields";
/// Its error for an object field without valid sub-fields.
pub const MISSING_SUBSELECTION: &str = "MissingSubselection";
/// Its error for a value of the wrong type.
pub const UNSUPPORTED_VALUE: &str = "UnsupportedValueType";

/// The result of checking a document.
#[derive(Default)]
pub struct RuleFindings {
    pub errors: Vec<ResponseError>,
    /// Nulls in lists within non-null custom scalars, which are valid.
    pub allowed_nulls: Vec<DocumentLocation>,
}

pub fn check(schema: &Schema, document: &ExecutableDocument) -> RuleFindings {
    let mut findings = RuleFindings::default();
    for operation in document.operations.iter() {
        let mut visited = HashSet::new();
        let mut rules = RuleChecker { schema, document, operation, findings: &mut findings };
        rules.check_definitions();
        rules.check_selections(&operation.selection_set, &mut visited);
        if operation.operation_type == OperationType::Subscription {
            rules.check_single_root();
        }
    }
    findings.errors.dedup();
    findings
}

struct RuleChecker<'a> {
    schema: &'a Schema,
    document: &'a ExecutableDocument,
    operation: &'a Node<Operation>,
    findings: &'a mut RuleFindings,
}

/// The position of a value: its expected type, if known, and whether it has a default.
#[derive(Clone, Copy)]
struct ValuePosition<'a> {
    ty: Option<&'a Type>,
    has_default: bool,
}

impl<'a> RuleChecker<'a> {
    fn check_definitions(&mut self) {
        self.check_directives(&self.operation.directives);
        for variable in &self.operation.variables {
            if let Some(default) = &variable.default_value {
                self.check_value(default, ValuePosition { ty: Some(&variable.ty), has_default: false });
            }
            self.check_directives(&variable.directives);
        }
    }

    /// A subscription has one root field. Selections with the same response key are merged and count once.
    fn check_single_root(&mut self) {
        let roots = self.operation.root_fields(self.document);
        let keys: HashSet<&Name> = roots.map(|field| field.response_key()).collect();
        if keys.len() > 1 {
            let name = self.operation.name.as_ref();
            let title = name.map_or_else(
                || "Anonymous Subscription".to_owned(),
                |name| format!("Subscription \"{name}\""),
            );
            let message = format!("{title} must select only one top level field.");
            self.report(self.operation, message);
        }
    }

    fn check_selections(&mut self, set: &'a SelectionSet, visited: &mut HashSet<&'a Name>) {
        for selection in &set.selections {
            self.check_directives(selection.directives());
            match selection {
                Selection::Field(field) => {
                    self.check_arguments(&field.arguments, &field.definition.arguments);
                    self.check_selections(&field.selection_set, visited);
                }
                Selection::InlineFragment(fragment) => {
                    self.check_selections(&fragment.selection_set, visited)
                }
                Selection::FragmentSpread(spread) => {
                    if visited.insert(&spread.fragment_name)
                        && let Some(fragment) = self.document.fragments.get(&spread.fragment_name)
                    {
                        self.check_directives(&fragment.directives);
                        self.check_selections(&fragment.selection_set, visited);
                    }
                }
            }
        }
    }

    fn check_directives(&mut self, directives: &'a ast::DirectiveList) {
        for directive in directives.iter() {
            if let Some(definition) = self.schema.directive_definitions.get(&directive.name) {
                self.check_arguments(&directive.arguments, &definition.arguments);
            }
        }
    }

    fn check_arguments(
        &mut self,
        arguments: &'a [Node<ast::Argument>],
        definitions: &'a [Node<ast::InputValueDefinition>],
    ) {
        for argument in arguments {
            if let Some(definition) = definitions.iter().find(|definition| definition.name == argument.name) {
                let has_default = definition.default_value.is_some();
                self.check_value(&argument.value, ValuePosition { ty: Some(&definition.ty), has_default });
            }
        }
    }

    fn check_value(&mut self, value: &'a Node<Value>, at: ValuePosition) {
        match &**value {
            Value::Variable(name) => self.check_variable(name, value, at),
            Value::List(items) => {
                let scalar = at.ty.filter(|ty| !ty.is_list()).map(|ty| ty.clone().nullable());
                if scalar.is_some() {
                    let nulls = items.iter().filter(|item| item.is_null());
                    let locations = nulls.filter_map(|item| document_location(item, &self.document.sources));
                    self.findings.allowed_nulls.extend(locations);
                }
                let ty = scalar.as_ref().or(at.ty.filter(|ty| ty.is_list()).map(Type::item_type));
                for item in items {
                    self.check_value(item, ValuePosition { ty, has_default: false });
                }
            }
            Value::Object(fields) => self.check_object(fields, at),
            Value::Null
            | Value::Enum(_)
            | Value::String(_)
            | Value::Float(_)
            | Value::Int(_)
            | Value::Boolean(_) => {}
        }
    }

    fn check_object(&mut self, fields: &'a [(Name, Node<Value>)], at: ValuePosition) {
        let definition = at.ty.and_then(|ty| match self.schema.types.get(ty.inner_named_type()) {
            Some(ExtendedType::InputObject(definition)) => Some(definition),
            _ => None,
        });
        let mut seen = HashSet::new();
        for (name, value) in fields {
            if !seen.insert(name) {
                self.report(value, format!("There can be only one input field named \"{name}\"."));
            }
            let field = definition.and_then(|definition| definition.fields.get(name));
            let has_default = field.is_some_and(|field| field.default_value.is_some());
            self.check_value(value, ValuePosition { ty: field.map(|field| &*field.ty), has_default });
        }
    }

    fn check_variable(&mut self, name: &Name, value: &Node<Value>, at: ValuePosition) {
        let declared = self.operation.variables.iter().find(|variable| variable.name == *name);
        let Some(declared) = declared else {
            return self.report(value, format!("Variable \"${name}\" is not defined."));
        };
        // A custom scalar accepts any value.
        let Some(ty) = at.ty else { return };
        if !is_variable_allowed(declared, ty, at.has_default) {
            let message = format!(
                "Variable \"${name}\" of type \"{}\" used in position expecting type \"{ty}\".",
                declared.ty
            );
            self.report(value, message);
        }
    }

    fn report<T>(&mut self, node: &Node<T>, message: String) {
        let failure = ResponseError::new("GRAPHQL_VALIDATION_FAILED", message);
        self.findings
            .errors
            .push(failure.with_locations(document_location(node, &self.document.sources).as_slice()));
    }
}

fn is_variable_allowed(declared: &VariableDefinition, ty: &Type, has_default: bool) -> bool {
    if ty.is_non_null() && !declared.ty.is_non_null() {
        let has_own_default = declared.default_value.as_ref().is_some_and(|value| !value.is_null());
        return (has_own_default || has_default) && declared.ty.is_assignable_to(&ty.clone().nullable());
    }
    declared.ty.is_assignable_to(ty)
}

pub fn document_location<T>(node: &Node<T>, sources: &SourceMap) -> Option<DocumentLocation> {
    let at = node.location()?.line_column(sources)?;
    Some(DocumentLocation { line: at.line, column: at.column })
}
