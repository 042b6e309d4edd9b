//! What [`crate::migrate::prepare`] has to say, in the words a person at a terminal reads.

use std::fmt;

use crate::migrate::apply::STORE_FORMAT;
use crate::migrate::step_planner::{PlannedStep, StepSafety};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationReport {
    pub steps: Vec<PlannedStep>,
    /// What the schema has no part in and still takes its time, a line each: an index as this version wants it.
    pub index_rebuilds: Vec<String>,
    /// The store never held a record, so seeds are due.
    pub needs_seed: bool,
    /// The steps were taken and are not only planned.
    pub is_applied: bool,
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
    /// The records live elsewhere by now.
    Moved {
        to: String,
        at: String,
    },
    /// A move into this store was begun and not finished.
    IncompleteMove {
        from: String,
    },
    /// Another program's tables stand where ours would.
    NamesTaken(Vec<String>),
    /// Something of ours is not as we left it.
    Damaged(String),
    /// Others have locked what is to be changed: these, as far as it can be told.
    Locked(Vec<String>),
    Database(String),
}

impl MigrationReport {
    /// One line a step, then how to go on. `app` is the application folder to name in the command.
    pub fn to_text(&self, app: Option<&str>) -> String {
        if self.steps.is_empty() && self.index_rebuilds.is_empty() {
            return "Nothing to do: the store fits the schema.\n".to_owned();
        }
        let lines: String = match self.is_applied {
            true => self.steps.iter().map(PlannedStep::done_line).collect(),
            false => self.steps.iter().map(|step| format!("{step}\n")).collect(),
        };
        let lines = self.index_rebuilds.iter().fold(lines, |lines, renewed| lines + renewed + "\n");
        let way_on = match (self.is_applied, self.needs_seed) {
            (true, _) => "Done.".to_owned(),
            (false, true) => "The store is empty: the next start makes all of this.".to_owned(),
            (false, false) => next_action(&self.steps, app),
        };
        format!("{lines}\n{way_on}\n")
    }
}

fn next_action(steps: &[PlannedStep], app: Option<&str>) -> String {
    if steps.iter().any(|step| matches!(step.safety, StepSafety::Blocked { .. })) {
        return "This cannot be applied as it is: see NOT POSSIBLE above.".to_owned();
    }
    if steps.iter().all(|step| step.safety == StepSafety::Safe) {
        return "Nothing is lost: the next start does all of this by itself.".to_owned();
    }
    format!("To apply: {}", apply_command(steps, app))
}

/// `trefoil migrate my-app --apply --allow-drop User.email`
fn apply_command(steps: &[PlannedStep], app: Option<&str>) -> String {
    let app = app.map(|folder| format!(" {folder}")).unwrap_or_default();
    let losses = droppable_names(steps).map(|what| format!(" --allow-drop {what}"));
    format!("trefoil migrate{app} --apply{}", losses.collect::<String>())
}

/// The names that `--allow-drop` takes.
pub fn droppable_names(steps: &[PlannedStep]) -> impl Iterator<Item = &str> {
    steps.iter().filter_map(|step| match &step.safety {
        StepSafety::LosesData { subject: what } => Some(what.as_str()),
        StepSafety::Safe | StepSafety::NeedsApply | StepSafety::Blocked { .. } => None,
    })
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        MigrateError::Database(error.to_string())
    }
}

impl MigrateError {
    /// In words; `app` is the application folder to name in the commands that it tells of.
    pub fn text(&self, app: Option<&str>) -> String {
        struct Words<'a>(&'a MigrateError, Option<&'a str>);
        impl fmt::Display for Words<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, self.1)
            }
        }
        Words(self, app).to_string()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, app: Option<&str>) -> fmt::Result {
        let app = app.map(|folder| format!(" {folder}")).unwrap_or_default();
        match self {
            MigrateError::NeedsMigration(steps) => {
                f.write_str("the schema does not fit the stored data, and nothing was changed:\n")?;
                write_unsafe_steps(f, steps)?;
                write!(f, "`trefoil migrate{app} --plan` shows every step and how to apply it")
            }
            MigrateError::Refused(steps) => {
                f.write_str("not applied, and nothing was changed:\n")?;
                write_unsafe_steps(f, steps)?;
                write!(f, "`trefoil migrate{app} --plan` shows every step")
            }
            MigrateError::UnknownDrop { name, nearest } => {
                write!(f, "--allow-drop {name}: nothing of that name would be lost")?;
                nearest.iter().try_for_each(|nearest| write!(f, "; did you mean {nearest}?"))
            }
            MigrateError::NewerStore { found } => write!(
                f,
                "the store has format {found} and this version of Trefoil knows formats up to {STORE_FORMAT}: \
                 start the newer version that wrote it"
            ),
            MigrateError::Moved { to, at } => write!(
                f,
                "this store was moved to {to} on {at} and takes no more writes: use that one (--database, or --data for \
                 sqlite:FOLDER); `trefoil move{app} --undo` makes this one live again, without what was written there since"
            ),
            MigrateError::IncompleteMove { from } => {
                write!(
                    f,
                    "the move into this store from {from} was not finished: run `trefoil move{app}` there again"
                )
            }
            MigrateError::NamesTaken(names) => write!(
                f,
                "the database is another program's and already has {}: use another database or data folder",
                names.join(", ")
            ),
            MigrateError::Damaged(what) => write!(f, "the store is damaged: {what}"),
            MigrateError::Locked(holders) => {
                f.write_str("the database is in use, and nothing was changed: waited in vain for a lock")?;
                if !holders.is_empty() {
                    write!(f, " that may be held by {}", holders.join(", "))?;
                }
                f.write_str("; end open transactions (pg_terminate_backend) and start again")
            }
            MigrateError::Database(text) => write!(f, "the store could not be prepared: {text}"),
        }
    }
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None)
    }
}

/// The steps that do not go by themselves.
fn write_unsafe_steps(f: &mut fmt::Formatter<'_>, steps: &[PlannedStep]) -> fmt::Result {
    steps.iter().filter(|step| step.safety != StepSafety::Safe).try_for_each(|step| writeln!(f, "  {step}"))
}

impl std::error::Error for MigrateError {}
