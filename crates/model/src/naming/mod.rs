//! Names derived from names in the schema: tables, columns, paths, labels, operations and plurals.

// The derived names, and suggestions for misspelt ones.
pub mod names;
mod nearest_name;
pub mod operation_verbs;

// Plural and singular of English nouns.
pub mod inflection;
