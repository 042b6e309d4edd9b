//! The state of planning one operation.

use std::collections::HashMap;
use std::sync::Arc;

use apollo_compiler::ExecutableDocument;

use trefoil_engine::Engine;
use trefoil_model::error::PathSegment;

use crate::plan::input::VariableNode;
use crate::plan::shape::ObjectShape;
use crate::plan::variable_values::VariableValues;
use crate::response_error::ResponseError;

/// The state of planning; `variables` are used for `@skip`, `@include` and arguments of relations.
pub struct OperationPlanner<'a> {
    pub engine: &'a Engine,
    pub document: &'a ExecutableDocument,
    pub variable_definitions: &'a [VariableNode],
    pub variables: &'a VariableValues,
    pub single_use: bool,
    /// Number of fields planned so far.
    pub field_count: usize,
    /// Conflicting arguments that validation does not detect.
    pub conflict: Option<ResponseError>,
    pub objects: HashMap<(String, Vec<usize>), Arc<ObjectShape>>,
    /// The response keys of the fields around the current one, and its own.
    pub path: Vec<&'a str>,
    /// The first mistake in what is selected of the current root field.
    pub mistake: Option<ResponseError>,
}

impl<'a> OperationPlanner<'a> {
    /// Plans what is inside a field.
    pub fn inside<T>(&mut self, response_key: &'a str, plan: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(response_key);
        let planned = plan(self);
        self.path.pop();
        planned
    }

    /// Remembers a mistake at the current field: a write must not begin before it is told.
    pub fn note_mistake(&mut self, mistake: &ResponseError) {
        let path = self.path.iter().map(|key| PathSegment::Field((*key).to_owned()));
        self.mistake.get_or_insert_with(|| mistake.clone().with_path(path.collect()));
    }
}
