//! New records that are one unit, on PostgreSQL: neighbours of one shape in one statement, since each costs a round trip.

use std::sync::Arc;

use crate::postgres::bulk_insert::statement_chunks;
use crate::postgres::error::PostgresError;
use crate::postgres::execute_read::attach_children;
use crate::postgres::execute_write;
use crate::postgres::session::{PostgresSession, internal_error, read_cell};
use crate::statements::compile::Program;
use crate::statements::dialect::Dialect;
use crate::statements::row_batch::RowBatch;
use crate::statements::select::{SelectLevel, SqlParameter};
use crate::statements::write;
use crate::statements::write_parts::write_parts;
use trefoil_engine::plan::PlanAction;
use trefoil_engine::{Outcome, Plan, RowSink, StoreJob};
use trefoil_model::{FieldId, Model};

/// Every plan, and the answer is told of each. Of what fails, all is to be undone.
pub async fn run_atomic_batch(
    session: PostgresSession<'_>,
    job: &mut StoreJob,
    programs: &[Arc<Program>],
) -> Result<(), PostgresError> {
    let StoreJob { model, plans, sink: answer, .. } = job;
    let mut rest = plans.as_slice();
    for alike in programs.chunk_by(Arc::ptr_eq) {
        let (these, others) = rest.split_at(alike.len());
        rest = others;
        let width = these.first().map_or(0, |(_, plan)| write_parts(&plan.action).values.len());
        match insert_level(&alike[0]) {
            Some(read) if width > 0 => {
                for part in statement_chunks(these, width) {
                    insert_plans(session, model, part, read, answer.as_mut()).await?;
                }
            }
            Some(_) | None => run_one_by_one(session, these, &alike[0], answer.as_mut()).await?,
        }
    }
    Ok(())
}

/// What is shown of a new record, where its row tells all of it and nothing but the row is written.
fn insert_level(program: &Program) -> Option<&SelectLevel> {
    match program {
        Program::Create { sequence: None, links, read_level: read, .. }
            if links.is_empty() && read.is_flat() =>
        {
            Some(read)
        }
        Program::Create { .. }
        | Program::Update { .. }
        | Program::Delete { .. }
        | Program::Get(_)
        | Program::List { .. }
        | Program::PlainList => None,
    }
}

async fn run_one_by_one(
    session: PostgresSession<'_>,
    plans: &[(usize, Plan)],
    program: &Program,
    answer: &mut dyn RowSink,
) -> Result<(), PostgresError> {
    for (number, plan) in plans {
        let outcome =
            execute_write::execute_write(session, plan, program, &mut |row| answer.row(*number, row)).await?;
        answer.finish_plan(*number, Ok(outcome));
    }
    Ok(())
}

async fn insert_plans(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[(usize, Plan)],
    read: &SelectLevel,
    answer: &mut dyn RowSink,
) -> Result<(), PostgresError> {
    let Some((_, Plan { action: PlanAction::Create { record, values, selection, .. }, .. })) = plans.first()
    else {
        return Err(internal_error("only new records are inserted"));
    };
    let fields: Vec<FieldId> = values.iter().map(|(field, _)| *field).collect();
    let record = model.record(*record);
    let sql =
        write::insert_sql(Dialect::Postgres, record, false, &fields, read.returning_columns(), plans.len());
    let bound: Vec<_> =
        plans.iter().flat_map(|(_, plan)| write_parts(&plan.action).value_parameters()).collect();
    let made = insert_returning(session, &sql, &bound, read.columns.len()).await?;
    if made.len() != plans.len() {
        return Err(internal_error("an insert returned another number of rows than it was given"));
    }
    for ((number, _), (outcome, row)) in plans.iter().zip(made) {
        attach_children(session, read, selection, row).await?.visit_rows(&mut |row| answer.row(*number, row));
        answer.finish_plan(*number, Ok(outcome));
    }
    Ok(())
}

/// What became of each record, and its row: so many columns, the id and the version.
async fn insert_returning(
    session: PostgresSession<'_>,
    sql: &str,
    bound: &[SqlParameter<'_>],
    columns: usize,
) -> Result<Vec<(Outcome, RowBatch)>, PostgresError> {
    let mut rows = session.query(sql, bound).await?;
    let mut made = Vec::new();
    while let Some(row) = rows.next_row().await? {
        let (Some(id), Some(version)) =
            (read_cell(&row, columns).to_i64(), read_cell(&row, columns + 1).to_i64())
        else {
            return Err(internal_error("a record has no readable id or version"));
        };
        let mut batch = RowBatch::new(columns + 2);
        batch.push_row((0..columns + 2).map(|column| read_cell(&row, column)));
        made.push((Outcome::Created { id, version }, batch));
    }
    Ok(made)
}
