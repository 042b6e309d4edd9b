//! Reads SDL files into the model: parsing, record types, relations, root fields, directives, checks, and every diagnostic of it.

pub(crate) mod default_values;
pub(crate) mod diagnostic_log;
pub(crate) mod directive_declaration;
pub mod directives;
pub(crate) mod graphql_errors;
pub(crate) mod merge_extensions;
pub(crate) mod parse;
pub(crate) mod record_types;
pub(crate) mod relations;
pub mod resource_paths;
pub(crate) mod root_fields;
pub(crate) mod schema_checks;
pub mod schema_warning;
pub(crate) mod syntax_errors;
pub(crate) mod unstored_fields;
