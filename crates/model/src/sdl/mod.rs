//! Reads SDL files into a [`Model`](crate::Model), with a diagnostic for every mistake.

// The entry point, which runs the stages below.
pub(crate) mod parse;

// Syntax and GraphQL rules.
mod graphql_errors;
pub(crate) mod merge_extensions;
pub(crate) mod syntax_errors;

// What a schema for another server has besides, or leaves out.
pub(crate) mod implied_types;

// Operations from types alone.
pub(crate) mod generate;

// Types and root fields.
pub(crate) mod record_keys;
pub(crate) mod record_types;
pub(crate) mod relations;
pub(crate) mod root_fields;

// What pages show.
pub(crate) mod display;

// Checks that need all types.
pub(crate) mod default_values;
pub(crate) mod schema_checks;

// The directives of Trefoil, and suggested declarations of unknown ones.
pub mod directives;

// Paths that record types may be served at.
pub mod resource_paths;

// Diagnostics with their positions.
pub(crate) mod diagnostic_log;
pub mod schema_warning;
pub(crate) mod unstored_fields;
