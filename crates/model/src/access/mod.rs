//! Who may do what: the rules of a schema, in `@allow`, `@account` and `@rule`.
//!
//! A rule is an expression about a record and the actor who asks for it: `published || author == me`. Its text is parsed
//! into a syntax tree, and names and types are resolved into a [`RuleTest`].

// From text to a syntax tree.
mod rule_parser;
mod rule_syntax;
mod rule_tokens;

// From the syntax tree to a test.
mod rule_error;
mod rule_mistakes;
mod rule_paths;
mod rule_resolver;
mod rule_scope;
mod rule_sources;
mod value_kind;

// From the directives of a schema to its rules.
mod access_directives;
mod access_model;
mod access_rule;
mod access_warnings;
mod actor_fields;
mod actor_rule;
mod hidden_fields;
mod rule_literal;

// The rules for one actor.
mod rule_constants;
mod rule_folding;

pub(crate) use crate::access::access_directives::read_access;
pub use crate::access::access_model::{
    AccessModel, AccessRule, AccountType, FieldAccess, ListAccess, TypeAccess,
};
pub use crate::access::access_rule::{AccessAction, ActorPath, RecordPath, RuleTest, RuleValue};
pub(crate) use crate::access::actor_fields::read_actor_fields;
pub(crate) use crate::access::hidden_fields::{make_nullable, mark_hidden_fields};
pub use crate::access::rule_error::RuleError;
pub use crate::access::rule_folding::{AccessVerdict, ActorFact, ActorFacts};
pub(crate) use crate::access::rule_literal::source_range;
