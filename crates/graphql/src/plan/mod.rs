//! Plans an operation: root fields, object shapes, merged selections, arguments and variables.

pub(crate) mod collect;
pub(crate) mod input;
pub(crate) mod objects;
pub(crate) mod roots;
pub(crate) mod shape;
pub(crate) mod variables;
