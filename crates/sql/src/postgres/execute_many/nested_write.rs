//! Runs a nested write on PostgreSQL, each step as one statement; if one is refused, once more item by item to find it.

use trefoil_engine::Outcome;
use trefoil_engine::plan::{NestedKind, NestedPlan, NestedStep, StepItem};
use trefoil_model::error::Error;
use trefoil_model::{Model, RecordId};

use crate::postgres::bulk_insert::statement_chunks;
use crate::postgres::constraint_errors::explain_error;
use crate::postgres::error::{PostgresError, refused_error};
use crate::postgres::execute_guarded::{check_step_after, check_step_before, is_visible};
use crate::postgres::execute_read::read_tree;
use crate::postgres::session::{PostgresSession, RowVisitor, internal_error, read_cell};
use crate::statements::access::nested_rules::links_of_new;
use crate::statements::access::unreadable_row::UnreadableRow;
use crate::statements::dialect::Dialect;
use crate::statements::nested_write::{NestedRun, StepResult};
use crate::statements::select::SelectLevel;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write::version_sql;

/// Rows are visited after all steps.
pub async fn execute_nested(
    session: PostgresSession<'_>,
    model: &Model,
    plan: &NestedPlan,
    read_level: &SelectLevel,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    if let NestedKind::Update { id, expected_version } = &plan.kind {
        if !is_visible(session, model, plan.record, id).await? {
            return Ok(Outcome::NotFound);
        }
        // From here on, other sessions change neither the record nor what it has.
        let sql = format!("{} FOR UPDATE", version_sql(Dialect::Postgres, model.record(plan.record)));
        let Some(found) = session.query_integer(&sql, &[SqlParameter::id(id)]).await? else {
            return Ok(Outcome::NotFound);
        };
        if let Some(expected) = expected_version.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
    }
    session.execute_control("SAVEPOINT part").await?;
    let run = match run_steps(session, model, plan).await {
        Ok(run) => run,
        Err(PostgresError::Refused(error)) => {
            session.execute_control("ROLLBACK TO part").await?;
            find_refused_item(session, model, plan).await?;
            // What was in the way is gone by now.
            return Err(PostgresError::Plan(refused_error(&error)));
        }
        Err(error) => return Err(error),
    };
    let version_query = version_sql(Dialect::Postgres, model.record(plan.record));
    let read = async |id: &RecordId, visit: RowVisitor<'_>| -> Result<i64, PostgresError> {
        let tree = read_tree(session, read_level, &plan.selection, id).await?;
        match tree {
            Some(tree) => tree.visit_rows(visit),
            // The actor may have written what they cannot see.
            None if session.view.is_some() => {
                visit(&UnreadableRow { id, level: read_level });
            }
            None => return Err(internal_error("a written record cannot be read")),
        }
        let version = session.query_integer(&version_query, &[SqlParameter::id(id)]).await?;
        version.ok_or_else(|| internal_error("a record has no readable version"))
    };
    match &plan.kind {
        NestedKind::Create(number) => {
            let id = run.new_id(*number)?.clone();
            Ok(Outcome::Created { version: read(&id, visit).await?, id })
        }
        NestedKind::CreateMany(numbers) => {
            for number in numbers {
                read(run.new_id(*number)?, &mut *visit).await?;
            }
            Ok(Outcome::ChangedMany { count: numbers.len() as u64 })
        }
        NestedKind::Update { id, .. } => {
            Ok(Outcome::Updated { version: read(id, visit).await?, id: id.clone() })
        }
    }
}

async fn run_steps<'p>(
    session: PostgresSession<'_>,
    model: &'p Model,
    plan: &'p NestedPlan,
) -> Result<NestedRun<'p>, PostgresError> {
    let mut run = NestedRun::new(Dialect::Postgres, model, plan);
    let mut checked = Vec::new();
    for step in &plan.steps {
        if let Some(view) = session.view {
            checked.push(check_step_before(session, &run, step, view).await?);
        }
        match NestedRun::insert_width(step) {
            // Each of these is a statement without parameters.
            Some(0) => {
                for item in &step.items {
                    execute_items(session, &mut run, step, std::slice::from_ref(item)).await?;
                }
            }
            Some(width) => {
                for items in statement_chunks(&step.items, width) {
                    execute_items(session, &mut run, step, items).await?;
                }
            }
            None => execute_items(session, &mut run, step, &step.items).await?,
        }
    }
    // When all is written: a rule may ask for links and for other records of the same write.
    if let Some(view) = session.view {
        for (step, checked) in plan.steps.iter().zip(&checked) {
            let links = links_of_new(plan, step.record);
            check_step_after(session, &run, step, view, checked, &links).await?;
        }
    }
    Ok(run)
}

/// Runs the items one by one up to the one that is refused, which becomes the error.
async fn find_refused_item(
    session: PostgresSession<'_>,
    model: &Model,
    plan: &NestedPlan,
) -> Result<(), PostgresError> {
    let mut run = NestedRun::new(Dialect::Postgres, model, plan);
    for step in &plan.steps {
        for item in &step.items {
            session.execute_control("SAVEPOINT item").await?;
            match execute_items(session, &mut run, step, std::slice::from_ref(item)).await {
                Ok(()) => session.execute_control("RELEASE item").await?,
                Err(PostgresError::Refused(error)) => {
                    session.execute_control("ROLLBACK TO item").await?;
                    let owned = run.owned_parts(step, item)?;
                    let explained = explain_error(session, model, owned.parts(), &error).await?;
                    return Err(PostgresError::Plan(NestedRun::item_error(step, item, explained)));
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

async fn execute_items(
    session: PostgresSession<'_>,
    run: &mut NestedRun<'_>,
    step: &NestedStep,
    items: &[StepItem],
) -> Result<(), PostgresError> {
    let model = run.model;
    let rules = session.view.map(|view| session.write_rules(model, view));
    let statement = run.statement(step, items.len(), rules)?;
    let sql = &statement.sql;
    match NestedRun::step_result(step) {
        StepResult::NewRecords => {
            let ids = {
                let parameters = run.parameters(step, items)?;
                let mut rows = session.query(sql, &parameters).await?;
                let mut ids = Vec::with_capacity(items.len());
                while let Some(row) = rows.next_row().await? {
                    ids.extend(RecordId::from_cell(read_cell(&row, 0)));
                }
                ids
            };
            if ids.len() != items.len() {
                return Err(internal_error("an insert returned a different number of ids than expected"));
            }
            items.iter().zip(ids).for_each(|(item, id)| run.set_new_id(item, id));
        }
        StepResult::RowPerItem => {
            let parameters = run.parameters(step, items)?;
            let found = session.query_values(sql, &parameters).await?;
            if found.len() < items.len() {
                return Err(PostgresError::Plan(run.missing_error(step, items, &found)));
            }
        }
        StepResult::AnyRows => {
            let parameters = run.parameters(step, items)?;
            session.execute_seen(&statement, &parameters).await?;
        }
    }
    Ok(())
}
