//! SQL text for plans, without a database: everything here is pure.

// The differences between the databases.
pub(crate) mod decimal_key;
pub mod dialect;

// What an actor sees.
pub(crate) mod access;

// The statements that read and write records.
pub(crate) mod groups;
pub(crate) mod indexed_predicate;
pub(crate) mod nested_write;
pub(crate) mod predicate_sql;
pub(crate) mod related;
pub(crate) mod search;
pub mod select;
mod sort_sql;
pub mod sql_parameter;
mod where_clause;
pub(crate) mod write;
pub(crate) mod write_many;
pub(crate) mod write_parts;

// The statements of a plan, compiled once per shape.
pub mod compile;

// The rows of a selection with its children.
pub(crate) mod row_batch;

// The queries that explain a broken constraint.
pub(crate) mod constraint_errors;
pub(crate) mod dangling_references;
