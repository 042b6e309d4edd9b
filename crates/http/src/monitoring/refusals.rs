//! [`RequestRefusals`]: what was refused of a request, for its log line and the metrics.

use std::fmt::Write as _;

use axum::response::Response;

use trefoil_model::SourceLocation;

use crate::errors::problem::Problem;

/// Beyond so many, those of one request are not told apart.
const MAX_REFUSALS: usize = 8;

const REFUSAL_CODES: [&str; 3] = ["UNAUTHENTICATED", "FORBIDDEN", "NOT_FOUND"];

/// What was refused of a request, by a rule or for want of a credential; each once. Where a handler puts it into the
/// extensions of a response, the service logs and counts it.
#[derive(Debug, Clone, Default)]
pub struct RequestRefusals(Vec<RuleRefusal>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleRefusal {
    code: &'static str,
    rule: Option<SourceLocation>,
}

impl RequestRefusals {
    /// Adds an error, if it is a refusal.
    pub fn add(&mut self, code: &str, rule: Option<&SourceLocation>) {
        let Some(code) = REFUSAL_CODES.into_iter().find(|known| *known == code) else { return };
        // What a rule hides is not there for the caller; what is really not there was not refused.
        if code == "NOT_FOUND" && rule.is_none() {
            return;
        }
        let refusal = RuleRefusal { code, rule: rule.cloned() };
        if self.0.len() < MAX_REFUSALS && !self.0.contains(&refusal) {
            self.0.push(refusal);
        }
    }

    pub fn of_problem(problem: &Problem) -> RequestRefusals {
        let mut refusals = RequestRefusals::default();
        refusals.add(&problem.code, problem.refused_by.as_deref());
        refusals
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves it to the service to log and count them.
    pub fn attach(self, response: &mut Response) {
        if !self.is_empty() {
            response.extensions_mut().insert(self);
        }
    }

    /// The codes, for the metrics.
    pub(super) fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|refusal| refusal.code)
    }

    /// The rules, for the log: `graphql/blog.graphqls:12`.
    pub fn rules(&self) -> Option<String> {
        let mut text = String::new();
        for rule in self.0.iter().filter_map(|refusal| refusal.rule.as_ref()) {
            let separator = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{separator}{rule}");
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_told_once() {
        let at = |line| SourceLocation { file: "graphql/a.graphqls".to_owned(), line, column: 3 };
        let mut refusals = RequestRefusals::default();
        refusals.add("NOT_FOUND", None);
        assert!(refusals.is_empty() && refusals.rules().is_none());
        refusals.add("UNAUTHENTICATED", None);
        assert_eq!(refusals.rules(), None);
        for line in [1, 1, 2] {
            refusals.add("FORBIDDEN", Some(&at(line)));
        }
        assert_eq!(refusals.rules().as_deref(), Some("graphql/a.graphqls:1, graphql/a.graphqls:2"));
        (3..100).for_each(|line| refusals.add("FORBIDDEN", Some(&at(line))));
        assert_eq!(refusals.codes().count(), MAX_REFUSALS);
    }
}
