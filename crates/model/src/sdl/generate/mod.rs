//! Operations from types alone: writes the root fields that a schema does not declare, with the types that they need.
//!
//! The result is SDL, read like a file of the application. So nothing else knows which operations are generated.

// Which operations are wanted, and of which record types.
mod generated_operations;

// The operations of a record type, and the types of their arguments and results.
mod aggregate_types;
mod generated_type;
mod input_types;
mod nested_types;
mod operations;
mod result_types;
mod where_types;

// Types with the names of generated ones that the schema declares itself.
mod declared_types;

// All of it together.
mod definitions;

pub(crate) use crate::sdl::generate::definitions::generated_definitions;
pub(crate) use crate::sdl::generate::generated_operations::read_request;

/// The name of the generated part among the files of a schema.
pub(crate) const GENERATED_FILE: &str = "(generated)";
