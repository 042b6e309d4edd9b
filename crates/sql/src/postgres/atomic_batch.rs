//! Runs an atomic batch on PostgreSQL, with consecutive creates of the same kind in one statement to save round trips.

use std::sync::Arc;

use trefoil_engine::plan::PlanAction;
use trefoil_engine::{Outcome, Plan, RowSink, StoreJob};
use trefoil_model::{FieldId, Model, RecordId};

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
            Some(_) | None => run_one_by_one(session, same_plans, &same_programs[0], sink.as_mut()).await?,
        }
    }
    Ok(())
}

/// The level to return of a create that writes a single row and selects only from it; `None` for other programs.
fn insert_level(program: &Program) -> Option<&SelectLevel> {
    match program {
        Program::Create { sequence: None, links, read_level, .. }
            if links.is_empty() && read_level.is_flat() =>
        {
            Some(read_level)
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
    sink: &mut dyn RowSink,
) -> Result<(), PostgresError> {
    for (number, plan) in plans {
        let outcome =
            execute_write::execute_write(session, plan, program, &mut |row| sink.row(*number, row)).await?;
        sink.finish_plan(*number, Ok(outcome));
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
    let Some((_, Plan { action: PlanAction::Create { record, id, values, selection, .. }, .. })) =
        plans.first()
    else {
        return Err(internal_error("only new records are inserted"));
    };
    let fields: Vec<FieldId> = values.iter().map(|(field, _)| *field).collect();
    let record = model.record(*record);
    let sql = write::insert_sql(
        Dialect::Postgres,
        record,
        id.is_some(),
        &fields,
        read_level.returning_columns(),
        plans.len(),
    );
    let parameters: Vec<_> =
        plans.iter().flat_map(|(_, plan)| write_parts(&plan.action).create_parameters()).collect();
    let created = insert_returning(session, &sql, &parameters, read_level.columns.len()).await?;
    if created.len() != plans.len() {
        return Err(internal_error("an insert returned a different number of rows than expected"));
    }
    for ((number, _), (outcome, row)) in plans.iter().zip(created) {
        attach_children(session, read_level, selection, row)
            .await?
            .visit_rows(&mut |row| sink.row(*number, row));
        sink.finish_plan(*number, Ok(outcome));
    }
    Ok(())
}

/// The outcome and row of each record. The statement returns `columns` columns, the id and the version.
async fn insert_returning(
    session: PostgresSession<'_>,
    sql: &str,
    parameters: &[SqlParameter<'_>],
    columns: usize,
) -> Result<Vec<(Outcome, RowBatch)>, PostgresError> {
    let mut rows = session.query(sql, parameters).await?;
    let mut created = Vec::new();
    while let Some(row) = rows.next_row().await? {
        let (id, version) =
            (RecordId::from_cell(read_cell(&row, columns)), read_cell(&row, columns + 1).to_i64());
        let (Some(id), Some(version)) = (id, version) else {
            return Err(internal_error("a record has no readable id or version"));
        };
        let mut batch = RowBatch::new(columns + 2);
        batch.push_row((0..columns + 2).map(|column| read_cell(&row, column)));
        created.push((Outcome::Created { id, version }, batch));
    }
    Ok(created)
}
