//! How large a document may be: tokens, depth, aliases and cost, counted before anything is done with it.

use std::collections::HashMap;

use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};
use apollo_compiler::{ExecutableDocument, Name, ast};

use crate::document::tokens::tokens;
use crate::plan::input::VariableRef;
use crate::plan::variables::Variables;
use crate::response_error::Failure;
use trefoil_config::Limits;

/// What a list without a limit of its own counts as.
const USUAL_LENGTH: u64 = 20;

/// A token counts once for each so many bytes: megabytes of comment or text in a document cost memory all the same.
const BYTES_A_TOKEN: usize = 256;

/// Arguments that say how long a list can get.
const LENGTHS: [&str; 2] = ["first", "size"];

/// Types hold lists that lead to types again, so answers about the schema grow with a power of the nesting.
/// graphql-js draws the same line.
const LISTS_OF_TYPES: [&str; 4] = ["fields", "interfaces", "possibleTypes", "inputFields"];
const INTROSPECTION_LISTS: u64 = 3;

pub fn exceeded(what: &str, found: impl std::fmt::Display, allowed: usize, setting: &str) -> Failure {
    let message = format!("{what} is {found}, more than the {allowed} that limits.{setting} allows");
    Failure::new("LIMIT_EXCEEDED", message)
}

/// Refuses a document by its length alone.
pub fn check_length(length: usize, limits: &Limits) -> Result<(), Failure> {
    if length <= limits.tokens.saturating_mul(BYTES_A_TOKEN) {
        return Ok(());
    }
    let what = format!("the length of the document in units of {BYTES_A_TOKEN} bytes");
    Err(exceeded(&what, length.div_ceil(BYTES_A_TOKEN), limits.tokens, "tokens"))
}

/// Refuses text with too many tokens without keeping any of them.
pub fn check_tokens(text: &str, limits: &Limits) -> Result<(), Failure> {
    check_length(text.len(), limits)?;
    if tokens(text).nth(limits.tokens).is_some() {
        let found = format!("over {}", limits.tokens);
        return Err(exceeded("the number of tokens", found, limits.tokens, "tokens"));
    }
    Ok(())
}

/// What a selection amounts to, fragments counted wherever they are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Weight {
    depth: u64,
    aliases: u64,
    cost: u64,
    /// Lists of types within lists of types, in introspection.
    lists: u64,
}

/// Whether the cost of an operation depends on its variables.
pub fn depends_on_variables(document: &ExecutableDocument, operation: &Operation) -> bool {
    let variable = |field: &Field| {
        LENGTHS.iter().any(|name| {
            matches!(
                field.specified_argument_by_name(name).map(|value| &**value),
                Some(ast::Value::Variable(_))
            )
        })
    };
    operation.all_fields(document).any(|field| variable(field))
}

/// Checks an operation; without the values of variables, lists that they limit count once.
pub fn check(
    document: &ExecutableDocument,
    operation: &Operation,
    variables: Option<&Variables>,
    limits: &Limits,
) -> Result<(), Failure> {
    let longest = limits.max_page_size as u64;
    let mut scale =
        Scale { document, declared: &operation.variables, variables, longest, known: HashMap::new() };
    let weight = scale.set(&operation.selection_set, None);
    let rows = [
        ("the depth of the operation", weight.depth, limits.depth, "depth"),
        ("the number of aliases", weight.aliases, limits.aliases, "aliases"),
        ("the cost of the operation", weight.cost, limits.cost, "cost"),
    ];
    for (what, found, allowed, setting) in rows {
        if found > allowed as u64 {
            return Err(exceeded(what, found, allowed, setting));
        }
    }
    if weight.lists >= INTROSPECTION_LISTS {
        let message = format!("introspection may nest lists of types less than {INTROSPECTION_LISTS} deep");
        return Err(Failure::new("LIMIT_EXCEEDED", message));
    }
    Ok(())
}

struct Scale<'a> {
    document: &'a ExecutableDocument,
    declared: &'a [VariableRef],
    variables: Option<&'a Variables>,
    /// No list gets longer than this when it has a limit: the engine refuses a higher one.
    longest: u64,
    /// Fragments weighed before, by name and the limit they inherit; `None` while one is being weighed.
    known: HashMap<(&'a Name, Option<u64>), Option<Weight>>,
}

impl<'a> Scale<'a> {
    /// `limit` is how long the lists of a connection can get: its own field says so, one level up.
    fn set(&mut self, set: &'a SelectionSet, limit: Option<u64>) -> Weight {
        let mut sum = Weight::default();
        for selection in &set.selections {
            let part = match selection {
                Selection::Field(field) => self.field(&set.ty, field, limit),
                Selection::InlineFragment(fragment) => self.set(&fragment.selection_set, limit),
                Selection::FragmentSpread(spread) => self.fragment(&spread.fragment_name, limit),
            };
            sum.depth = sum.depth.max(part.depth);
            sum.aliases = sum.aliases.saturating_add(part.aliases);
            sum.cost = sum.cost.saturating_add(part.cost);
            sum.lists = sum.lists.max(part.lists);
        }
        sum
    }

    fn fragment(&mut self, name: &'a Name, limit: Option<u64>) -> Weight {
        if let Some(known) = self.known.get(&(name, limit)) {
            return known.unwrap_or_default();
        }
        let Some(fragment) = self.document.fragments.get(name) else { return Weight::default() };
        self.known.insert((name, limit), None);
        let weight = self.set(&fragment.selection_set, limit);
        self.known.insert((name, limit), Some(weight));
        weight
    }

    fn field(&mut self, parent: &str, field: &'a Field, limit: Option<u64>) -> Weight {
        let own = self.length(field);
        let is_list = field.ty().is_list();
        let below = self.set(&field.selection_set, if is_list { None } else { own });
        let aliases = below.aliases.saturating_add(u64::from(field.alias.is_some()));
        let lists =
            below.lists + u64::from(parent == "__Type" && LISTS_OF_TYPES.contains(&field.name.as_str()));
        // Introspection is bounded by its lists alone.
        if field.name.starts_with("__") {
            return Weight { depth: 0, aliases, cost: 0, lists };
        }
        let times = if is_list { own.or(limit).unwrap_or(USUAL_LENGTH) } else { 1 };
        let cost = below.cost.saturating_mul(times).saturating_add(1);
        Weight { depth: below.depth.saturating_add(1), aliases, cost, lists }
    }

    fn length(&self, field: &Field) -> Option<u64> {
        let length = LENGTHS.iter().find_map(|name| {
            let value = field.specified_argument_by_name(name)?;
            match value.as_variable() {
                Some(name) => self.variable(name),
                None => value.to_i32().map(|number| u64::try_from(number).unwrap_or(0)),
            }
        });
        length.map(|length| length.min(self.longest))
    }

    fn variable(&self, name: &str) -> Option<u64> {
        let Some(variables) = self.variables else { return Some(1) };
        let position = self.declared.iter().position(|variable| variable.name == name)?;
        variables.get(position)?.as_i64().map(|number| u64::try_from(number).unwrap_or(0))
    }
}
