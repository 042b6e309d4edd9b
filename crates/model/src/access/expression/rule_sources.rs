//! The rules of a schema as they are written, by the type and action that they are for.

use std::collections::HashMap;
use std::rc::Rc;

use apollo_compiler::parser::SourceSpan;

use crate::access::access_rule::AccessAction;
use crate::access::expression::rule_syntax::SyntaxNode;
use crate::{FieldId, RecordTypeId};

/// A rule as it is written in the argument of a directive.
#[derive(Debug)]
pub enum WrittenRule {
    Constant(bool),
    Expression(SyntaxNode),
}

/// A rule and the literal that it was read from.
#[derive(Debug)]
pub struct RuleSource {
    pub rule: WrittenRule,
    pub literal: Option<SourceSpan>,
}

/// The arguments of one `@allow`: the more particular one counts.
#[derive(Debug, Default)]
pub struct AllowArguments(pub HashMap<&'static str, Rc<RuleSource>>);

impl AllowArguments {
    /// The rule for an action; `updateTo` has none unless it is written.
    pub fn rule(&self, action: AccessAction) -> Option<&Rc<RuleSource>> {
        let names: &[&str] = match action {
            AccessAction::Read => &["read", "all"],
            AccessAction::Create => &["create", "write", "all"],
            AccessAction::Update => &["update", "write", "all"],
            AccessAction::UpdateTo => &["updateTo"],
            AccessAction::Delete => &["delete", "write", "all"],
        };
        names.iter().find_map(|name| self.0.get(name))
    }
}

/// All rules of a schema.
#[derive(Debug, Default)]
pub struct RuleSources {
    pub schema: AllowArguments,
    pub types: HashMap<RecordTypeId, AllowArguments>,
    pub fields: HashMap<(RecordTypeId, FieldId), AllowArguments>,
    /// `@rule` by type and name.
    pub named: HashMap<(RecordTypeId, String), Rc<RuleSource>>,
}

impl RuleSources {
    pub fn named_rule(&self, record: RecordTypeId, name: &str) -> Option<&Rc<RuleSource>> {
        self.named.get(&(record, name.to_owned()))
    }

    /// The rules of which one must hold: that of the type and that of the schema. None: nobody is allowed.
    pub fn rules_for(&self, record: RecordTypeId, action: AccessAction) -> Vec<Rc<RuleSource>> {
        let own = self.types.get(&record).and_then(|arguments| arguments.rule(action));
        // A literal `false` holds against the rule of the schema too.
        if own.is_some_and(|own| matches!(own.rule, WrittenRule::Constant(false))) {
            return Vec::new();
        }
        // A schema has no rule of its own for records as they would be: whom it lets update, it lets update to anything.
        let everywhere = if action == AccessAction::UpdateTo { AccessAction::Update } else { action };
        own.into_iter().chain(self.schema.rule(everywhere)).cloned().collect()
    }
}
