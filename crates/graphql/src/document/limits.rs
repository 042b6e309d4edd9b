//! Limits of a document: tokens, depth, aliases and cost, checked before validation.

use apollo_compiler::ExecutableDocument;
use apollo_compiler::executable::Operation;

use trefoil_config::ServerLimits;
use trefoil_engine::{Engine, RelationLengths};

use crate::document::costliest_field::{CostliestField, find_costliest_field};
use crate::document::operation_weight::{OperationWeight, WeightCalculator};
use crate::document::tokens::tokens;
use crate::plan::variable_values::VariableValues;
use crate::response_error::ResponseError;

/// Every token may have this many bytes on average: megabytes of comments or strings cost memory, too.
const BYTES_PER_TOKEN: usize = 256;

/// As in graphql-js, see [`OperationWeight::introspection_lists`].
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

/// Checks depth, aliases and introspection of an operation.
pub fn check_weight(weight: &OperationWeight, limits: &ServerLimits) -> Result<(), ResponseError> {
    let rows = [
        ("the depth of the operation", weight.depth, limits.depth, "depth"),
        ("the number of aliases", weight.aliases, limits.aliases, "aliases"),
    ];
    for (what, found, allowed, setting) in rows {
        if found > allowed as u64 {
            return Err(limit_exceeded(what, found, allowed, setting));
        }
    }
    if weight.introspection_lists >= MAX_INTROSPECTION_DEPTH {
        let message = format!(
            "lists of types in an introspection query must be nested less than {MAX_INTROSPECTION_DEPTH} levels deep"
        );
        return Err(ResponseError::new("LIMIT_EXCEEDED", message));
    }
    Ok(())
}

/// Checks the cost of an operation: first with the greatest length that a list without a limit counts, then with the
/// average ones that the store knows. Without `variables`, lists whose length is a variable count once.
pub fn check_cost(
    engine: &Engine,
    document: &ExecutableDocument,
    operation: &Operation,
    (weight, variables): (&OperationWeight, Option<&VariableValues>),
    limits: &ServerLimits,
) -> Result<(), ResponseError> {
    if weight.cost(variables) <= limits.cost as u64 {
        return Ok(());
    }
    let (model, lengths) = (engine.model(), engine.relation_lengths());
    let found = OperationWeight::new(model, document, operation, limits, &lengths).cost(variables);
    if found <= limits.cost as u64 {
        return Ok(());
    }
    let mut error = limit_exceeded("the cost of the operation", found, limits.cost, "cost");
    let calculator = WeightCalculator::new(model, document, operation, limits, &lengths);
    if let Some(CostliestField { path, percentage }) = find_costliest_field(calculator, operation, variables)
    {
        error.message +=
            &format!("; {percentage} % of it is `{path}`: ask for fewer records there, or less of each");
    }
    let least = OperationWeight::new(model, document, operation, limits, &RelationLengths::shortest());
    Err(ResponseError { is_estimate: least.cost(variables) <= limits.cost as u64, ..error })
}
