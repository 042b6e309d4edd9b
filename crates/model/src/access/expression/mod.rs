//! The language of rules: from the text of an expression to a test of an actor and a record.

// From text to a syntax tree.
pub(super) mod rule_parser;
pub(super) mod rule_syntax;
mod rule_tokens;

// From the syntax tree to a test.
pub(super) mod rule_error;
pub(super) mod rule_literal;
mod rule_mistakes;
mod rule_parts;
mod rule_paths;
pub(super) mod rule_resolver;
pub(super) mod rule_scope;
pub(super) mod rule_sources;
pub(super) mod syntax_part;
pub(super) mod value_kind;
