//! A GraphQL document from its text: parsed, validated, held against the limits and cached.

pub(crate) mod cache;
pub(crate) mod limits;
pub(crate) mod parse;
pub(crate) mod rules;
pub(crate) mod suggest;
pub(crate) mod tokens;
