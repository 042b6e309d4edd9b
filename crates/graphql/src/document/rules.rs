//! Where graphql-js judges a document otherwise than apollo-compiler: rules that are left out, and complaints too many.

use std::collections::HashSet;

use apollo_compiler::ast::{self, Type, Value, VariableDefinition};
use apollo_compiler::executable::{Operation, OperationType, Selection, SelectionSet};
use apollo_compiler::parser::SourceMap;
use apollo_compiler::schema::ExtendedType;
use apollo_compiler::{ExecutableDocument, Name, Node, Schema};

use crate::response_error::{Failure, Place};

/// What apollo-compiler says of fields in a subscription, counting a response key as often as it is written …
pub const MULTIPLE_FIELDS: &str = "SubscriptionUsesMultipleFields";
/// … of a field of records without sub-fields that it knows …
pub const NOTHING_SELECTED: &str = "MissingSubselection";
/// … and of a value that does not fit its type.
pub const WRONG_VALUE: &str = "UnsupportedValueType";

/// What was found in a document.
#[derive(Default)]
pub struct Findings {
    pub breaches: Vec<Failure>,
    /// Nulls in lists within custom scalars: those take anything, though they must not be null themselves.
    pub free_nulls: Vec<Place>,
}

pub fn check(schema: &Schema, document: &ExecutableDocument) -> Findings {
    let mut findings = Findings::default();
    for operation in document.operations.iter() {
        let mut visited = HashSet::new();
        let mut rules = Rules { schema, document, operation, findings: &mut findings };
        rules.definitions();
        rules.set(&operation.selection_set, &mut visited);
        if operation.operation_type == OperationType::Subscription {
            rules.one_root_field();
        }
    }
    findings.breaches.dedup();
    findings
}

struct Rules<'a> {
    schema: &'a Schema,
    document: &'a ExecutableDocument,
    operation: &'a Node<Operation>,
    findings: &'a mut Findings,
}

/// Where a value stands: the type that is expected, if known, and whether there is a default for it.
#[derive(Clone, Copy)]
struct Position<'a> {
    ty: Option<&'a Type>,
    has_default: bool,
}

impl<'a> Rules<'a> {
    fn definitions(&mut self) {
        self.directives(&self.operation.directives);
        for variable in &self.operation.variables {
            if let Some(default) = &variable.default_value {
                self.value(default, Position { ty: Some(&variable.ty), has_default: false });
            }
            self.directives(&variable.directives);
        }
    }

    /// Selections of one response key are merged, so they count once.
    fn one_root_field(&mut self) {
        let roots = self.operation.root_fields(self.document);
        let keys: HashSet<&Name> = roots.map(|field| field.response_key()).collect();
        if keys.len() > 1 {
            let name = self.operation.name.as_ref();
            let title = name.map_or_else(
                || "Anonymous Subscription".to_owned(),
                |name| format!("Subscription \"{name}\""),
            );
            let message = format!("{title} must select only one top level field.");
            self.complain(self.operation, message);
        }
    }

    fn set(&mut self, set: &'a SelectionSet, visited: &mut HashSet<&'a Name>) {
        for selection in &set.selections {
            self.directives(selection.directives());
            match selection {
                Selection::Field(field) => {
                    self.arguments(&field.arguments, &field.definition.arguments);
                    self.set(&field.selection_set, visited);
                }
                Selection::InlineFragment(fragment) => self.set(&fragment.selection_set, visited),
                Selection::FragmentSpread(spread) => {
                    if visited.insert(&spread.fragment_name)
                        && let Some(fragment) = self.document.fragments.get(&spread.fragment_name)
                    {
                        self.directives(&fragment.directives);
                        self.set(&fragment.selection_set, visited);
                    }
                }
            }
        }
    }

    fn directives(&mut self, directives: &'a ast::DirectiveList) {
        for directive in directives.iter() {
            if let Some(definition) = self.schema.directive_definitions.get(&directive.name) {
                self.arguments(&directive.arguments, &definition.arguments);
            }
        }
    }

    fn arguments(
        &mut self,
        given: &'a [Node<ast::Argument>],
        definitions: &'a [Node<ast::InputValueDefinition>],
    ) {
        for argument in given {
            if let Some(definition) = definitions.iter().find(|definition| definition.name == argument.name) {
                let has_default = definition.default_value.is_some();
                self.value(&argument.value, Position { ty: Some(&definition.ty), has_default });
            }
        }
    }

    fn value(&mut self, value: &'a Node<Value>, at: Position) {
        match &**value {
            Value::Variable(name) => self.variable(name, value, at),
            Value::List(items) => {
                let free = at.ty.filter(|ty| !ty.is_list()).map(|ty| ty.clone().nullable());
                if free.is_some() {
                    let nulls = items.iter().filter(|item| item.is_null());
                    let places = nulls.filter_map(|item| place(item, &self.document.sources));
                    self.findings.free_nulls.extend(places);
                }
                let ty = free.as_ref().or(at.ty.filter(|ty| ty.is_list()).map(Type::item_type));
                for item in items {
                    self.value(item, Position { ty, has_default: false });
                }
            }
            Value::Object(fields) => self.object(fields, at),
            Value::Null
            | Value::Enum(_)
            | Value::String(_)
            | Value::Float(_)
            | Value::Int(_)
            | Value::Boolean(_) => {}
        }
    }

    fn object(&mut self, fields: &'a [(Name, Node<Value>)], at: Position) {
        let definition = at.ty.and_then(|ty| match self.schema.types.get(ty.inner_named_type()) {
            Some(ExtendedType::InputObject(definition)) => Some(definition),
            _ => None,
        });
        let mut seen = HashSet::new();
        for (name, value) in fields {
            if !seen.insert(name) {
                self.complain(value, format!("There can be only one input field named \"{name}\"."));
            }
            let field = definition.and_then(|definition| definition.fields.get(name));
            let has_default = field.is_some_and(|field| field.default_value.is_some());
            self.value(value, Position { ty: field.map(|field| &*field.ty), has_default });
        }
    }

    fn variable(&mut self, name: &Name, value: &Node<Value>, at: Position) {
        let declared = self.operation.variables.iter().find(|variable| variable.name == *name);
        let Some(declared) = declared else {
            return self.complain(value, format!("Variable \"${name}\" is not defined."));
        };
        // An object in a custom scalar takes anything.
        let Some(ty) = at.ty else { return };
        if !is_allowed(declared, ty, at.has_default) {
            let message = format!(
                "Variable \"${name}\" of type \"{}\" used in position expecting type \"{ty}\".",
                declared.ty
            );
            self.complain(value, message);
        }
    }

    fn complain<T>(&mut self, node: &Node<T>, message: String) {
        let failure = Failure::new("GRAPHQL_VALIDATION_FAILED", message);
        self.findings.breaches.push(failure.at(place(node, &self.document.sources).as_slice()));
    }
}

fn is_allowed(declared: &VariableDefinition, ty: &Type, has_default: bool) -> bool {
    if ty.is_non_null() && !declared.ty.is_non_null() {
        let fallback = declared.default_value.as_ref().is_some_and(|value| !value.is_null());
        return (fallback || has_default) && declared.ty.is_assignable_to(&ty.clone().nullable());
    }
    declared.ty.is_assignable_to(ty)
}

pub fn place<T>(node: &Node<T>, sources: &SourceMap) -> Option<Place> {
    let at = node.location()?.line_column(sources)?;
    Some(Place { line: at.line, column: at.column })
}
