//! Brings a database to the shape of the model, or says why not and what to do.
//!
//! The shape of the model ([`shape`]) is compared with the one on record in the store: [`pair`] finds what
//! continues what, [`diff`] lists the changes, [`survey`] judges them by the rows, [`apply`] makes them.
//!
//! All of that is the same on every database. What is not, a [`host`] does: [`sqlite`] and [`postgres`].

pub(crate) mod apply;
pub(crate) mod column_conversion;
pub(crate) mod ddl;
pub(crate) mod diff;
pub(crate) mod log_images;
pub(crate) mod migration_database;
pub(crate) mod model_pairs;
pub(crate) mod phrases;
pub mod postgres;
pub(crate) mod report;
pub(crate) mod sqlite;
pub(crate) mod step_planner;
pub(crate) mod stored_model;
pub(crate) mod transfer_tables;
pub(crate) mod value_converter;

use crate::transfer::refuse_elsewhere;
use trefoil_model::naming::names;
use trefoil_model::{Model, StoredValue};

pub use crate::migrate::apply::STORE_FORMAT;
pub(crate) use crate::migrate::ddl::{quote_name, quote_text};
pub use crate::migrate::report::{MigrateError, MigrationReport};
pub use crate::migrate::sqlite::migrate_sqlite;
pub use crate::migrate::step_planner::{PlannedStep, StepSafety};
pub use crate::migrate::stored_model::StoredModel;
pub(crate) use crate::migrate::stored_model::{LinkTable, StoredTable, StoredType};

use crate::migrate::migration_database::MigrationDatabase;
use crate::migrate::model_pairs::ModelPairs;
use crate::migrate::step_planner::StepPlanner;

/// How far [`prepare`] may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationMode {
    /// Create an empty store; of an existing one change only what neither loses nor doubts data.
    Start,
    /// Write nothing.
    Plan,
    /// Everything that fits, and these losses: `User.email`, `User`.
    Apply { allow_drop: Vec<String> },
}

/// Everything, inside the transaction of `host`.
fn run_migration(
    host: &dyn MigrationDatabase,
    model: &Model,
    shape: &StoredModel,
    lists: &[String],
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let mut report = match store_format(host)? {
        None => create_store(host, model, shape, mode),
        Some(found) if found > STORE_FORMAT => Err(MigrateError::NewerStore { found }),
        Some(_) => {
            refuse_elsewhere(|key| find_meta(host, key))?;
            migrate_store(host, model, shape, mode)
        }
    }?;
    if report.is_applied {
        report.needs_seed &= host.create_lists(lists)?;
    }
    Ok(report)
}

/// The format of the store, if there is one.
fn store_format(host: &dyn MigrationDatabase) -> Result<Option<u32>, MigrateError> {
    if !host.relations()?.iter().any(|name| name == "trefoil_meta") {
        return Ok(None);
    }
    let text = require_meta(host, "format")?;
    let number = text.parse().map_err(|_| MigrateError::Damaged(format!("its format is {text:?}")))?;
    Ok(Some(number))
}

fn require_meta(host: &dyn MigrationDatabase, key: &str) -> Result<String, MigrateError> {
    find_meta(host, key)?.ok_or_else(|| MigrateError::Damaged(format!("trefoil_meta has no {key:?}")))
}

fn find_meta(host: &dyn MigrationDatabase, key: &str) -> Result<Option<String>, MigrateError> {
    let sql = "SELECT \"value\" FROM \"trefoil_meta\" WHERE \"key\" = $1";
    let found = host.query(sql, &[StoredValue::Text(key.to_owned())])?;
    Ok(found.into_iter().flatten().find_map(|value| match value {
        StoredValue::Text(text) => Some(text),
        StoredValue::Null | StoredValue::Int(_) | StoredValue::Real(_) => None,
    }))
}

/// A new store, beside whatever else is in the database. Only a start makes one, since seeds follow it.
fn create_store(
    host: &dyn MigrationDatabase,
    model: &Model,
    shape: &StoredModel,
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    refuse_taken_names(host, shape)?;
    let nothing = StoredModel::default();
    let steps = plan_steps(host, model, &ModelPairs::match_models(&nothing, shape))?;
    let done = match mode {
        MigrationMode::Plan => false,
        MigrationMode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            false
        }
        MigrationMode::Start => {
            crate::migrate::apply::create_all(host, shape)?;
            true
        }
    };
    Ok(MigrationReport { steps, index_rebuilds: Vec::new(), needs_seed: true, is_applied: done })
}

fn refuse_taken_names(host: &dyn MigrationDatabase, shape: &StoredModel) -> Result<(), MigrateError> {
    let is_ours = |name: &String| {
        name.to_lowercase().starts_with("trefoil_")
            || shape.table_names().any(|table| table.eq_ignore_ascii_case(name))
    };
    let taken: Vec<String> = host.relations()?.into_iter().filter(is_ours).collect();
    if taken.is_empty() { Ok(()) } else { Err(MigrateError::NamesTaken(taken)) }
}

/// An existing store.
fn migrate_store(
    host: &dyn MigrationDatabase,
    model: &Model,
    shape: &StoredModel,
    mode: &MigrationMode,
) -> Result<MigrationReport, MigrateError> {
    let old: StoredModel = serde_json::from_str(&require_meta(host, "model")?)
        .map_err(|error| MigrateError::Damaged(format!("the shape on record cannot be read ({error})")))?;
    if let Some(what) = missing_object(host, &old)? {
        return Err(MigrateError::Damaged(what));
    }
    let pairs = ModelPairs::match_models(&old, shape);
    if *mode != MigrationMode::Plan && !crate::migrate::diff::diff_models(&pairs).is_empty() {
        host.lock_tables(&pairs)?;
    }
    let steps = plan_steps(host, model, &pairs)?;
    let renewed = host.index_rebuilds(&old, shape)?;
    match mode {
        MigrationMode::Plan => {
            return Ok(MigrationReport {
                steps,
                index_rebuilds: renewed,
                needs_seed: false,
                is_applied: false,
            });
        }
        MigrationMode::Start => {
            refuse_steps(&steps, |step| step.safety == StepSafety::Safe, MigrateError::NeedsMigration)?
        }
        MigrationMode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            refuse_steps(&steps, |step| is_step_allowed(step, allow_drop), MigrateError::Refused)?;
        }
    }
    renewed.iter().for_each(|line| tracing::info!("{line}"));
    if steps.is_empty() {
        crate::migrate::apply::sync_and_record(host, Some(&old), shape)?;
    } else {
        crate::migrate::apply::apply_changes(host, model, &pairs)?;
    }
    Ok(MigrationReport {
        steps,
        index_rebuilds: renewed,
        needs_seed: host.is_unused(shape)?,
        is_applied: true,
    })
}

/// What a start would refuse to do to an existing store.
fn unsafe_steps(
    host: &dyn MigrationDatabase,
    model: &Model,
    shape: &StoredModel,
) -> Result<Vec<PlannedStep>, MigrateError> {
    let mut steps = migrate_store(host, model, shape, &MigrationMode::Plan)?.steps;
    steps.retain(|step| step.safety != StepSafety::Safe);
    Ok(steps)
}

/// The first thing that is missing of a shape, in words.
fn missing_object(host: &dyn MigrationDatabase, model: &StoredModel) -> Result<Option<String>, MigrateError> {
    let tables = model.tables.iter().map(|table| {
        let own = ["id", "_version"].into_iter();
        let columns = table.columns.iter().map(|column| column.column.as_str());
        (table.table.as_str(), own.chain(columns).collect::<Vec<_>>())
    });
    let links =
        model.links.iter().map(|link| (link.table.as_str(), vec![&*link.first.column, &*link.second.column]));
    let bookkeeping = [("trefoil_changes", vec![]), ("trefoil_keys", vec![])].into_iter();
    for (table, wanted) in bookkeeping.chain(tables).chain(links) {
        let found = host.column_names(table)?;
        if found.is_empty() {
            return Ok(Some(format!("the table {table} is missing")));
        }
        let is_there = |column: &&str| found.iter().any(|name| name.eq_ignore_ascii_case(column));
        if let Some(column) = wanted.into_iter().find(|column| !is_there(column)) {
            return Ok(Some(format!("the table {table} has no column {column}")));
        }
    }
    Ok(None)
}

fn plan_steps(
    host: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<Vec<PlannedStep>, MigrateError> {
    StepPlanner { database: host, model, pairs }.plan_steps(&crate::migrate::diff::diff_models(pairs))
}

fn is_step_allowed(step: &PlannedStep, allow_drop: &[String]) -> bool {
    match &step.safety {
        StepSafety::Safe | StepSafety::NeedsApply => true,
        StepSafety::LosesData { subject: what } => allow_drop.contains(what),
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

/// A name that is misspelt must not pass for one that is agreed to.
fn refuse_unknown_drops(steps: &[PlannedStep], allow_drop: &[String]) -> Result<(), MigrateError> {
    let known: Vec<&str> = crate::migrate::report::droppable_names(steps).collect();
    match allow_drop.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let nearest = names::nearest_name(name, known.iter().copied()).map(str::to_owned);
            Err(MigrateError::UnknownDrop { name: name.clone(), nearest })
        }
    }
}
