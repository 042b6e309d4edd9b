//! Answers `__schema` and `__type` through apollo-compiler, as bytes for each root field that asked.

use apollo_compiler::ExecutableDocument;
use apollo_compiler::executable::{InlineFragment, Operation, Selection, SelectionSet};
use apollo_compiler::introspection::partial_execute;
use apollo_compiler::response::{GraphQLError, JsonMap, ResponseDataPathSegment, serde_json_bytes};
use apollo_compiler::validation::Valid;

use super::document::Prepared;
use super::failure::{Failure, Place};
use super::path::At;
use super::plan::Root;
use super::variables::Variables;
use super::write::{Nulled, Writer, Wrote};
use crate::error::Segment;
use crate::model::Model;

/// What apollo-compiler says.
#[derive(Debug, Clone)]
pub struct Answers {
    /// By response key; nothing where a non-null field failed.
    fields: Vec<(String, Vec<u8>)>,
    failures: Vec<Failure>,
}

impl Answers {
    /// Writes the field and what failed in it.
    pub fn write(&self, writer: &mut Writer, root: &Root, at: At) -> Wrote {
        let own = |failure: &&Failure| match failure.path.first() {
            Some(Segment::Field(name)) => *name == root.label.response,
            Some(Segment::Index(_)) | None => true,
        };
        let failures = writer.failures.len();
        writer.failures.extend(self.failures.iter().filter(own).cloned());
        match self.fields.iter().find(|(key, _)| *key == root.label.response) {
            Some((_, bytes)) => {
                writer.out.extend_from_slice(bytes);
                Ok(())
            }
            None if writer.failures.len() > failures => Err(Nulled),
            None => writer.null(root.required, at),
        }
    }
}

pub fn answer(
    model: &Model,
    document: &Valid<ExecutableDocument>,
    prepared: &Prepared,
    variables: &Variables,
) -> Result<Answers, Failure> {
    let values = Valid::assume_valid(given(prepared, variables));
    let implementers = model.schema.implementers_map();
    let operation = Operation {
        selection_set: only_introspection(document, &prepared.operation.selection_set),
        ..Operation::clone(&prepared.operation)
    };
    let response = partial_execute(&model.schema, &implementers, document, &operation, &values);
    let response = response.map_err(|error| {
        Failure::new("GRAPHQL_VALIDATION_FAILED", error.to_graphql_error(&document.sources).message)
    })?;
    let data = response.data.unwrap_or_default();
    let fields = data.iter().map(|(key, value)| {
        let bytes = serde_json::to_vec(value).expect("JSON is written as JSON");
        (key.as_str().to_owned(), bytes)
    });
    Ok(Answers { fields: fields.collect(), failures: response.errors.into_iter().map(failure).collect() })
}

fn failure(error: GraphQLError) -> Failure {
    let places = error.locations.iter().map(|at| Place { line: at.line, column: at.column });
    let path = error.path.iter().map(|segment| match segment {
        ResponseDataPathSegment::Field(name) => Segment::Field(name.to_string()),
        ResponseDataPathSegment::ListIndex(index) => Segment::Index(*index),
    });
    Failure::new("BAD_USER_INPUT", error.message).at(&places.collect::<Vec<_>>()).on(path.collect())
}

/// The root fields that ask about the schema. The others would be looked at, though not answered: an argument
/// that fails there would spoil these.
fn only_introspection(document: &ExecutableDocument, set: &SelectionSet) -> SelectionSet {
    let mut kept = SelectionSet::new(set.ty.clone());
    for selection in &set.selections {
        let (inner, directives) = match selection {
            Selection::Field(field) => {
                if matches!(field.name.as_str(), "__schema" | "__type") {
                    kept.push(field.clone());
                }
                continue;
            }
            Selection::InlineFragment(fragment) => (&fragment.selection_set, &fragment.directives),
            Selection::FragmentSpread(spread) => match spread.fragment_def(document) {
                Some(fragment) => (&fragment.selection_set, &spread.directives),
                None => continue,
            },
        };
        let selection_set = only_introspection(document, inner);
        let (type_condition, directives) = (Some(inner.ty.clone()), directives.clone());
        kept.push(InlineFragment { type_condition, directives, selection_set });
    }
    kept
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
