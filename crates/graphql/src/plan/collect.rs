//! The fields of an object, merged by response key: fragments expanded, `@skip` and `@include` decided.

use std::collections::HashSet;

use apollo_compiler::ast;
use apollo_compiler::executable::{DirectiveList, Field, Selection, SelectionSet};
use apollo_compiler::{Name, Node};
use indexmap::IndexMap;

use crate::plan::roots::Planner;
use crate::plan::shape::Label;
use crate::response_error::{Failure, Place};

/// All selections of one response key.
pub struct Group<'a> {
    pub key: &'a Name,
    pub nodes: Vec<&'a Node<Field>>,
}

impl<'a> Group<'a> {
    pub fn sets(&self) -> impl Iterator<Item = &'a SelectionSet> + use<'a, '_> {
        self.nodes.iter().map(|node| &node.selection_set)
    }
}

/// The groups in order, and why they cannot be told if a condition is null.
pub fn collect<'a>(
    planner: &mut Planner<'a>,
    type_name: &str,
    sets: impl IntoIterator<Item = &'a SelectionSet>,
) -> (Vec<Group<'a>>, Option<Failure>) {
    let (groups, visited) = (IndexMap::new(), HashSet::new());
    let mut collector = Collector { planner, type_name, groups, visited, broken: None };
    for set in sets {
        collector.set(set);
    }
    collector.planner.fields += collector.groups.len();
    let groups = collector.groups.into_iter().map(|(key, nodes)| Group { key, nodes });
    (groups.collect(), collector.broken)
}

struct Collector<'p, 'a, 't> {
    planner: &'p mut Planner<'a>,
    type_name: &'t str,
    groups: IndexMap<&'a Name, Vec<&'a Node<Field>>>,
    visited: HashSet<&'a Name>,
    broken: Option<Failure>,
}

impl<'a> Collector<'_, 'a, '_> {
    fn set(&mut self, set: &'a SelectionSet) {
        for selection in &set.selections {
            // A fragment that is here already is not looked at again, its conditions neither.
            let again = selection
                .as_fragment_spread()
                .is_some_and(|spread| self.visited.contains(&spread.fragment_name));
            if again || !self.included(selection.directives()) {
                continue;
            }
            match selection {
                Selection::Field(field) => self.field(field),
                Selection::InlineFragment(fragment) => {
                    if fragment.type_condition.as_ref().is_none_or(|name| self.applies(name)) {
                        self.set(&fragment.selection_set);
                    }
                }
                Selection::FragmentSpread(spread) => {
                    let document = self.planner.document;
                    self.visited.insert(&spread.fragment_name);
                    if let Some(fragment) = document.fragments.get(&spread.fragment_name)
                        && self.applies(fragment.type_condition())
                    {
                        self.set(&fragment.selection_set);
                    }
                }
            }
        }
    }

    fn field(&mut self, field: &'a Node<Field>) {
        let nodes = self.groups.entry(field.response_key()).or_default();
        if let Some(first) = nodes.first()
            && !same_arguments(first, field)
        {
            let message = format!(
                "Fields \"{}\" conflict because they have differing arguments. Use different aliases on the fields to fetch both if this was intentional.",
                field.response_key()
            );
            let places = [place(self.planner, first), place(self.planner, field)];
            let places: Vec<Place> = places.into_iter().flatten().collect();
            let failure = Failure::new("GRAPHQL_VALIDATION_FAILED", message).at(&places);
            self.planner.conflict.get_or_insert(failure);
        }
        nodes.push(field);
    }

    fn applies(&self, condition: &str) -> bool {
        let schema = &self.planner.engine.model().schema;
        condition == self.type_name || schema.is_subtype(condition, self.type_name)
    }

    fn included(&mut self, directives: &DirectiveList) -> bool {
        self.says(directives, "skip") != Some(true) && self.says(directives, "include") != Some(false)
    }

    fn says(&mut self, directives: &DirectiveList, name: &str) -> Option<bool> {
        let value = directives.get(name)?.specified_argument_by_name("if")?;
        let flag = self.flag(value);
        if flag.is_none() {
            // A variable with a default may be given as null all the same.
            let message = "Argument \"if\" of non-null type \"Boolean!\" must not be null.";
            let places = crate::document::rules::place(value, &self.planner.document.sources);
            let failure = Failure::new("BAD_USER_INPUT", message).at(places.as_slice());
            self.broken.get_or_insert(failure);
        }
        flag
    }

    fn flag(&self, value: &ast::Value) -> Option<bool> {
        let Some(name) = value.as_variable() else { return value.to_bool() };
        let position = self.planner.declared.iter().position(|variable| variable.name == *name)?;
        self.planner.variables.get(position)?.as_bool()
    }
}

/// The label of a field; the type is the one it is selected on.
pub fn label(planner: &Planner, type_name: &str, group: &Group) -> Label {
    Label {
        key: format!("\"{}\":", group.key).into_bytes(),
        response: group.key.to_string(),
        type_name: type_name.to_owned(),
        name: group.nodes[0].name.to_string(),
        places: group.nodes.iter().filter_map(|node| place(planner, node)).collect(),
    }
}

fn place(planner: &Planner, node: &Node<Field>) -> Option<Place> {
    let at = node.location()?.line_column(&planner.document.sources)?;
    Some(Place { line: at.line, column: at.column })
}

/// Validation holds that arguments agree, except that it does not compare the lengths of lists.
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
