//! Rules about the actor alone that are written outside of the schema.

use std::collections::BTreeSet;

use crate::Model;
use crate::ValueType;
use crate::access::access_rule::RuleTest;
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_parser::parse_rule;
use crate::access::expression::rule_resolver::resolve_actor_rule;
use crate::access::expression::rule_scope::{RuleNames, RuleResolutionError};
use crate::access::expression::rule_sources::{RuleSource, RuleSources, WrittenRule};

impl Model {
    /// The test of a rule about the actor alone, such as `role(EDITOR)`. The roles that it names are known from then on.
    pub fn read_actor_rule(&mut self, text: &str) -> Result<RuleTest, RuleError> {
        let rule = RuleSource { rule: WrittenRule::Expression(parse_rule(text)?), literal: None };
        let sources = RuleSources::default();
        let account = self.access.as_ref().and_then(|access| access.account.as_ref());
        let role_type = account.and_then(|account| {
            let field = self.record(account.record).field(account.roles?);
            field.kind.value_type().map(ValueType::innermost)
        });
        let declared = role_type.and_then(|ty| self.enums.get(ty.enum_name()?));
        let names = RuleNames {
            records: &self.records,
            enums: &self.enums,
            embedded: &self.embedded,
            sources: &sources,
            account: account.map(|account| account.record),
            roles: declared.map(|roles| roles.values.as_slice()),
        };
        let has_declared = declared.is_some();
        let resolved = resolve_actor_rule(names, &rule);
        let test = resolved.map(|part| part.test).map_err(|failure| match failure {
            RuleResolutionError::Mistake(error) => error,
            RuleResolutionError::Elsewhere => RuleError::syntax(0..text.len(), "this rule has no meaning"),
        })?;
        if let Some(access) = self.access.as_mut().filter(|_| !has_declared) {
            let mut roles: BTreeSet<String> = access.roles.drain(..).collect();
            test.collect_roles(&mut roles);
            access.roles.extend(roles);
        }
        Ok(test)
    }
}
