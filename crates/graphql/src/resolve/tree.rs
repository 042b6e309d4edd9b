//! What registered resolvers gave, kept until it is written.

use std::sync::Arc;

use trefoil_engine::OwnedRow;
use trefoil_model::Value;
use trefoil_model::error::Error;

use crate::plan::shape::{AbstractShape, ObjectShape};

/// A resolved place of the answer.
pub enum ResolvedTree {
    /// Completed as it is: nothing in it needs a resolver.
    Value(Value),
    Failed(Error),
    /// A value that the declared type cannot represent.
    Invalid(String),
    Node(Box<ResolvedNode>),
    List(Vec<ResolvedTree>),
}

/// An object with those of its fields that resolvers answered.
pub struct ResolvedNode {
    pub shape: Arc<ObjectShape>,
    pub source: NodeSource,
    /// By position in the shape, ascending.
    pub resolved: Vec<(usize, ResolvedTree)>,
}

/// What the other fields are read from.
pub enum NodeSource {
    Row(OwnedRow),
    Value(Value),
}

impl AbstractShape {
    /// The shape for the type that the value names.
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
