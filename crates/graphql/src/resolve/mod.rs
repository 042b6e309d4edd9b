//! Answers fields through registered resolvers, level by level and in batches.

pub(crate) mod complete;
pub(crate) mod deferred;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod tree;
