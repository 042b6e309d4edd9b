//! What registered resolvers gave, kept until it is written.

use std::sync::Arc;

use crate::plan::shape::{Abstract, Object};
use trefoil_engine::OwnedRow;
use trefoil_model::Value;
use trefoil_model::error::Error;

/// A resolved place of the answer.
pub enum Tree {
    /// Completed as it is: nothing in it needs a resolver.
    Value(Value),
    Failed(Error),
    /// A value that the declared type cannot represent.
    Wrong(String),
    Node(Box<Node>),
    List(Vec<Tree>),
}

/// An object with those of its fields that resolvers answered.
pub struct Node {
    pub shape: Arc<Object>,
    pub source: Source,
    /// By position in the shape, ascending.
    pub resolved: Vec<(usize, Tree)>,
}

/// What the other fields are read from.
pub enum Source {
    Row(OwnedRow),
    Value(Value),
}

impl Abstract {
    /// The shape for the type that the value names.
    pub fn of_value(&self, value: &Value) -> Result<&Arc<Object>, String> {
        match value.get("__typename") {
            Some(Value::String(name)) => self.named(name),
            _ => Err(format!(
                "Abstract type \"{}\" must resolve to an Object type at runtime; give the value a `__typename`.",
                self.name
            )),
        }
    }

    pub fn named(&self, name: &str) -> Result<&Arc<Object>, String> {
        let found = self.possible.iter().find(|object| object.type_name == name);
        found.ok_or_else(|| {
            format!("Runtime Object type \"{name}\" is not a possible type for \"{}\".", self.name)
        })
    }
}
