//! Puts the questions of an [`Inquiry`] to PostgreSQL, once its SQLSTATE says which kind of constraint broke.

use crate::postgres::error::{PostgresError, refused_error};
use crate::postgres::session::{PostgresSession, read_cell};
use crate::statements::constraint_errors::{BrokenConstraint, ConstraintProbe};
use crate::statements::dialect::Dialect;
use crate::statements::select::SqlParameter;
use crate::statements::write_parts::write_parts;
use trefoil_engine::plan::PlanAction;
use trefoil_model::error::{Error, Violation};
use trefoil_model::naming::names::display_label;
use trefoil_model::{CellValue, Model};

/// What the caller of a plan is told whose statement was refused. No transaction may be open in which it failed.
pub async fn explain_error(
    session: PostgresSession<'_>,
    model: &Model,
    action: &PlanAction,
    error: &tokio_postgres::Error,
) -> Result<Error, PostgresError> {
    if let Some(complaint) = required_violation(model, action, error) {
        return Ok(complaint);
    }
    let Some(broken) = broken_constraint(session, error).await? else { return Ok(refused_error(error)) };
    let Some(inquiry) = ConstraintProbe::new(Dialect::Postgres, model, action, &broken) else {
        return Ok(refused_error(error));
    };
    let mut found = Vec::new();
    for round in &inquiry.rounds {
        for question in round {
            let answer = match &question.sql {
                Some(sql) => session.query_integers(sql, &question.parameters).await?,
                None => Vec::new(),
            };
            found.extend(question.violations(&answer));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(inquiry.into_error(found).unwrap_or_else(|| refused_error(error)))
}

/// A column that must not be null by a rule that the schema does not know of.
fn required_violation(model: &Model, action: &PlanAction, error: &tokio_postgres::Error) -> Option<Error> {
    let refused = error.as_db_error().filter(|refused| refused.code().code() == "23502")?;
    let (owner, column) = (model.record(write_parts(action).record?), refused.column()?);
    let field = owner.fields.iter().find(|field| field.column == column)?;
    let message = format!("{} is required", display_label(&field.name));
    Some(Error::Invalid(vec![Violation::new(&field.input_name, "REQUIRED", message)]))
}

async fn broken_constraint(
    session: PostgresSession<'_>,
    error: &tokio_postgres::Error,
) -> Result<Option<BrokenConstraint>, PostgresError> {
    let Some(refused) = error.as_db_error() else { return Ok(None) };
    match refused.code().code() {
        "23505" => {
            let index = refused.constraint().unwrap_or_default();
            let columns = index_columns(session, refused.schema().unwrap_or_default(), index).await?;
            let table = refused.table().unwrap_or_default().to_owned();
            Ok(Some(BrokenConstraint::Unique { table, columns }))
        }
        "23503" => Ok(Some(BrokenConstraint::Reference)),
        _ => Ok(None),
    }
}

/// What a unique index is of; the message tells it too, but in the language of the server.
async fn index_columns(
    session: PostgresSession<'_>,
    schema: &str,
    index: &str,
) -> Result<Vec<String>, PostgresError> {
    let sql = "SELECT a.attname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
               JOIN pg_namespace AS n ON n.oid = c.relnamespace \
               JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) \
               WHERE n.nspname = $1 AND c.relname = $2 ORDER BY a.attnum";
    let named = [schema, index].map(|name| SqlParameter::Cell(CellValue::Text(name)));
    let mut rows = session.query(sql, &named).await?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next_row().await? {
        if let CellValue::Text(name) = read_cell(&row, 0) {
            columns.push(name.to_owned());
        }
    }
    Ok(columns)
}
