//! Collects the fields of an object by response key: expands fragments and applies `@skip` and `@include`.

use std::collections::HashSet;

use apollo_compiler::executable::{DirectiveList, Field, Selection, SelectionSet};
use apollo_compiler::{Name, Node, ast};
use indexmap::IndexMap;

use crate::document::rules;
use crate::plan::planner::OperationPlanner;
use crate::plan::shape::ResponseLabel;
use crate::response_error::{DocumentLocation, ResponseError};

/// All selections with one response key.
pub struct FieldGroup<'a> {
    pub response_key: &'a Name,
    pub nodes: Vec<&'a Node<Field>>,
}

impl<'a> FieldGroup<'a> {
    pub fn selection_sets(&self) -> impl Iterator<Item = &'a SelectionSet> + use<'a, '_> {
        self.nodes.iter().map(|node| &node.selection_set)
    }
}

/// The groups in order, and the error of a null condition.
pub fn collect_fields<'a>(
    planner: &mut OperationPlanner<'a>,
    type_name: &str,
    sets: impl IntoIterator<Item = &'a SelectionSet>,
) -> (Vec<FieldGroup<'a>>, Option<ResponseError>) {
    let (groups, visited_fragments) = (IndexMap::new(), HashSet::new());
    let mut collector =
        FieldCollector { planner, type_name, groups, visited_fragments, selection_error: None };
    for set in sets {
        collector.collect_set(set);
    }
    collector.planner.field_count += collector.groups.len();
    if let Some(mistake) = &collector.selection_error {
        collector.planner.note_mistake(mistake);
    }
    let groups = collector.groups.into_iter().map(|(key, nodes)| FieldGroup { response_key: key, nodes });
    (groups.collect(), collector.selection_error)
}

struct FieldCollector<'p, 'a, 't> {
    planner: &'p mut OperationPlanner<'a>,
    type_name: &'t str,
    groups: IndexMap<&'a Name, Vec<&'a Node<Field>>>,
    visited_fragments: HashSet<&'a Name>,
    selection_error: Option<ResponseError>,
}

impl<'a> FieldCollector<'_, 'a, '_> {
    fn collect_set(&mut self, set: &'a SelectionSet) {
        for selection in &set.selections {
            // A fragment that was visited is skipped, including its conditions.
            let visited = selection
                .as_fragment_spread()
                .is_some_and(|spread| self.visited_fragments.contains(&spread.fragment_name));
            if visited || !self.is_included(selection.directives()) {
                continue;
            }
            match selection {
                Selection::Field(field) => self.add_field(field),
                Selection::InlineFragment(fragment) => {
                    if fragment.type_condition.as_ref().is_none_or(|name| self.type_applies(name)) {
                        self.collect_set(&fragment.selection_set);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let document = self.planner.document;
                    self.visited_fragments.insert(&spread.fragment_name);
                    if let Some(fragment) = document.fragments.get(&spread.fragment_name)
                        && self.type_applies(fragment.type_condition())
                    {
                        self.collect_set(&fragment.selection_set);
                    }
                }
            }
        }
    }

    fn add_field(&mut self, field: &'a Node<Field>) {
        let nodes = self.groups.entry(field.response_key()).or_default();
        if let Some(first) = nodes.first()
            && !same_arguments(first, field)
        {
            let message = format!(
                "Fields \"{}\" conflict because they have differing arguments. Use different aliases on the fields to fetch both if this was intentional.",
                field.response_key()
            );
            let locations = [field_location(self.planner, first), field_location(self.planner, field)];
            let locations: Vec<DocumentLocation> = locations.into_iter().flatten().collect();
            let failure = ResponseError::new("GRAPHQL_VALIDATION_FAILED", message).with_locations(&locations);
            self.planner.conflict.get_or_insert(failure);
        }
        nodes.push(field);
    }

    fn type_applies(&self, condition: &str) -> bool {
        let schema = &self.planner.engine.model().schema;
        condition == self.type_name || schema.is_subtype(condition, self.type_name)
    }

    fn is_included(&mut self, directives: &DirectiveList) -> bool {
        self.directive_flag(directives, "skip") != Some(true)
            && self.directive_flag(directives, "include") != Some(false)
    }

    fn directive_flag(&mut self, directives: &DirectiveList, name: &str) -> Option<bool> {
        let value = directives.get(name)?.specified_argument_by_name("if")?;
        let flag = self.flag_value(value);
        if flag.is_none() {
            // A client may send null for a nullable variable with a default.
            let message = "Argument \"if\" of non-null type \"Boolean!\" must not be null.";
            let locations = rules::document_location(value, &self.planner.document.sources);
            let failure = ResponseError::new("BAD_USER_INPUT", message).with_locations(locations.as_slice());
            self.selection_error.get_or_insert(failure);
        }
        flag
    }

    fn flag_value(&self, value: &ast::Value) -> Option<bool> {
        let Some(name) = value.as_variable() else { return value.to_bool() };
        let position =
            self.planner.variable_definitions.iter().position(|variable| variable.name == *name)?;
        self.planner.variables.get(position)?.as_bool()
    }
}

/// The label of a field that is selected on `type_name`.
pub fn field_label(planner: &OperationPlanner, type_name: &str, group: &FieldGroup) -> ResponseLabel {
    ResponseLabel {
        json_key: format!("\"{}\":", group.response_key).into_bytes(),
        response_key: group.response_key.to_string(),
        type_name: type_name.to_owned(),
        name: group.nodes[0].name.to_string(),
        locations: group.nodes.iter().filter_map(|node| field_location(planner, node)).collect(),
    }
}

fn field_location(planner: &OperationPlanner, node: &Node<Field>) -> Option<DocumentLocation> {
    let at = node.location()?.line_column(&planner.document.sources)?;
    Some(DocumentLocation { line: at.line, column: at.column })
}

/// Validation compares arguments, but not the lengths of lists in them.
fn same_arguments(a: &Field, b: &Field) -> bool {
    a.arguments.iter().all(|argument| {
        let other = b.arguments.iter().find(|other| other.name == argument.name);
        other.is_some_and(|other| same_lengths(&argument.value, &other.value))
    })
}

fn same_lengths(a: &ast::Value, b: &ast::Value) -> bool {
    match (a, b) {
        (ast::Value::List(a), ast::Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_lengths(a, b))
        }
        (ast::Value::Object(a), ast::Value::Object(b)) => a.iter().all(|(name, value)| {
            let other = b.iter().find(|(key, _)| key == name);
            other.is_some_and(|(_, other)| same_lengths(value, other))
        }),
        _ => true,
    }
}
