//! Resolves fields that have registered resolvers, level by level and in batches.

// The run and the work it defers to the next level.
mod connections;
pub(crate) mod deferred;
pub(crate) mod run;

// Its results: rows, values, and the tree that is written as JSON.
pub(crate) mod complete;
pub(crate) mod resolved_tree;
pub(crate) mod rows;
