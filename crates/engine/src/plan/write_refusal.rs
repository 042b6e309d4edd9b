//! [`WriteRefusal`]: what an actor may not give or cannot be filled in for, in one write.

use trefoil_model::SourceLocation;
use trefoil_model::error::{Error, PathSegment, Result, Violation};

/// Goes before what is invalid: who may not set a field is not told what it should hold.
#[derive(Default)]
pub(super) struct WriteRefusal {
    /// Something must be filled in from the actor, who is anonymous.
    needs_credential: bool,
    violations: Vec<Violation>,
    /// The first rule that refused a part.
    rule: Option<Box<SourceLocation>>,
}

impl WriteRefusal {
    pub fn need_credential(&mut self) {
        self.needs_credential = true;
    }

    pub fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    pub fn check(&mut self) -> Result<()> {
        if self.needs_credential {
            return Err(Error::Unauthenticated { rule: self.rule.take() });
        }
        if self.violations.is_empty() {
            return Ok(());
        }
        Err(Error::Forbidden { violations: std::mem::take(&mut self.violations), rule: self.rule.take() })
    }

    /// Adds what the rule of a field refused.
    pub fn add_refused(&mut self, violation: Violation, rule: Option<Box<SourceLocation>>) {
        self.rule = self.rule.take().or(rule);
        self.violations.push(violation);
    }

    /// Takes over the refusal of a part at this path; gives any other error back.
    pub fn take(&mut self, error: Error, path: &[PathSegment]) -> Option<Error> {
        if self.rule.is_none() {
            self.rule = error.refused_by().cloned().map(Box::new);
        }
        if matches!(error, Error::Unauthenticated { .. }) {
            self.needs_credential = true;
            return None;
        }
        if !matches!(error, Error::Forbidden { .. }) {
            return Some(error);
        }
        self.violations.extend(error.under_path(path).violations().iter().cloned());
        None
    }
}
