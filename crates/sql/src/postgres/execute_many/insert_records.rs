//! Inserts new records of the same kind with one statement on PostgreSQL, and returns what is selected of them.

use trefoil_engine::plan::PlanAction;
use trefoil_engine::{Outcome, Plan};
use trefoil_model::{FieldId, Model, RecordId};

use crate::postgres::error::PostgresError;
use crate::postgres::execute_read::attach_children;
use crate::postgres::session::{PostgresSession, internal_error, read_cell};
use crate::statements::compile::Program;
use crate::statements::dialect::Dialect;
use crate::statements::row_batch::{RowBatch, RowTree};
use crate::statements::select::SelectLevel;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write;
use crate::statements::write_parts::write_parts;

/// The level to return of a create that writes a single row and selects only from it; `None` for other programs.
pub fn insert_level(program: &Program) -> Option<&SelectLevel> {
    let Program::Create { sequence: None, links, read_level, .. } = program else { return None };
    (links.is_empty() && read_level.is_returned()).then_some(read_level)
}

/// The plans create records and have the same program.
pub async fn insert_records<'p>(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[&'p Plan],
    read_level: &'p SelectLevel,
) -> Result<Vec<(Outcome, RowTree<'p>)>, PostgresError> {
    let Some(Plan { action: PlanAction::Create { record, id, values, selection, .. }, .. }) = plans.first()
    else {
        return Err(internal_error("only new records are inserted"));
    };
    let fields: Vec<FieldId> = values.iter().map(|(field, _)| *field).collect();
    let record = model.record(*record);
    let returned = read_level.returning_columns();
    let sql = write::insert_sql(Dialect::Postgres, record, id.is_some(), &fields, returned, plans.len());
    let parameters: Vec<_> =
        plans.iter().flat_map(|plan| write_parts(&plan.action).create_parameters()).collect();
    let created = insert_returning(session, &sql, &parameters, read_level.columns.len()).await?;
    if created.len() != plans.len() {
        return Err(internal_error("an insert returned a different number of rows than expected"));
    }
    let mut trees = Vec::with_capacity(created.len());
    for (outcome, row) in created {
        trees.push((outcome, attach_children(session, read_level, selection, row).await?));
    }
    Ok(trees)
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
