//! Limits of a document: tokens, depth, aliases and cost, checked before validation.

use std::collections::HashMap;

use apollo_compiler::executable::{Field, Operation, Selection, SelectionSet};
use apollo_compiler::{ExecutableDocument, Name, ast};

use trefoil_config::ServerLimits;
use trefoil_engine::arguments::roles::is_length_argument;
use trefoil_model::{Model, RecordType, Scalar, Value};

use crate::document::tokens::tokens;
use crate::plan::input::VariableNode;
use crate::plan::variable_values::VariableValues;
use crate::response_error::ResponseError;

/// The assumed length of a list without a length argument.
const DEFAULT_LIST_LENGTH: u64 = 20;

/// Every token may have this many bytes on average: megabytes of comments or strings cost memory, too.
const BYTES_PER_TOKEN: usize = 256;

/// These lists of types lead to types again, so responses grow exponentially with the nesting. graphql-js has the same
/// limit.
const INTROSPECTION_LIST_FIELDS: [&str; 4] = ["fields", "interfaces", "possibleTypes", "inputFields"];
const MAX_INTROSPECTION_DEPTH: u64 = 3;

pub fn limit_exceeded(
    what: &str,
    found: impl std::fmt::Display,
    allowed: usize,
    setting: &str,
) -> ResponseError {
    let message = format!("{what} is {found}, but limits.{setting} allows at most {allowed}");
    ResponseError::new("LIMIT_EXCEEDED", message)
}

/// Rejects a document by its length.
pub fn check_length(length: usize, limits: &ServerLimits) -> Result<(), ResponseError> {
    if length <= limits.tokens.saturating_mul(BYTES_PER_TOKEN) {
        return Ok(());
    }
    let what = format!("the length of the document in units of {BYTES_PER_TOKEN} bytes");
    Err(limit_exceeded(&what, length.div_ceil(BYTES_PER_TOKEN), limits.tokens, "tokens"))
}

/// Rejects a document by its number of tokens, without storing them.
pub fn check_tokens(text: &str, limits: &ServerLimits) -> Result<(), ResponseError> {
    check_length(text.len(), limits)?;
    if tokens(text).nth(limits.tokens).is_some() {
        let found = format!("over {}", limits.tokens);
        return Err(limit_exceeded("the number of tokens", found, limits.tokens, "tokens"));
    }
    Ok(())
}

/// Depth, aliases and cost of a selection, with fragments counted at every spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SelectionWeight {
    depth: u64,
    aliases: u64,
    cost: u64,
    /// Nesting of type lists in introspection.
    lists: u64,
}

/// True if the cost of an operation depends on its variables.
pub fn depends_on_variables(model: &Model, document: &ExecutableDocument, operation: &Operation) -> bool {
    operation.all_fields(document).any(|field| {
        let record = list_record(model, field);
        let is_variable = |value: &ast::Value| value.as_variable().is_some();
        field.arguments.iter().any(|argument| {
            if let ast::Value::Object(members) = &*argument.value {
                let mut members = members.iter();
                return members.any(|(name, value)| is_length_argument(record, name) && is_variable(value));
            }
            is_variable(&argument.value) && may_hold_length(record, field, &argument.name)
        })
    })
}

/// The type of the records that a field lists.
fn list_record<'m>(model: &'m Model, field: &Field) -> Option<&'m RecordType> {
    let name = field.ty().inner_named_type();
    let record = model.find_record(name).or_else(|| model.connection_node(name));
    record.map(|record| model.record(record))
}

/// True if an argument is the length of a list, or an input object that may contain it.
fn may_hold_length(record: Option<&RecordType>, field: &Field, argument: &str) -> bool {
    let definition = field.definition.argument_by_name(argument);
    let is_leaf = definition.is_none_or(|definition| {
        let scalar = Scalar::from_name(definition.ty.inner_named_type());
        scalar.is_some_and(|scalar| scalar != Scalar::Json)
    });
    !is_leaf || is_length_argument(record, argument)
}

/// Checks an operation. Without `variables`, lists whose length is a variable count once.
pub fn check_operation(
    model: &Model,
    document: &ExecutableDocument,
    operation: &Operation,
    variables: Option<&VariableValues>,
    limits: &ServerLimits,
) -> Result<(), ResponseError> {
    let max_length = limits.max_page_size as u64;
    let mut calculator = WeightCalculator {
        model,
        document,
        variable_definitions: &operation.variables,
        variables,
        max_length,
        fragment_weights: HashMap::new(),
    };
    let weight = calculator.weigh_set(&operation.selection_set, None);
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
        let message = format!(
            "lists of types in an introspection query must be nested less than {MAX_INTROSPECTION_DEPTH} levels deep"
        );
        return Err(ResponseError::new("LIMIT_EXCEEDED", message));
    }
    Ok(())
}

struct WeightCalculator<'a> {
    model: &'a Model,
    document: &'a ExecutableDocument,
    variable_definitions: &'a [VariableNode],
    variables: Option<&'a VariableValues>,
    /// Maximum of a length argument; the engine rejects higher values.
    max_length: u64,
    /// Weights of fragments by name and inherited limit; `None` while a weight is being computed.
    fragment_weights: HashMap<(&'a Name, Option<u64>), Option<SelectionWeight>>,
}

impl<'a> WeightCalculator<'a> {
    /// `limit` is the maximum length of the lists of a connection, from the arguments of the connection field.
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
        let own_length = self.list_length(field);
        let is_list = field.ty().is_list();
        let children = self.weigh_set(&field.selection_set, if is_list { None } else { own_length });
        let aliases = children.aliases.saturating_add(u64::from(field.alias.is_some()));
        let lists = children.lists
            + u64::from(parent == "__Type" && INTROSPECTION_LIST_FIELDS.contains(&field.name.as_str()));
        // Introspection is limited only by its nesting of lists.
        if field.name.starts_with("__") {
            return SelectionWeight { depth: 0, aliases, cost: 0, lists };
        }
        let factor = if is_list { own_length.or(limit).unwrap_or(DEFAULT_LIST_LENGTH) } else { 1 };
        let cost = children.cost.saturating_mul(factor).saturating_add(1);
        SelectionWeight { depth: children.depth.saturating_add(1), aliases, cost, lists }
    }

    fn list_length(&self, field: &Field) -> Option<u64> {
        let record = list_record(self.model, field);
        let lengths = field.definition.arguments.iter().filter_map(|argument| {
            let specified = field.specified_argument_by_name(&argument.name);
            self.argument_length(record, &argument.name, specified.or(argument.default_value.as_ref())?)
        });
        lengths.max().map(|length| length.min(self.max_length))
    }

    /// The length that an argument gives, by itself or inside an input object.
    fn argument_length(&self, record: Option<&RecordType>, name: &str, value: &ast::Value) -> Option<u64> {
        let is_length = is_length_argument(record, name);
        if let ast::Value::Variable(variable) = value {
            let Some(variables) = self.variables else { return is_length.then_some(1) };
            let mut definitions = self.variable_definitions.iter();
            let position = definitions.position(|definition| definition.name == *variable)?;
            return value_length(record, is_length, variables.get(position)?);
        }
        if let ast::Value::Object(members) = value {
            let lengths = members.iter().filter(|(name, _)| is_length_argument(record, name));
            return lengths.filter_map(|(name, value)| self.argument_length(record, name, value)).max();
        }
        value.to_i32().filter(|_| is_length).map(|number| u64::try_from(number).unwrap_or(0))
    }
}

/// The length in the value of a variable.
fn value_length(record: Option<&RecordType>, is_length: bool, value: &Value) -> Option<u64> {
    if let Value::Object(members) = value {
        let lengths = members.iter().filter(|(name, _)| is_length_argument(record, name));
        return lengths.filter_map(|(_, value)| value_length(record, true, value)).max();
    }
    value.as_i64().filter(|_| is_length).map(|number| u64::try_from(number).unwrap_or(0))
}
