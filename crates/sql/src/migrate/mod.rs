//! Brings a database to the tables of a model, or reports why it cannot and what to do.
//!
//! A [`StoredModel`] describes the tables of a model and is recorded in the store. A migration pairs the
//! recorded one with the new one (`model_pairs`), lists the changes (`diff`), decides by the rows which
//! of them are safe (`step_planner`) and applies them (`apply`).
//!
//! All of that is the same on every database. `migration_database` is the trait for what differs;
//! `sqlite` and `postgres` implement it.

// From two models to a list of steps.
pub(crate) mod stored_model;

pub(crate) mod model_pairs;

pub(crate) mod diff;

pub(crate) mod planned_step;

pub(crate) mod migration_planner;

pub(crate) mod report;

// The texts of the steps.
pub(crate) mod phrases;

// Applying the steps.
pub(crate) mod apply;

pub(crate) mod create_statements;

pub(crate) mod type_converter;

pub(crate) mod column_rewrite;

pub(crate) mod log_images;

// The databases.
pub(crate) mod migration_database;

pub mod postgres;
pub(crate) mod sqlite;

// Tables for rows that are copied from another store.
pub(crate) mod transfer_tables;

use trefoil_model::naming::names;
use trefoil_model::{Model, StoredValue};

pub(crate) use crate::migrate::apply::MARK_SEEDED;
pub(crate) use crate::migrate::create_statements::{quote_name, quote_text};
use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::migration_planner::MigrationPlanner;
use crate::migrate::model_pairs::ModelPairs;
pub use crate::migrate::planned_step::{PlannedStep, StepSafety};
pub use crate::migrate::report::{MigrateError, MigrationReport};
pub use crate::migrate::sqlite::migrate_sqlite;
pub(crate) use crate::migrate::stored_model::{LinkTable, StoredKey, StoredTable, StoredType};
pub use crate::migrate::stored_model::{STORE_FORMAT, StoredModel};
use crate::move_record::refuse_moved_store;

/// How far a migration may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationMode {
    /// Create a missing store; apply only the safe steps to an existing one.
    Start,
    /// Write nothing.
    Plan,
    /// Apply all steps that are possible. Data is lost only of the names in `allow_drop`: `User.email`, `User`.
    Apply { allow_drop: Vec<String> },
}

/// Runs the migration inside the transaction of `database`.
fn run_migration(
    database: &dyn MigrationDatabase,
    model: &Model,
    stored_model: &StoredModel,
    lists: &[String],
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let mut report = match store_format(database)? {
        None => create_store(database, model, stored_model, mode),
        Some(found) if found > STORE_FORMAT => Err(MigrateError::NewerStore { found }),
        Some(_) => {
            refuse_moved_store(|key| find_metadata(database, key))?;
            migrate_store(database, model, stored_model, mode)
        }
    }?;
    if report.is_applied {
        report.needs_seed &= database.create_lists(lists)?;
    }
    Ok(report)
}

/// The format of the store; `None` if there is no store.
fn store_format(database: &dyn MigrationDatabase) -> Result<Option<u32>, MigrateError> {
    if !database.relations()?.iter().any(|name| name == "trefoil_meta") {
        return Ok(None);
    }
    let text = require_metadata(database, "format")?;
    let number = text.parse().map_err(|_| MigrateError::Damaged(format!("unknown format {text:?}")))?;
    Ok(Some(number))
}

fn require_metadata(database: &dyn MigrationDatabase, key: &str) -> Result<String, MigrateError> {
    find_metadata(database, key)?.ok_or_else(|| MigrateError::Damaged(format!("trefoil_meta has no {key:?}")))
}

fn find_metadata(database: &dyn MigrationDatabase, key: &str) -> Result<Option<String>, MigrateError> {
    let sql = "SELECT \"value\" FROM \"trefoil_meta\" WHERE \"key\" = $1";
    let found = database.query(sql, &[StoredValue::Text(key.to_owned())])?;
    Ok(found.into_iter().flatten().find_map(|value| match value {
        StoredValue::Text(text) => Some(text),
        StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => None,
    }))
}

/// Creates a store beside the other tables of the database. Only a start does so, since it also seeds the store.
fn create_store(
    database: &dyn MigrationDatabase,
    model: &Model,
    stored_model: &StoredModel,
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    refuse_taken_names(database, stored_model)?;
    let empty = StoredModel::default();
    let steps = plan_steps(database, model, &ModelPairs::match_models(&empty, stored_model))?;
    let is_applied = match mode {
        MigrationMode::Plan => false,
        MigrationMode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            false
        }
        MigrationMode::Start => {
            apply::create_all(database, stored_model)?;
            true
        }
    };
    let global_ids = stored_model.global_ids;
    Ok(MigrationReport { steps, index_rebuilds: Vec::new(), needs_seed: true, global_ids, is_applied })
}

fn refuse_taken_names(
    database: &dyn MigrationDatabase,
    stored_model: &StoredModel,
) -> Result<(), MigrateError> {
    let is_ours = |name: &String| {
        name.to_lowercase().starts_with("trefoil_")
            || stored_model.table_names().any(|table| table.eq_ignore_ascii_case(name))
    };
    let taken: Vec<String> = database.relations()?.into_iter().filter(is_ours).collect();
    if taken.is_empty() { Ok(()) } else { Err(MigrateError::NamesTaken(taken)) }
}

/// Plans the steps of an existing store and applies them if `mode` allows all of them.
fn migrate_store(
    database: &dyn MigrationDatabase,
    model: &Model,
    stored_model: &StoredModel,
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let old: StoredModel = serde_json::from_str(&require_metadata(database, "model")?)
        .map_err(|error| MigrateError::Damaged(format!("the stored model cannot be read ({error})")))?;
    if let Some(missing) = missing_object(database, &old)? {
        return Err(MigrateError::Damaged(missing));
    }
    let global_ids = old.global_ids;
    let stored_model = &StoredModel { global_ids, ..stored_model.clone() };
    let pairs = ModelPairs::match_models(&old, stored_model);
    if *mode != MigrationMode::Plan && !diff::diff_models(&pairs).is_empty() {
        database.lock_tables(&pairs)?;
    }
    let steps = plan_steps(database, model, &pairs)?;
    let index_rebuilds = database.index_rebuilds(&old, stored_model)?;
    match mode {
        MigrationMode::Plan => {
            let is_applied = false;
            return Ok(MigrationReport { steps, index_rebuilds, needs_seed: false, global_ids, is_applied });
        }
        MigrationMode::Start => {
            refuse_steps(&steps, |step| step.safety == StepSafety::Safe, MigrateError::NeedsMigration)?
        }
        MigrationMode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            refuse_steps(&steps, |step| is_step_allowed(step, allow_drop), MigrateError::Refused)?;
        }
    }
    index_rebuilds.iter().for_each(|line| tracing::info!("{line}"));
    if steps.is_empty() {
        apply::sync_and_record(database, Some(&old), stored_model)?;
    } else {
        apply::apply_changes(database, model, &pairs)?;
    }
    Ok(MigrationReport {
        steps,
        index_rebuilds,
        needs_seed: database.is_unused(stored_model)?,
        global_ids,
        is_applied: true,
    })
}

/// The steps of an existing store that a start would refuse.
fn unsafe_steps(
    database: &dyn MigrationDatabase,
    model: &Model,
    stored_model: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    let mut steps = migrate_store(database, model, stored_model, &MigrationMode::Plan)?.steps;
    steps.retain(|step| step.safety != StepSafety::Safe);
    Ok(steps)
}

/// Describes the first table or column of the model that the database lacks.
fn missing_object(
    database: &dyn MigrationDatabase,
    model: &StoredModel,
) -> Result<Option<String>, MigrateError> {
    let tables = model.tables.iter().map(|table| {
        let own = ["id", "_version"].into_iter();
        let columns = table.columns.iter().map(|column| column.column.as_str());
        (table.table.as_str(), own.chain(columns).collect::<Vec<_>>())
    });
    let links =
        model.links.iter().map(|link| (link.table.as_str(), vec![&*link.first.column, &*link.second.column]));
    let bookkeeping = [("trefoil_changes", vec![]), ("trefoil_keys", vec![])].into_iter();
    for (table, required) in bookkeeping.chain(tables).chain(links) {
        let found = database.column_names(table)?;
        if found.is_empty() {
            return Ok(Some(format!("the table {table} is missing")));
        }
        let is_there = |column: &&str| found.iter().any(|name| name.eq_ignore_ascii_case(column));
        if let Some(column) = required.into_iter().find(|column| !is_there(column)) {
            return Ok(Some(format!("the table {table} has no column {column}")));
        }
    }
    Ok(None)
}

fn plan_steps(
    database: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<Vec<PlannedStep>, MigrateError> {
    MigrationPlanner { database, model, pairs }.plan_steps(&diff::diff_models(pairs))
}

fn is_step_allowed(step: &PlannedStep, allow_drop: &[String]) -> bool {
    match &step.safety {
        StepSafety::Safe | StepSafety::NeedsApply => true,
        StepSafety::LosesData { subject } => allow_drop.contains(subject),
        StepSafety::Blocked { .. } => false,
    }
}

fn refuse_steps(
    steps: &[PlannedStep],
    is_allowed: impl Fn(&PlannedStep) -> bool,
    error: fn(Vec<PlannedStep>) -> MigrateError,
) -> Result<(), MigrateError> {
    let refused: Vec<_> = steps.iter().filter(|step| !is_allowed(step)).cloned().collect();
    if refused.is_empty() { Ok(()) } else { Err(error(refused)) }
}

/// Refuses names of `--allow-drop` that match no step: a misspelt name is an error.
fn refuse_unknown_drops(steps: &[PlannedStep], allow_drop: &[String]) -> Result<(), MigrateError> {
    let known: Vec<&str> = report::droppable_names(steps).collect();
    match allow_drop.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let nearest = names::nearest_name(name, known.iter().copied()).map(str::to_owned);
            Err(MigrateError::UnknownDrop { name: name.clone(), nearest })
        }
    }
}
