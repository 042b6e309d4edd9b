//! One step of a migration, and the consent that it needs.

use std::fmt;

/// One change, described for the person who applies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The field or type: `User.email`, `User`.
    pub subject: String,
    /// The change and the number of records it affects.
    pub description: String,
    pub safety: StepSafety,
}

/// The consent that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSafety {
    /// None: the step is applied at start.
    Safe,
    /// `trefoil migrate --apply`.
    NeedsApply,
    /// `--apply` with `--allow-drop` and this name.
    LosesData { subject: String },
    /// The step is impossible with the stored records; `remedy` tells what to change.
    Blocked { remedy: String },
}

impl PlannedStep {
    /// The line that reports the applied step.
    pub fn done_line(&self) -> String {
        format!("{}: {}\n", self.subject, self.description)
    }
}

impl fmt::Display for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.description)?;
        match &self.safety {
            StepSafety::Safe => Ok(()),
            StepSafety::NeedsApply => f.write_str("  [needs --apply]"),
            StepSafety::LosesData { subject } => {
                write!(f, "  [LOSS: needs --apply --allow-drop {subject}]")
            }
            StepSafety::Blocked { remedy } => write!(f, "  [NOT POSSIBLE: {remedy}]"),
        }
    }
}
