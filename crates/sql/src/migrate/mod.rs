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
use trefoil_model::{Model, Stored};

pub use crate::migrate::apply::FORMAT;
pub(crate) use crate::migrate::ddl::{quoted, text};
pub use crate::migrate::report::{MigrateError, Report};
pub use crate::migrate::sqlite::prepare;
pub use crate::migrate::step_planner::{PlannedStep, Safety};
pub use crate::migrate::stored_model::StoredModel;
pub(crate) use crate::migrate::stored_model::{Form, LinkTable, Table};

use crate::migrate::migration_database::Host;
use crate::migrate::model_pairs::Pairs;
use crate::migrate::step_planner::Survey;

/// How far [`prepare`] may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Create an empty store; of an existing one change only what neither loses nor doubts data.
    Start,
    /// Write nothing.
    Plan,
    /// Everything that fits, and these losses: `User.email`, `User`.
    Apply { allow_drop: Vec<String> },
}

/// Everything, inside the transaction of `host`.
fn run(
    host: &dyn Host,
    model: &Model,
    shape: &StoredModel,
    lists: &[String],
    mode: &Mode,
) -> Result<Report, MigrateError> {
    let mut report = match format(host)? {
        None => found(host, model, shape, mode),
        Some(found) if found > FORMAT => Err(MigrateError::NewerStore { found }),
        Some(_) => {
            refuse_elsewhere(|key| recorded(host, key))?;
            alter(host, model, shape, mode)
        }
    }?;
    if report.done {
        report.fresh &= host.lists(lists)?;
    }
    Ok(report)
}

/// The format of the store, if there is one.
fn format(host: &dyn Host) -> Result<Option<u32>, MigrateError> {
    if !host.relations()?.iter().any(|name| name == "trefoil_meta") {
        return Ok(None);
    }
    let text = meta(host, "format")?;
    let number = text.parse().map_err(|_| MigrateError::Damaged(format!("its format is {text:?}")))?;
    Ok(Some(number))
}

fn meta(host: &dyn Host, key: &str) -> Result<String, MigrateError> {
    recorded(host, key)?.ok_or_else(|| MigrateError::Damaged(format!("trefoil_meta has no {key:?}")))
}

fn recorded(host: &dyn Host, key: &str) -> Result<Option<String>, MigrateError> {
    let sql = "SELECT \"value\" FROM \"trefoil_meta\" WHERE \"key\" = $1";
    let found = host.rows(sql, &[Stored::Text(key.to_owned())])?;
    Ok(found.into_iter().flatten().find_map(|value| match value {
        Stored::Text(text) => Some(text),
        Stored::Null | Stored::Int(_) | Stored::Real(_) => None,
    }))
}

/// A new store, beside whatever else is in the database. Only a start makes one, since seeds follow it.
fn found(host: &dyn Host, model: &Model, shape: &StoredModel, mode: &Mode) -> Result<Report, MigrateError> {
    refuse_taken_names(host, shape)?;
    let nothing = StoredModel::default();
    let steps = planned(host, model, &Pairs::of(&nothing, shape))?;
    let done = match mode {
        Mode::Plan => false,
        Mode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            false
        }
        Mode::Start => {
            crate::migrate::apply::create(host, shape)?;
            true
        }
    };
    Ok(Report { steps, renewed: Vec::new(), fresh: true, done })
}

fn refuse_taken_names(host: &dyn Host, shape: &StoredModel) -> Result<(), MigrateError> {
    let is_ours = |name: &String| {
        name.to_lowercase().starts_with("trefoil_")
            || shape.table_names().any(|table| table.eq_ignore_ascii_case(name))
    };
    let taken: Vec<String> = host.relations()?.into_iter().filter(is_ours).collect();
    if taken.is_empty() { Ok(()) } else { Err(MigrateError::NamesTaken(taken)) }
}

/// An existing store.
fn alter(host: &dyn Host, model: &Model, shape: &StoredModel, mode: &Mode) -> Result<Report, MigrateError> {
    let old: StoredModel = serde_json::from_str(&meta(host, "model")?)
        .map_err(|error| MigrateError::Damaged(format!("the shape on record cannot be read ({error})")))?;
    if let Some(what) = missing(host, &old)? {
        return Err(MigrateError::Damaged(what));
    }
    let pairs = Pairs::of(&old, shape);
    if *mode != Mode::Plan && !crate::migrate::diff::diff(&pairs).is_empty() {
        host.hold(&pairs)?;
    }
    let steps = planned(host, model, &pairs)?;
    let renewed = host.renewed(&old, shape)?;
    match mode {
        Mode::Plan => return Ok(Report { steps, renewed, fresh: false, done: false }),
        Mode::Start => refuse(&steps, |step| step.safety == Safety::Safe, MigrateError::NeedsMigration)?,
        Mode::Apply { allow_drop } => {
            refuse_unknown_drops(&steps, allow_drop)?;
            refuse(&steps, |step| is_agreed(step, allow_drop), MigrateError::Refused)?;
        }
    }
    renewed.iter().for_each(|line| tracing::info!("{line}"));
    if steps.is_empty() {
        crate::migrate::apply::settle(host, Some(&old), shape)?;
    } else {
        crate::migrate::apply::change(host, model, &pairs)?;
    }
    Ok(Report { steps, renewed, fresh: host.is_unused(shape)?, done: true })
}

/// What a start would refuse to do to an existing store.
fn unfit(host: &dyn Host, model: &Model, shape: &StoredModel) -> Result<Vec<PlannedStep>, MigrateError> {
    let mut steps = alter(host, model, shape, &Mode::Plan)?.steps;
    steps.retain(|step| step.safety != Safety::Safe);
    Ok(steps)
}

/// The first thing that is missing of a shape, in words.
fn missing(host: &dyn Host, model: &StoredModel) -> Result<Option<String>, MigrateError> {
    let tables = model.tables.iter().map(|table| {
        let own = ["id", "_version"].into_iter();
        let columns = table.columns.iter().map(|column| column.column.as_str());
        (table.table.as_str(), own.chain(columns).collect::<Vec<_>>())
    });
    let links =
        model.links.iter().map(|link| (link.table.as_str(), vec![&*link.first.column, &*link.second.column]));
    let bookkeeping = [("trefoil_changes", vec![]), ("trefoil_keys", vec![])].into_iter();
    for (table, wanted) in bookkeeping.chain(tables).chain(links) {
        let found = host.columns(table)?;
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

fn planned(host: &dyn Host, model: &Model, pairs: &Pairs<'_>) -> Result<Vec<PlannedStep>, MigrateError> {
    Survey { host, model, pairs }.judge(&crate::migrate::diff::diff(pairs))
}

fn is_agreed(step: &PlannedStep, allow_drop: &[String]) -> bool {
    match &step.safety {
        Safety::Safe | Safety::NeedsApply => true,
        Safety::Loses { what } => allow_drop.contains(what),
        Safety::Blocked { .. } => false,
    }
}

fn refuse(
    steps: &[PlannedStep],
    is_allowed: impl Fn(&PlannedStep) -> bool,
    error: fn(Vec<PlannedStep>) -> MigrateError,
) -> Result<(), MigrateError> {
    let refused: Vec<_> = steps.iter().filter(|step| !is_allowed(step)).cloned().collect();
    if refused.is_empty() { Ok(()) } else { Err(error(refused)) }
}

/// A name that is misspelt must not pass for one that is agreed to.
fn refuse_unknown_drops(steps: &[PlannedStep], allow_drop: &[String]) -> Result<(), MigrateError> {
    let known: Vec<&str> = crate::migrate::report::losses(steps).collect();
    match allow_drop.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let nearest = names::nearest(name, known.iter().copied()).map(str::to_owned);
            Err(MigrateError::UnknownDrop { name: name.clone(), nearest })
        }
    }
}
