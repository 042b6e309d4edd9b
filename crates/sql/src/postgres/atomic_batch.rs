//! New records that are one unit, on PostgreSQL: neighbours of one shape in one statement, since each costs a round trip.

use std::sync::Arc;

use crate::postgres::bulk_insert::portions;
use crate::postgres::error::Fault;
use crate::postgres::execute_read::grow;
use crate::postgres::execute_write;
use crate::postgres::session::{Session, cell, internal};
use crate::statements::compile::Program;
use crate::statements::dialect::Dialect;
use crate::statements::row_batch::Batch;
use crate::statements::select::{Level, Parameter};
use crate::statements::write;
use crate::statements::write_parts::parts;
use trefoil_engine::plan::Action;
use trefoil_engine::{Answer, Job, Outcome, Plan};
use trefoil_model::{FieldId, Model};

/// Every plan, and the answer is told of each. Of what fails, all is to be undone.
pub async fn run(session: Session<'_>, job: &mut Job, programs: &[Arc<Program>]) -> Result<(), Fault> {
    let Job { model, plans, answer, .. } = job;
    let mut rest = plans.as_slice();
    for alike in programs.chunk_by(Arc::ptr_eq) {
        let (these, others) = rest.split_at(alike.len());
        rest = others;
        let width = these.first().map_or(0, |(_, plan)| parts(&plan.action).values.len());
        match read_of(&alike[0]) {
            Some(read) if width > 0 => {
                for part in portions(these, width) {
                    insert(session, model, part, read, answer.as_mut()).await?;
                }
            }
            Some(_) | None => one_by_one(session, these, &alike[0], answer.as_mut()).await?,
        }
    }
    Ok(())
}

/// What is shown of a new record, where its row tells all of it and nothing but the row is written.
fn read_of(program: &Program) -> Option<&Level> {
    match program {
        Program::Create { counter: None, links, read, .. } if links.is_empty() && read.is_flat() => {
            Some(read)
        }
        Program::Create { .. }
        | Program::Update { .. }
        | Program::Delete { .. }
        | Program::Get(_)
        | Program::List { .. }
        | Program::Plain => None,
    }
}

async fn one_by_one(
    session: Session<'_>,
    plans: &[(usize, Plan)],
    program: &Program,
    answer: &mut dyn Answer,
) -> Result<(), Fault> {
    for (number, plan) in plans {
        let outcome = execute_write::run(session, plan, program, &mut |row| answer.row(*number, row)).await?;
        answer.done(*number, Ok(outcome));
    }
    Ok(())
}

async fn insert(
    session: Session<'_>,
    model: &Model,
    plans: &[(usize, Plan)],
    read: &Level,
    answer: &mut dyn Answer,
) -> Result<(), Fault> {
    let Some((_, Plan { action: Action::Create { record, values, selection, .. }, .. })) = plans.first()
    else {
        return Err(internal("only new records are inserted"));
    };
    let fields: Vec<FieldId> = values.iter().map(|(field, _)| *field).collect();
    let record = model.record(*record);
    let sql = write::insert(Dialect::Postgres, record, false, &fields, read.told_by_row(), plans.len());
    let bound: Vec<_> = plans.iter().flat_map(|(_, plan)| parts(&plan.action).bound()).collect();
    let made = returned(session, &sql, &bound, read.columns.len()).await?;
    if made.len() != plans.len() {
        return Err(internal("an insert returned another number of rows than it was given"));
    }
    for ((number, _), (outcome, row)) in plans.iter().zip(made) {
        grow(session, read, selection, row).await?.each(&mut |row| answer.row(*number, row));
        answer.done(*number, Ok(outcome));
    }
    Ok(())
}

/// What became of each record, and its row: so many columns, the id and the version.
async fn returned(
    session: Session<'_>,
    sql: &str,
    bound: &[Parameter<'_>],
    columns: usize,
) -> Result<Vec<(Outcome, Batch)>, Fault> {
    let mut rows = session.rows(sql, bound).await?;
    let mut made = Vec::new();
    while let Some(row) = rows.next().await? {
        let (Some(id), Some(version)) = (cell(&row, columns).to_i64(), cell(&row, columns + 1).to_i64())
        else {
            return Err(internal("a record has no readable id or version"));
        };
        let mut batch = Batch::new(columns + 2);
        batch.push((0..columns + 2).map(|column| cell(&row, column)));
        made.push((Outcome::Created { id, version }, batch));
    }
    Ok(made)
}
