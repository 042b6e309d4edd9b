//! How large a document may be: tokens, depth, aliases and cost, counted before anything is done with it.

use std::collections::HashMap;

use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};
use apollo_compiler::{ExecutableDocument, Name, ast};

use trefoil_config::ServerLimits;

use crate::document::tokens::tokens;
use crate::plan::input::VariableNode;
use crate::plan::variables::VariableValues;
use crate::response_error::ResponseError;

/// What a list without a limit of its own counts as.
const DEFAULT_LIST_LENGTH: u64 = 20;

/// A token counts once for each so many bytes: megabytes of comment or text in a document cost memory all the same.
const BYTES_PER_TOKEN: usize = 256;

/// Arguments that say how long a list can get.
const LENGTH_ARGUMENTS: [&str; 2] = ["first", "size"];

/// Types hold lists that lead to types again, so answers about the schema grow with a power of the nesting.
/// graphql-js draws the same line.
const INTROSPECTION_LIST_FIELDS: [&str; 4] = ["fields", "interfaces", "possibleTypes", "inputFields"];
const MAX_INTROSPECTION_DEPTH: u64 = 3;

pub fn limit_exceeded(
    what: &str,
    found: impl std::fmt::Display,
    allowed: usize,
    setting: &str,
) -> ResponseError {
    let message = format!("{what} is {found}, more than the {allowed} that limits.{setting} allows");
    ResponseError::new("LIMIT_EXCEEDED", message)
}

/// Refuses a document by its length alone.
pub fn check_length(length: usize, limits: &ServerLimits) -> Result<(), ResponseError> {
    if length <= limits.tokens.saturating_mul(BYTES_PER_TOKEN) {
        return Ok(());
    }
    let what = format!("the length of the document in units of {BYTES_PER_TOKEN} bytes");
    Err(limit_exceeded(&what, length.div_ceil(BYTES_PER_TOKEN), limits.tokens, "tokens"))
}

/// Refuses text with too many tokens without keeping any of them.
pub fn check_tokens(text: &str, limits: &ServerLimits) -> Result<(), ResponseError> {
    check_length(text.len(), limits)?;
    if tokens(text).nth(limits.tokens).is_some() {
        let found = format!("over {}", limits.tokens);
        return Err(limit_exceeded("the number of tokens", found, limits.tokens, "tokens"));
    }
    Ok(())
}

/// What a selection amounts to, fragments counted wherever they are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SelectionWeight {
    depth: u64,
    aliases: u64,
    cost: u64,
    /// Lists of types within lists of types, in introspection.
    lists: u64,
}

/// Whether the cost of an operation depends on its variables.
pub fn depends_on_variables(document: &ExecutableDocument, operation: &Operation) -> bool {
    let variable = |field: &Field| {
        LENGTH_ARGUMENTS.iter().any(|name| {
            matches!(
                field.specified_argument_by_name(name).map(|value| &**value),
                Some(ast::Value::Variable(_))
            )
        })
    };
    operation.all_fields(document).any(|field| variable(field))
}

/// Checks an operation; without the values of variables, lists that they limit count once.
pub fn check_operation(
    document: &ExecutableDocument,
    operation: &Operation,
    variables: Option<&VariableValues>,
    limits: &ServerLimits,
) -> Result<(), ResponseError> {
    let longest = limits.max_page_size as u64;
    let mut scale = WeightCalculator {
        document,
        variable_definitions: &operation.variables,
        variables,
        max_length: longest,
        fragment_weights: HashMap::new(),
    };
    let weight = scale.weigh_set(&operation.selection_set, None);
    let rows = [
        ("the depth of the operation", weight.depth, limits.depth, "depth"),
        ("the number of aliases", weight.aliases, limits.aliases, "aliases"),
        ("the cost of the operation", weight.cost, limits.cost, "cost"),
    ];
    for (what, found, allowed, setting) in rows {
        if found > allowed as u64 {
            return Err(limit_exceeded(what, found, allowed, setting));
        }
    }
    if weight.lists >= MAX_INTROSPECTION_DEPTH {
        let message =
            format!("introspection may nest lists of types less than {MAX_INTROSPECTION_DEPTH} deep");
        return Err(ResponseError::new("LIMIT_EXCEEDED", message));
    }
    Ok(())
}

struct WeightCalculator<'a> {
    document: &'a ExecutableDocument,
    variable_definitions: &'a [VariableNode],
    variables: Option<&'a VariableValues>,
    /// No list gets longer than this when it has a limit: the engine refuses a higher one.
    max_length: u64,
    /// Fragments weighed before, by name and the limit they inherit; `None` while one is being weighed.
    fragment_weights: HashMap<(&'a Name, Option<u64>), Option<SelectionWeight>>,
}

impl<'a> WeightCalculator<'a> {
    /// `limit` is how long the lists of a connection can get: its own field says so, one level up.
    fn weigh_set(&mut self, set: &'a SelectionSet, limit: Option<u64>) -> SelectionWeight {
        let mut sum = SelectionWeight::default();
        for selection in &set.selections {
            let part = match selection {
                Selection::Field(field) => self.weigh_field(&set.ty, field, limit),
                Selection::InlineFragment(fragment) => self.weigh_set(&fragment.selection_set, limit),
                Selection::FragmentSpread(spread) => self.weigh_fragment(&spread.fragment_name, limit),
            };
            sum.depth = sum.depth.max(part.depth);
            sum.aliases = sum.aliases.saturating_add(part.aliases);
            sum.cost = sum.cost.saturating_add(part.cost);
            sum.lists = sum.lists.max(part.lists);
        }
        sum
    }

    fn weigh_fragment(&mut self, name: &'a Name, limit: Option<u64>) -> SelectionWeight {
        if let Some(known) = self.fragment_weights.get(&(name, limit)) {
            return known.unwrap_or_default();
        }
        let Some(fragment) = self.document.fragments.get(name) else { return SelectionWeight::default() };
        self.fragment_weights.insert((name, limit), None);
        let weight = self.weigh_set(&fragment.selection_set, limit);
        self.fragment_weights.insert((name, limit), Some(weight));
        weight
    }

    fn weigh_field(&mut self, parent: &str, field: &'a Field, limit: Option<u64>) -> SelectionWeight {
        let own = self.list_length(field);
        let is_list = field.ty().is_list();
        let below = self.weigh_set(&field.selection_set, if is_list { None } else { own });
        let aliases = below.aliases.saturating_add(u64::from(field.alias.is_some()));
        let lists = below.lists
            + u64::from(parent == "__Type" && INTROSPECTION_LIST_FIELDS.contains(&field.name.as_str()));
        // Introspection is bounded by its lists alone.
        if field.name.starts_with("__") {
            return SelectionWeight { depth: 0, aliases, cost: 0, lists };
        }
        let times = if is_list { own.or(limit).unwrap_or(DEFAULT_LIST_LENGTH) } else { 1 };
        let cost = below.cost.saturating_mul(times).saturating_add(1);
        SelectionWeight { depth: below.depth.saturating_add(1), aliases, cost, lists }
    }

    fn list_length(&self, field: &Field) -> Option<u64> {
        let length = LENGTH_ARGUMENTS.iter().find_map(|name| {
            let value = field.specified_argument_by_name(name)?;
            match value.as_variable() {
                Some(name) => self.variable_length(name),
                None => value.to_i32().map(|number| u64::try_from(number).unwrap_or(0)),
            }
        });
        length.map(|length| length.min(self.max_length))
    }

    fn variable_length(&self, name: &str) -> Option<u64> {
        let Some(variables) = self.variables else { return Some(1) };
        let position = self.variable_definitions.iter().position(|variable| variable.name == name)?;
        variables.get(position)?.as_i64().map(|number| u64::try_from(number).unwrap_or(0))
    }
}
