//! A GraphQL document from its text: parsed, validated, checked against limits, cached.

// Documents by their text, and the first look at it.
pub(crate) mod cache;
pub(crate) mod tokens;

// Parsing and validation; `rules` corrects apollo-compiler where graphql-js differs.
pub(crate) mod parse;
pub(crate) mod rules;
pub(crate) mod suggest;

// Depth, cost and size.
mod costliest_field;
pub(crate) mod limits;
mod operation_weight;
