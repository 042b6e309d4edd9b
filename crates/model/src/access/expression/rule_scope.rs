//! What a rule may name, and how far its resolution has come.

use apollo_compiler::parser::SourceSpan;
use indexmap::IndexMap;

use crate::access::access_rule::AccessAction;
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_sources::RuleSources;
use crate::access::expression::syntax_part::SyntaxPart;
use crate::values::coerce::{CoercionTypes, coerce_literal};
use crate::{EmbeddedType, EnumType, RecordType, RecordTypeId, StoredValue, Value, ValueType};

/// References in one path.
pub const MAX_REFERENCES: usize = 4;
/// Tests of lists inside each other.
pub const MAX_LIST_TESTS: usize = 2;
/// Comparisons of a rule with those of the rules that it uses.
pub const MAX_COMPARISONS: usize = 64;

/// Words of the language that no field can be called by without `this.` before it.
pub const WORDS: [&str; 9] = ["this", "me", "old", "true", "false", "null", "now", "today", "signedIn"];

/// The names that a rule may use.
#[derive(Clone, Copy)]
pub struct RuleNames<'a> {
    pub records: &'a [RecordType],
    pub enums: &'a IndexMap<String, EnumType>,
    pub embedded: &'a IndexMap<String, EmbeddedType>,
    pub sources: &'a RuleSources,
    /// The type of accounts.
    pub account: Option<RecordTypeId>,
    /// The roles, if an enum lists them.
    pub roles: Option<&'a [String]>,
}

/// Why a rule has no meaning.
#[derive(Debug)]
pub enum RuleResolutionError {
    Mistake(RuleError),
    /// The mistake is in another rule, which is reported where it is written.
    Elsewhere,
}

impl From<RuleError> for RuleResolutionError {
    fn from(error: RuleError) -> RuleResolutionError {
        RuleResolutionError::Mistake(error)
    }
}

pub type Resolved<T> = Result<T, RuleResolutionError>;

pub struct RuleVariable {
    pub name: Option<String>,
    pub record: RecordTypeId,
}

/// Where a rule is written.
#[derive(PartialEq, Clone)]
pub enum RulePlace {
    Named(RecordTypeId, String),
    Action(RecordTypeId, AccessAction),
    /// Where no other rule can use it.
    Alone,
}

pub struct RuleResolver<'a> {
    pub names: RuleNames<'a>,
    pub variables: Vec<RuleVariable>,
    /// The variable that is `this`. Those before it belong to the rules around this one.
    pub first_visible: usize,
    /// The rule itself, and those that are being inserted in it.
    pub expanding: Vec<RulePlace>,
    pub list_tests: usize,
    /// Of the rule and of those that were inserted in it.
    pub comparisons: usize,
    pub allows_old: bool,
    /// What the rule is written in, or that which is being inserted.
    pub literal: Option<SourceSpan>,
    /// The parts that were resolved last, with theirs inside them.
    pub parts: Vec<SyntaxPart>,
}

impl RuleNames<'_> {
    pub fn coerce(&self, value_type: &ValueType, value: &Value) -> Result<StoredValue, String> {
        let types = CoercionTypes { enums: self.enums, embedded: self.embedded };
        coerce_literal(types, value_type, value)
    }
}
