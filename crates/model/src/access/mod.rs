//! Who may do what: the rules of a schema, in `@allow`, `@account` and `@rule`.
//!
//! A rule is an expression about a record and the actor who asks for it: `published || author == me`. Its text is parsed
//! into a syntax tree, and names and types are resolved into a [`RuleTest`].

// From text to a test.
mod expression;

// From the directives of a schema to its rules.
mod access_directives;
mod access_model;
mod access_rule;
mod access_warnings;
mod actor_fields;
mod actor_rule;
mod actor_types;
mod hidden_fields;
mod ruled_fields;

// The rules for one actor.
mod rule_constants;
mod rule_folding;

pub(crate) use crate::access::access_directives::read_access;
pub use crate::access::access_model::{
    AccessModel, AccessRule, AccountType, FieldAccess, ListAccess, TypeAccess,
};
pub use crate::access::access_rule::{
    AccessAction, ActorPath, ClaimValue, PartJoin, RecordPath, RulePart, RuleTest, RuleValue,
};
pub(crate) use crate::access::actor_fields::read_actor_fields;
pub use crate::access::expression::rule_error::RuleError;
pub(crate) use crate::access::expression::rule_literal::source_range;
pub(crate) use crate::access::hidden_fields::{make_nullable, mark_hidden_fields};
pub use crate::access::rule_constants::TextComparison;
pub use crate::access::rule_folding::{AccessVerdict, ActorFact, ActorFacts};
