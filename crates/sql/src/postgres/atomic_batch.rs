//! Runs an atomic batch on PostgreSQL, with consecutive creates of the same kind in one statement to save round trips.

use std::sync::Arc;

use trefoil_engine::{Plan, Row, RowSink, StoreJob};
use trefoil_model::Model;

use crate::postgres::bulk_insert::statement_chunks;
use crate::postgres::error::PostgresError;
use crate::postgres::execute_many::execute_plan;
use crate::postgres::execute_many::insert_records::{insert_level, insert_records};
use crate::postgres::session::PostgresSession;
use crate::statements::compile::Program;
use crate::statements::select::SelectLevel;
use crate::statements::write_parts::write_parts;

/// Runs all plans and reports each to the sink. After a failure the caller must roll back all of them.
pub async fn run_atomic_batch(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<(), PostgresError> {
    let StoreJob { model, plans, sink, .. } = job;
    let mut rest = plans.as_slice();
    for same_programs in programs.chunk_by(Arc::ptr_eq) {
        let (same_plans, following) = rest.split_at(same_programs.len());
        rest = following;
        let width =
            same_plans.first().map_or(0, |(_, plan)| write_parts(&plan.action).create_parameters().count());
        match insert_level(&same_programs[0]) {
            Some(read_level) if width > 0 => {
                for chunk in statement_chunks(same_plans, width) {
                    insert_plans(session, model, chunk, read_level, sink.as_mut()).await?;
                }
            }
            Some(_) | None => {
                run_one_by_one(session, model, same_plans, &same_programs[0], sink.as_mut()).await?
            }
        }
    }
    Ok(())
}

async fn run_one_by_one(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[(usize, Plan)],
    program: &Program,
    sink: &mut dyn RowSink,
) -> Result<(), PostgresError> {
    for (number, plan) in plans {
        let mut visit = |row: &dyn Row| sink.row(*number, row);
        let outcome = execute_plan(session, model, plan, program, &mut visit).await?;
        sink.finish_plan(*number, Ok(outcome));
        check_refusal(sink, *number)?;
    }
    Ok(())
}

async fn insert_plans(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[(usize, Plan)],
    read_level: &SelectLevel,
    sink: &mut dyn RowSink,
) -> Result<(), PostgresError> {
    let numbers: Vec<usize> = plans.iter().map(|(number, _)| *number).collect();
    let records: Vec<&Plan> = plans.iter().map(|(_, plan)| plan).collect();
    let created = insert_records(session, model, &records, read_level).await?;
    for (number, (outcome, tree)) in numbers.into_iter().zip(created) {
        tree.visit_rows(&mut |row| sink.row(number, row));
        sink.finish_plan(number, Ok(outcome));
        check_refusal(sink, number)?;
    }
    Ok(())
}

fn check_refusal(sink: &mut dyn RowSink, number: usize) -> Result<(), PostgresError> {
    sink.refusal(number).map_or(Ok(()), |error| Err(PostgresError::Plan(error)))
}
