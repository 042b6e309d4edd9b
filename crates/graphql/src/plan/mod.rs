//! Plans an operation: root fields, object shapes, arguments and variables.

// Root fields and the objects below them.
pub(crate) mod abstract_root;
pub(crate) mod collect;
pub(crate) mod objects;
pub(crate) mod planner;
pub(crate) mod related_connection;
pub(crate) mod roots;
pub(crate) mod shape;

// Arguments, with the places of variables in them, and the variables of a request.
pub(crate) mod groups;
pub(crate) mod input;
pub(crate) mod variable_values;
pub(crate) mod variables;
