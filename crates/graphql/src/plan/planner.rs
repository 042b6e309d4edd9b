//! The state of planning one operation.

use std::collections::HashMap;
use std::sync::Arc;

use apollo_compiler::ExecutableDocument;

use trefoil_engine::Engine;

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
}
