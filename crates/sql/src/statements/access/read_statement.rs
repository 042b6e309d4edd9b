//! [`ReadStatement`]: a statement that reads no more than an actor can see.

use trefoil_engine::AccessView;

use crate::statements::access::rule_parameters::RuleName;
use crate::statements::sql_parameter::SqlParameter;

/// A statement with the rules that it asks, whose values follow its own parameters.
#[derive(Debug, Clone, Default)]
pub struct ReadStatement {
    pub sql: String,
    pub rules: Vec<RuleName>,
}

impl ReadStatement {
    /// A statement that asks no rules, or that is not for a request.
    pub fn plain(sql: String) -> ReadStatement {
        ReadStatement { sql, rules: Vec::new() }
    }

    /// Appends the values of its rules.
    pub fn add_parameters<'a>(&self, view: Option<&'a AccessView>, into: &mut Vec<SqlParameter<'a>>) {
        let Some(view) = view else { return };
        for rule in &self.rules {
            rule.add_values(view, into);
        }
    }
}
