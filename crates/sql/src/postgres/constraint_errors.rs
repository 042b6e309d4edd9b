//! Explains a broken constraint by running the queries of a [`ConstraintProbe`] on PostgreSQL.

use trefoil_engine::{AccessView, Outcome};
use trefoil_model::error::{Error, Violation};
use trefoil_model::{CellValue, Model};

use crate::postgres::error::{PostgresError, refused_error};
use crate::postgres::session::{PostgresSession, read_cell};
use crate::statements::constraint_errors::{BrokenConstraint, ConstraintProbe};
use crate::statements::dialect::Dialect;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write_parts::WriteParts;

/// The error for the caller whose statement was refused. The failed statement must have been rolled back.
pub async fn explain_error(
    session: PostgresSession<'_>,
    model: &Model,
    parts: WriteParts<'_>,
    error: &tokio_postgres::Error,
) -> Result<Error, PostgresError> {
    if let Some(violation) = required_violation(model, parts, error) {
        return Ok(violation);
    }
    let Some(broken) = broken_constraint(session, error).await? else { return Ok(refused_error(error)) };
    if let (Some(view), BrokenConstraint::Unique { .. }) = (session.view, &broken)
        && let Some(refusal) = check_draft(session, model, view, parts).await?
    {
        return Ok(refusal);
    }
    let Some(probe) = ConstraintProbe::new(Dialect::Postgres, model, parts, &broken, session.view) else {
        return Ok(refused_error(error));
    };
    Ok(run_probe(session, probe).await?.unwrap_or_else(|| refused_error(error)))
}

/// What goes before a value that is taken: references, and the rules for the record as it would be.
async fn check_draft(
    session: PostgresSession<'_>,
    model: &Model,
    view: &AccessView,
    parts: WriteParts<'_>,
) -> Result<Option<Error>, PostgresError> {
    if let Some(probe) = ConstraintProbe::of_targets(Dialect::Postgres, model, parts)
        && let Some(error) = run_probe(session, probe).await?
    {
        return Ok(Some(error));
    }
    let rules = session.write_rules(model, view);
    match rules.of_draft(parts) {
        Some(check) => Ok(check.judge(&session.check_rows(&check).await?).err()),
        None => Ok(None),
    }
}

async fn run_probe(
    session: PostgresSession<'_>,
    probe: ConstraintProbe<'_>,
) -> Result<Option<Error>, PostgresError> {
    let mut found = Vec::new();
    for round in &probe.rounds {
        for query in round {
            let values = match &query.sql {
                Some(sql) => session.query_values(sql, &query.parameters).await?,
                None => Vec::new(),
            };
            found.extend(query.findings(&values));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(probe.into_error(found))
}

/// The violation of a NOT NULL that the schema does not contain.
fn required_violation(model: &Model, parts: WriteParts<'_>, error: &tokio_postgres::Error) -> Option<Error> {
    let db_error = error.as_db_error().filter(|db_error| db_error.code().code() == "23502")?;
    let (owner, column) = (model.record(parts.record?), db_error.column()?);
    let field = owner.fields.iter().find(|field| field.column == column)?;
    let message = format!("{} is required", field.label());
    Some(Error::Invalid(vec![Violation::new(&field.input_name, "REQUIRED", message)]))
}

async fn broken_constraint(
    session: PostgresSession<'_>,
    error: &tokio_postgres::Error,
) -> Result<Option<BrokenConstraint>, PostgresError> {
    let Some(db_error) = error.as_db_error() else { return Ok(None) };
    match db_error.code().code() {
        "23505" => {
            let index = db_error.constraint().unwrap_or_default();
            let columns = index_columns(session, db_error.schema().unwrap_or_default(), index).await?;
            let table = db_error.table().unwrap_or_default().to_owned();
            Ok(Some(BrokenConstraint::Unique { table, columns }))
        }
        "23503" => Ok(Some(BrokenConstraint::Reference)),
        _ => Ok(None),
    }
}

/// The columns of a unique index. The error message names them too, but in the server's language.
async fn index_columns(
    session: PostgresSession<'_>,
    schema: &str,
    index: &str,
) -> Result<Vec<String>, PostgresError> {
    let sql = "SELECT a.attname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid \
               JOIN pg_namespace AS n ON n.oid = c.relnamespace \
               JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) \
               WHERE n.nspname = $1 AND c.relname = $2 ORDER BY a.attnum";
    let parameters = [schema, index].map(|name| SqlParameter::Cell(CellValue::Text(name)));
    let mut rows = session.query(sql, &parameters).await?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next_row().await? {
        if let CellValue::Text(name) = read_cell(&row, 0) {
            columns.push(name.to_owned());
        }
    }
    Ok(columns)
}

/// Runs a write that is part of a plan. A refusal is explained here, where it is known which part was refused and
/// the parts before it can still be seen.
pub async fn execute_explained(
    session: PostgresSession<'_>,
    model: &Model,
    parts: WriteParts<'_>,
    write: impl Future<Output = Result<Outcome, PostgresError>>,
) -> Result<Outcome, PostgresError> {
    match execute_part(session, write).await {
        Err(PostgresError::Refused(error)) => {
            Err(PostgresError::Plan(explain_error(session, model, parts, &error).await?))
        }
        result => result,
    }
}

/// Runs a write that is part of a plan. After a refusal, the transaction is as it was before it.
pub async fn execute_part(
    session: PostgresSession<'_>,
    write: impl Future<Output = Result<Outcome, PostgresError>>,
) -> Result<Outcome, PostgresError> {
    session.execute_control("SAVEPOINT part").await?;
    let result = write.await;
    match &result {
        Ok(_) => session.execute_control("RELEASE part").await?,
        Err(PostgresError::Refused(_)) => session.execute_control("ROLLBACK TO part").await?,
        Err(
            PostgresError::Plan(_)
            | PostgresError::Retryable(_)
            | PostgresError::ConnectionLost(_)
            | PostgresError::Locked(_)
            | PostgresError::Store(_),
        ) => {}
    }
    result
}
