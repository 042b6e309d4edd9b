//! Runs a nested write on SQLite, record by record: a prepared statement that is repeated costs no more than a longer one.

use trefoil_engine::plan::{NestedKind, NestedPlan, NestedStep, StepAction};
use trefoil_engine::{Outcome, Row};
use trefoil_model::error::Error;
use trefoil_model::{Model, RecordId};

use crate::sqlite::constraint_errors::explain_error;
use crate::sqlite::error::SqliteError;
use crate::sqlite::execute_guarded::{check_step_after, check_step_before, is_visible};
use crate::sqlite::execute_read::read_tree;
use crate::sqlite::session::{SqliteSession, bind_parameters, bind_parameters_after};
use crate::statements::access::nested_rules::links_of_new;
use crate::statements::access::unreadable_row::UnreadableRow;
use crate::statements::dialect::Dialect;
use crate::statements::nested_write::{NestedRun, StepResult};
use crate::statements::select::SelectLevel;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write::version_sql;

/// Rows are visited after all steps.
pub fn execute_nested(
    session: SqliteSession<'_>,
    model: &Model,
    plan: &NestedPlan,
    read_level: &SelectLevel,
    visit: &mut dyn FnMut(&dyn Row),
) -> Result<Outcome, SqliteError> {
    if let NestedKind::Update { id, expected_version } = &plan.kind {
        if !is_visible(session, model, plan.record, id)? {
            return Ok(Outcome::NotFound);
        }
        let sql = version_sql(Dialect::Sqlite, model.record(plan.record));
        let Some(found) = session.query_integer(&sql, &[SqlParameter::id(id)])? else {
            return Ok(Outcome::NotFound);
        };
        if let Some(expected) = expected_version.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
    }
    let mut run = NestedRun::new(Dialect::Sqlite, model, plan);
    let mut checked = Vec::new();
    for step in &plan.steps {
        if let Some(view) = session.view {
            checked.push(check_step_before(session, &run, step, view)?);
        }
        execute_step(session, &mut run, step)?;
    }
    // When all is written: a rule may ask for links and for other records of the same write.
    if let Some(view) = session.view {
        for (step, checked) in plan.steps.iter().zip(&checked) {
            let links = links_of_new(plan, step.record);
            check_step_after(session, &run, step, view, checked, &links)?;
        }
    }
    let mut read = |id: &RecordId| -> Result<i64, SqliteError> {
        let tree = read_tree(session, read_level, &plan.selection, id)?;
        let missing = || SqliteError::Store(rusqlite::Error::QueryReturnedNoRows);
        let Some(tree) = tree else {
            // The actor may have written what they cannot see.
            session.view.ok_or_else(missing)?;
            visit(&UnreadableRow { id, level: read_level });
            let query = version_sql(Dialect::Sqlite, model.record(plan.record));
            return session.query_integer(&query, &[SqlParameter::id(id)])?.ok_or_else(missing);
        };
        tree.visit_rows(visit);
        Ok(tree.rows().cell(0, read_level.width - 1).to_i64().unwrap_or_default())
    };
    match &plan.kind {
        NestedKind::Create(number) => {
            let id = run.new_id(*number)?.clone();
            Ok(Outcome::Created { version: read(&id)?, id })
        }
        NestedKind::CreateMany(numbers) => {
            for number in numbers {
                read(run.new_id(*number)?)?;
            }
            Ok(Outcome::ChangedMany { count: numbers.len() as u64 })
        }
        NestedKind::Update { id, .. } => Ok(Outcome::Updated { version: read(id)?, id: id.clone() }),
    }
}

fn execute_step(
    session: SqliteSession<'_>,
    run: &mut NestedRun<'_>,
    step: &NestedStep,
) -> Result<(), SqliteError> {
    match run.link_side(step)? {
        Some(side) => session.write_links(&side, || execute_items(session, run, step)),
        None => execute_items(session, run, step),
    }
}

fn execute_items(
    session: SqliteSession<'_>,
    run: &mut NestedRun<'_>,
    step: &NestedStep,
) -> Result<(), SqliteError> {
    let model = run.model;
    let rules = session.view.map(|view| session.write_rules(model, view));
    let step_statement = run.statement(step, 1, rules)?;
    let mut of_rules = Vec::new();
    step_statement.add_parameters(session.view, &mut of_rules);
    let mut statement = session.prepare(&step_statement.sql)?;
    let mut missing = Vec::new();
    for (index, item) in step.items.iter().enumerate() {
        if index > 0 {
            session.count_repetition();
        }
        let parameters = run.parameters(step, std::slice::from_ref(item))?;
        let bound = bind_parameters(&mut statement, &parameters)
            .and_then(|()| bind_parameters_after(&mut statement, parameters.len(), &of_rules));
        let executed = bound.and_then(|()| {
            if NestedRun::is_check(step) {
                let found = statement.raw_query().next()?.is_some();
                Ok(usize::from(found))
            } else {
                statement.raw_execute()
            }
        });
        let changed = match executed {
            Ok(changed) => changed,
            Err(error) => {
                let owned = run.owned_parts(step, item)?;
                return Err(match explain_error(session, run.model, owned.parts(), error) {
                    SqliteError::Plan(error) => SqliteError::Plan(NestedRun::item_error(step, item, error)),
                    error @ SqliteError::Store(_) => error,
                });
            }
        };
        match NestedRun::step_result(step) {
            // A trigger of another program ignored it, and may have done something else instead.
            StepResult::NewRecords if changed == 0 => {
                return Err(SqliteError::Store(rusqlite::Error::StatementChangedRows(0)));
            }
            StepResult::NewRecords => {
                let has_id = matches!(&step.action, StepAction::Insert { has_id: true, .. });
                if !has_id {
                    run.set_new_id(item, RecordId::Number(session.connection.last_insert_rowid()));
                }
            }
            StepResult::RowPerItem if changed == 0 => missing.push(item.clone()),
            StepResult::RowPerItem | StepResult::AnyRows => {}
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(run.missing_error(step, &missing, &[]).into()) }
}
