//! What [`super::prepare`] has to say, in the words a person at a terminal reads.

use std::fmt;

use super::apply::FORMAT;
use super::survey::{PlannedStep, Safety};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub steps: Vec<PlannedStep>,
    /// The store was empty, so seeds are due.
    pub fresh: bool,
    /// The steps were taken and are not only planned.
    pub done: bool,
}

#[derive(Debug)]
pub enum MigrateError {
    /// The schema does not fit the data without a word from someone. Nothing was changed.
    NeedsMigration(Vec<PlannedStep>),
    /// `--apply` was not enough for these. Nothing was changed.
    Refused(Vec<PlannedStep>),
    /// `--allow-drop` with a name that nothing would be lost of.
    UnknownDrop {
        name: String,
        nearest: Option<String>,
    },
    /// A newer version of Trefoil wrote this store.
    NewerStore {
        found: u32,
    },
    /// Another program's tables stand where ours would.
    NamesTaken(Vec<String>),
    /// Something of ours is not as we left it.
    Damaged(String),
    Database(String),
}

/// One line a step, then how to go on.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("Nothing to do: the store fits the schema.");
        }
        for step in &self.steps {
            match self.done {
                true => writeln!(f, "{}: {}", step.subject, step.description)?,
                false => writeln!(f, "{step}")?,
            }
        }
        match (self.done, self.fresh) {
            (true, _) => f.write_str("\nDone."),
            (false, true) => f.write_str("\nThe store is empty: the next start makes all of this."),
            (false, false) => write!(f, "\n{}", way_on(&self.steps)),
        }
    }
}

fn way_on(steps: &[PlannedStep]) -> String {
    if steps.iter().any(|step| matches!(step.safety, Safety::Blocked { .. })) {
        return "This cannot be applied as it is: see NOT POSSIBLE above.".to_owned();
    }
    if steps.iter().all(|step| step.safety == Safety::Safe) {
        return "Nothing is lost: the next start does all of this by itself.".to_owned();
    }
    format!("To apply: {}", command(steps))
}

/// `trefoil migrate --apply --allow-drop User.email`
fn command(steps: &[PlannedStep]) -> String {
    let losses = losses(steps).map(|what| format!(" --allow-drop {what}"));
    format!("trefoil migrate --apply{}", losses.collect::<String>())
}

/// The names that `--allow-drop` takes.
pub fn losses(steps: &[PlannedStep]) -> impl Iterator<Item = &str> {
    steps.iter().filter_map(|step| match &step.safety {
        Safety::Loses { what } => Some(what.as_str()),
        Safety::Safe | Safety::NeedsApply | Safety::Blocked { .. } => None,
    })
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        MigrateError::Database(error.to_string())
    }
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::NeedsMigration(steps) => {
                f.write_str("the schema does not fit the stored data, and nothing was changed:\n")?;
                unsettled(f, steps)?;
                f.write_str("`trefoil migrate --plan` shows every step and how to apply it")
            }
            MigrateError::Refused(steps) => {
                f.write_str("not applied, and nothing was changed:\n")?;
                unsettled(f, steps)?;
                f.write_str("`trefoil migrate --plan` shows every step")
            }
            MigrateError::UnknownDrop { name, nearest } => {
                write!(f, "--allow-drop {name}: nothing of that name would be lost")?;
                nearest.iter().try_for_each(|nearest| write!(f, "; did you mean {nearest}?"))
            }
            MigrateError::NewerStore { found } => write!(
                f,
                "the store has format {found} and this version of Trefoil knows formats up to {FORMAT}: \
                 start the newer version that wrote it"
            ),
            MigrateError::NamesTaken(names) => write!(
                f,
                "the database is another program's and already has {}: use another database or data folder",
                names.join(", ")
            ),
            MigrateError::Damaged(what) => write!(f, "the store is damaged: {what}"),
            MigrateError::Database(text) => write!(f, "the store could not be prepared: {text}"),
        }
    }
}

/// The steps that do not go by themselves.
fn unsettled(f: &mut fmt::Formatter<'_>, steps: &[PlannedStep]) -> fmt::Result {
    steps.iter().filter(|step| step.safety != Safety::Safe).try_for_each(|step| writeln!(f, "  {step}"))
}

impl std::error::Error for MigrateError {}
