//! Puts the questions of an [`Inquiry`] to PostgreSQL, once its SQLSTATE says which kind of constraint broke.

use crate::postgres::error::{Fault, refusal};
use crate::postgres::session::{Session, cell};
use crate::statements::constraint_errors::{Constraint, Inquiry};
use crate::statements::dialect::Dialect;
use crate::statements::select::Parameter;
use crate::statements::write_parts::parts;
use trefoil_engine::plan::Action;
use trefoil_model::error::{Error, Violation};
use trefoil_model::naming::names::label;
use trefoil_model::{Cell, Model};

/// What the caller of a plan is told whose statement was refused. No transaction may be open in which it failed.
pub async fn blame(
    session: Session<'_>,
    model: &Model,
    action: &Action,
    error: &tokio_postgres::Error,
) -> Result<Error, Fault> {
    if let Some(complaint) = absent(model, action, error) {
        return Ok(complaint);
    }
    let Some(broken) = broken(session, error).await? else { return Ok(refusal(error)) };
    let Some(inquiry) = Inquiry::new(Dialect::Postgres, model, action, &broken) else {
        return Ok(refusal(error));
    };
    let mut found = Vec::new();
    for round in &inquiry.rounds {
        for question in round {
            let answer = match &question.sql {
                Some(sql) => session.numbers(sql, &question.bound).await?,
                None => Vec::new(),
            };
            found.extend(question.judge(&answer));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(inquiry.conclude(found).unwrap_or_else(|| refusal(error)))
}

/// A column that must not be null by a rule that the schema does not know of.
fn absent(model: &Model, action: &Action, error: &tokio_postgres::Error) -> Option<Error> {
    let refused = error.as_db_error().filter(|refused| refused.code().code() == "23502")?;
    let (owner, column) = (model.record(parts(action).record?), refused.column()?);
    let field = owner.fields.iter().find(|field| field.column == column)?;
    let message = format!("{} is required", label(&field.name));
    Some(Error::Invalid(vec![Violation::new(&field.input_name, "REQUIRED", message)]))
}

async fn broken(session: Session<'_>, error: &tokio_postgres::Error) -> Result<Option<Constraint>, Fault> {
    let Some(refused) = error.as_db_error() else { return Ok(None) };
    match refused.code().code() {
        "23505" => {
            let index = refused.constraint().unwrap_or_default();
            let columns = columns(session, refused.schema().unwrap_or_default(), index).await?;
            let table = refused.table().unwrap_or_default().to_owned();
            Ok(Some(Constraint::Unique { table, columns }))
        }
        "23503" => Ok(Some(Constraint::Reference)),
        _ => Ok(None),
    }
}

/// What a unique index is of; the message tells it too, but in the language of the server.
async fn columns(session: Session<'_>, schema: &str, index: &str) -> Result<Vec<String>, Fault> {
    let sql = "SELECT a.attname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
               JOIN pg_namespace AS n ON n.oid = c.relnamespace \
               JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) \
               WHERE n.nspname = $1 AND c.relname = $2 ORDER BY a.attnum";
    let named = [schema, index].map(|name| Parameter::Cell(Cell::Text(name)));
    let mut rows = session.rows(sql, &named).await?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next().await? {
        if let Cell::Text(name) = cell(&row, 0) {
            columns.push(name.to_owned());
        }
    }
    Ok(columns)
}
