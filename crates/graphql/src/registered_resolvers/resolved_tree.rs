//! The results of registered resolvers, stored until the response is written.

use std::sync::Arc;

use trefoil_engine::OwnedRow;
use trefoil_model::Value;
use trefoil_model::error::Error;

use crate::plan::shape::{AbstractShape, FieldShape, ObjectShape, RelatedConnection};

/// A resolved value of the response.
pub enum ResolvedTree {
    /// A value without further resolvers.
    Value(Value),
    Failed(Error),
    /// A value that the declared type cannot represent.
    Invalid(String),
    Node(Box<ResolvedNode>),
    List(Vec<ResolvedTree>),
    Connection(Box<ResolvedConnection>),
}

/// The related records of a row in a connection, with their resolved fields.
pub struct ResolvedConnection {
    pub related: Arc<RelatedConnection>,
    pub parent: OwnedRow,
    /// For each record on the page, a node for each shape in which it is written.
    pub nodes: Vec<Vec<ResolvedNode>>,
    pub fields: ResolvedFields,
}

/// The results of registered resolvers of types around records: one for each, or one for each edge.
#[derive(Default)]
pub struct ResolvedFields(pub Vec<(Arc<FieldShape>, Vec<ResolvedTree>)>);

impl ResolvedFields {
    pub fn add(&mut self, field: Arc<FieldShape>, trees: Vec<ResolvedTree>) {
        self.0.push((field, trees));
    }
}

/// An object with its resolved fields.
pub struct ResolvedNode {
    pub shape: Arc<ObjectShape>,
    pub source: NodeSource,
    /// By position in the shape, ascending.
    pub resolved: Vec<(usize, ResolvedTree)>,
}

/// The source of the fields without a resolver.
pub enum NodeSource {
    Row(OwnedRow),
    Value(Value),
}

impl AbstractShape {
    /// The shape for the value's `__typename`.
    pub fn shape_for_value(&self, value: &Value) -> Result<&Arc<ObjectShape>, String> {
        match value.get("__typename") {
            Some(Value::String(name)) => self.shape_named(name),
            _ => Err(format!(
                "Abstract type \"{}\" must resolve to an Object type at runtime; give the value a `__typename`.",
                self.name
            )),
        }
    }

    pub fn shape_named(&self, name: &str) -> Result<&Arc<ObjectShape>, String> {
        let found = self.possible_types.iter().find(|object| object.type_name == name);
        found.ok_or_else(|| {
            format!("Runtime Object type \"{name}\" is not a possible type for \"{}\".", self.name)
        })
    }
}
