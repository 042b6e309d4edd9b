//! The result of a migration and its errors, with their texts for the terminal.

use std::fmt;

use crate::migrate::planned_step::{PlannedStep, StepSafety};
use crate::migrate::stored_model::STORE_FORMAT;

/// The steps of a migration, planned or applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationReport {
    pub steps: Vec<PlannedStep>,
    /// Indexes that this version defines differently and has to rebuild, a line each. They are not a change of the
    /// schema but take time.
    pub index_rebuilds: Vec<String>,
    /// True if the store never held a record, so that it is to be seeded.
    pub needs_seed: bool,
    /// True if the store was created with global ids.
    pub global_ids: bool,
    /// True if the steps were applied, false if they are only planned.
    pub is_applied: bool,
}

/// Why a migration was not applied.
#[derive(Debug)]
pub enum MigrateError {
    /// Some steps need consent before the schema fits the data. Nothing was changed.
    NeedsMigration(Vec<PlannedStep>),
    /// Steps that `--apply` and the given `--allow-drop` do not cover. Nothing was changed.
    Refused(Vec<PlannedStep>),
    /// `--allow-drop` names something that would not lose data.
    UnknownDrop {
        name: String,
        nearest: Option<String>,
    },
    /// A newer version of Trefoil wrote this store.
    NewerStore {
        found: u32,
    },
    /// The records were moved to another store.
    Moved {
        to: String,
        at: String,
    },
    /// A move into this store was not finished.
    IncompleteMove {
        from: String,
    },
    /// Tables of another program have names that the store needs.
    NamesTaken(Vec<String>),
    /// The store's own tables are not as they were left.
    Damaged(String),
    /// Other sessions have locked the tables; lists those that may hold the locks.
    Locked(Vec<String>),
    Database(String),
}

impl MigrationReport {
    /// One line per step, then what to do next. `app` is the application folder to name in the command.
    pub fn to_text(&self, app: Option<&str>) -> String {
        if self.steps.is_empty() && self.index_rebuilds.is_empty() {
            return "Nothing to do: the store matches the schema.\n".to_owned();
        }
        let lines: String = match self.is_applied {
            true => self.steps.iter().map(PlannedStep::done_line).collect(),
            false => self.steps.iter().map(|step| format!("{step}\n")).collect(),
        };
        let lines = self.index_rebuilds.iter().fold(lines, |lines, line| lines + line + "\n");
        let next = match (self.is_applied, self.needs_seed) {
            (true, _) => "Done.".to_owned(),
            (false, true) => "The store is empty: the next start creates all of this.".to_owned(),
            (false, false) => next_action(&self.steps, app),
        };
        format!("{lines}\n{next}\n")
    }
}

fn next_action(steps: &[PlannedStep], app: Option<&str>) -> String {
    if steps.iter().any(|step| matches!(step.safety, StepSafety::Blocked { .. })) {
        return "This cannot be applied: see NOT POSSIBLE above.".to_owned();
    }
    if steps.iter().all(|step| step.safety == StepSafety::Safe) {
        return "No data is lost: the next start applies this automatically.".to_owned();
    }
    format!("To apply: {}", apply_command(steps, app))
}

/// The command that applies the steps: `trefoil migrate my-app --apply --allow-drop User.email`
fn apply_command(steps: &[PlannedStep], app: Option<&str>) -> String {
    let app = app.map(|folder| format!(" {folder}")).unwrap_or_default();
    let losses = droppable_names(steps).map(|name| format!(" --allow-drop {name}"));
    format!("trefoil migrate{app} --apply{}", losses.collect::<String>())
}

/// The names that `--allow-drop` takes.
pub fn droppable_names(steps: &[PlannedStep]) -> impl Iterator<Item = &str> {
    steps.iter().filter_map(|step| match &step.safety {
        StepSafety::LosesData { subject } => Some(subject.as_str()),
        StepSafety::Safe | StepSafety::NeedsApply | StepSafety::Blocked { .. } => None,
    })
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        MigrateError::Database(error.to_string())
    }
}

impl MigrateError {
    /// The message; `app` is the application folder to name in its commands.
    pub fn text(&self, app: Option<&str>) -> String {
        struct ErrorText<'a>(&'a MigrateError, Option<&'a str>);
        impl fmt::Display for ErrorText<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, self.1)
            }
        }
        ErrorText(self, app).to_string()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, app: Option<&str>) -> fmt::Result {
        let app = app.map(|folder| format!(" {folder}")).unwrap_or_default();
        match self {
            MigrateError::NeedsMigration(steps) => {
                f.write_str("the stored data does not match the schema; nothing was changed:\n")?;
                write_unsafe_steps(f, steps)?;
                write!(f, "run `trefoil migrate{app} --plan` to see all steps and how to apply them")
            }
            MigrateError::Refused(steps) => {
                f.write_str("the migration cannot be applied; nothing was changed:\n")?;
                write_unsafe_steps(f, steps)?;
                write!(f, "run `trefoil migrate{app} --plan` to see all steps")
            }
            MigrateError::UnknownDrop { name, nearest } => {
                write!(f, "--allow-drop {name}: the migration drops nothing with this name")?;
                nearest.iter().try_for_each(|nearest| write!(f, "; did you mean {nearest}?"))
            }
            MigrateError::NewerStore { found } => write!(
                f,
                "the store has format {found}, but this version of Trefoil supports only formats up to {STORE_FORMAT}: use a newer version"
            ),
            MigrateError::Moved { to, at } => write!(
                f,
                "this store was moved to {to} on {at} and no longer accepts writes: use the new one (--database, or --data for sqlite:FOLDER), or reactivate this one with `trefoil move{app} --undo`, without later writes to the other"
            ),
            MigrateError::IncompleteMove { from } => {
                write!(
                    f,
                    "the move into this store from {from} is incomplete: run `trefoil move{app}` there again"
                )
            }
            MigrateError::NamesTaken(names) => write!(
                f,
                "the database belongs to another program and already contains {}: use another database or data folder",
                names.join(", ")
            ),
            MigrateError::Damaged(what) => write!(f, "the store is damaged: {what}"),
            MigrateError::Locked(holders) => {
                f.write_str("the database is in use; nothing was changed: timed out waiting for a lock")?;
                if !holders.is_empty() {
                    write!(f, " that may be held by {}", holders.join(", "))?;
                }
                f.write_str("; end open transactions (pg_terminate_backend) and try again")
            }
            MigrateError::Database(text) => write!(f, "cannot prepare the store: {text}"),
        }
    }
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None)
    }
}

/// Writes the steps that need consent or are impossible.
fn write_unsafe_steps(f: &mut fmt::Formatter<'_>, steps: &[PlannedStep]) -> fmt::Result {
    steps.iter().filter(|step| step.safety != StepSafety::Safe).try_for_each(|step| writeln!(f, "  {step}"))
}

impl std::error::Error for MigrateError {}
