//! Answers `__schema` and `__type` through apollo-compiler, as bytes for each root field that asked.

use apollo_compiler::ExecutableDocument;
use apollo_compiler::introspection::partial_execute;
use apollo_compiler::response::{JsonMap, serde_json_bytes};
use apollo_compiler::validation::Valid;

use super::document::Prepared;
use super::failure::Failure;
use super::variables::Variables;
use crate::model::Model;

/// By response key.
pub type Answers = Vec<(String, Vec<u8>)>;

pub fn answer(
    model: &Model,
    document: &Valid<ExecutableDocument>,
    prepared: &Prepared,
    variables: &Variables,
) -> Result<Answers, Failure> {
    let values = Valid::assume_valid(given(prepared, variables));
    let implementers = model.schema.implementers_map();
    let response = partial_execute(&model.schema, &implementers, document, &prepared.operation, &values);
    let response = response.map_err(|error| {
        Failure::new("GRAPHQL_VALIDATION_FAILED", error.to_graphql_error(&document.sources).message)
    })?;
    let data = response.data.unwrap_or_default();
    let answers = data.iter().map(|(key, value)| {
        let bytes = serde_json::to_vec(value).expect("JSON is written as JSON");
        (key.as_str().to_owned(), bytes)
    });
    Ok(answers.collect())
}

/// Already coerced, so apollo-compiler need not judge them again.
fn given(prepared: &Prepared, variables: &Variables) -> JsonMap {
    let values = prepared.declared.iter().zip(variables.iter());
    let given = values.filter_map(|(declared, value)| {
        let mut out = Vec::new();
        super::complete::json(&mut out, value?);
        let value: serde_json_bytes::Value = serde_json::from_slice(&out).ok()?;
        Some((declared.name.as_str().into(), value))
    });
    given.collect()
}
