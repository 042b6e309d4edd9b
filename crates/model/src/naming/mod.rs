//! Names derived from schema names: tables, columns, paths, labels, operations, plurals, and suggestions for misspelt ones.

pub mod inflection;
pub mod names;
