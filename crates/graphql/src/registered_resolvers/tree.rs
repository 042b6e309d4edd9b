//! The results of registered resolvers, stored until the response is written.

use std::sync::Arc;

use trefoil_engine::OwnedRow;
use trefoil_model::Value;
use trefoil_model::error::Error;

use crate::plan::shape::{AbstractShape, ObjectShape};

/// A resolved value of the response.
pub enum ResolvedTree {
    /// A value without further resolvers.
    Value(Value),
    Failed(Error),
    /// A value that the declared type cannot represent.
    Invalid(String),
    Node(Box<ResolvedNode>),
    List(Vec<ResolvedTree>),
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
