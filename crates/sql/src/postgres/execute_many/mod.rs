//! Runs programs that write any number of records on PostgreSQL, inside the caller's transaction.

pub mod insert_records;
mod nested_write;

use futures_util::future::BoxFuture;

use trefoil_engine::plan::{PlanAction, PlannedListing};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::{Model, RecordId, StoredValue};

use crate::postgres::bulk_insert::statement_chunks;
use crate::postgres::constraint_errors::{execute_explained, execute_part, explain_error};
use crate::postgres::error::{PostgresError, refused_error};
use crate::postgres::execute_guarded::execute_guarded;
use crate::postgres::execute_many::insert_records::{insert_level, insert_records};
use crate::postgres::execute_many::nested_write::execute_nested;
use crate::postgres::execute_write::{execute_update, execute_write};
use crate::postgres::session::{PostgresSession, RowVisitor, internal_error};
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::compile::{CreatePrograms, Program, has_given_id};
use crate::statements::select::{count_parameters, match_parameters};
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write_many::check_match_count;
use crate::statements::write_parts::{WriteParts, write_parts};

/// Runs any plan, under the rules of its actor.
pub async fn execute_plan(
    session: PostgresSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let session = session.for_plan(plan);
    match plan.access_view() {
        Some(view) if plan.is_write() => {
            execute_guarded(session, model, plan, program, view, visit, unchecked_run).await
        }
        Some(_) | None => execute_unchecked(session, model, plan, program, visit).await,
    }
}

/// The future of [`execute_unchecked`], for those that it calls.
fn unchecked_run<'f>(
    session: PostgresSession<'f>,
    model: &'f Model,
    plan: &'f Plan,
    program: &'f Program,
    visit: RowVisitor<'f>,
) -> BoxFuture<'f, Result<Outcome, PostgresError>> {
    Box::pin(execute_unchecked(session, model, plan, program, visit))
}

/// The future of [`execute_plan`] for one of many plans.
fn execute_part_plan<'f>(
    session: PostgresSession<'f>,
    model: &'f Model,
    plan: &'f Plan,
    program: &'f Program,
    visit: RowVisitor<'f>,
) -> BoxFuture<'f, Result<Outcome, PostgresError>> {
    Box::pin(execute_plan(session, model, plan, program, visit))
}

/// Runs any plan. The rows of many new records are visited one after the other; if a later one fails, the sink drops
/// them.
async fn execute_unchecked(
    session: PostgresSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let session = session.for_plan(plan);
    match (&plan.action, program) {
        (PlanAction::CreateMany(plans), Program::CreateMany(programs)) => {
            if !plans.is_empty() {
                create_many(session, model, plans, programs, visit).await?;
            }
            Ok(Outcome::ChangedMany { count: plans.len() as u64 })
        }
        (PlanAction::UpdateMany { listing, .. }, Program::UpdateMany { count, update }) => {
            let matching = count_matches(session, count, listing).await?;
            let Some(update) = update else { return Ok(Outcome::ChangedMany { count: matching }) };
            let values = write_parts(&plan.action).value_parameters();
            let parameters: Vec<_> = match_parameters(listing).into_iter().chain(values).collect();
            Ok(Outcome::ChangedMany { count: session.execute(update, &parameters).await? })
        }
        (
            PlanAction::UpdateMany { listing, links: linked, .. },
            Program::UpdateManyLinks { find, links, update },
        ) => {
            let ids = session.read_values(find, &count_parameters(listing)).await?;
            check_match_count(listing, ids.len() as i64)?;
            for (statements, (_, others)) in links.iter().zip(linked) {
                let parameters = [SqlParameter::List(&ids), SqlParameter::ids(others)];
                session.execute_seen(&statements.remove, &parameters).await?;
                session.execute(&statements.add, &parameters).await?;
            }
            let values = write_parts(&plan.action).value_parameters();
            let parameters: Vec<_> = [SqlParameter::List(&ids)].into_iter().chain(values).collect();
            Ok(Outcome::ChangedMany { count: session.execute(update, &parameters).await? })
        }
        (PlanAction::DeleteMany { listing, .. }, Program::DeleteMany { count, delete }) => {
            count_matches(session, count, listing).await?;
            Ok(Outcome::ChangedMany { count: session.execute(delete, &match_parameters(listing)).await? })
        }
        (
            PlanAction::Upsert { record, listing, create, values, links, selection },
            Program::Upsert { find, create: create_program, update },
        ) => {
            let parameters = match_parameters(listing);
            let mut found = first_id(&session.read_values(find, &parameters).await?);
            if found.is_none() {
                let created = execute_write(session, create, create_program, &mut *visit);
                match execute_part(session, created).await {
                    Err(PostgresError::Refused(error)) => {
                        // Perhaps another session has created it meanwhile.
                        found = first_id(&session.read_values(find, &parameters).await?);
                        if found.is_none() {
                            let explained =
                                explain_error(session, model, write_parts(&create.action), &error).await?;
                            return Err(PostgresError::Plan(explained));
                        }
                    }
                    result => return result,
                }
            }
            let Some(id) = found else { return Err(internal_error("an upsert found no record")) };
            let parts = WriteParts::of_found_record(*record, &id, values, links);
            let updated = execute_update(session, parts, selection, update, visit);
            execute_explained(session, model, parts, updated).await
        }
        (PlanAction::DeleteMany { listing, .. }, Program::DeleteFound { find, delete }) => {
            let ids = session.read_values(find, &count_parameters(listing)).await?;
            check_match_count(listing, ids.len() as i64)?;
            let count = session.execute(delete, &[SqlParameter::List(&ids)]).await?;
            Ok(Outcome::ChangedMany { count })
        }
        (PlanAction::Nested(nested), Program::Nested { read_level }) => {
            execute_nested(session, model, nested, read_level, visit).await
        }
        // Written one by one, or read.
        (
            PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::Aggregate(_)
            | PlanAction::Create { .. }
            | PlanAction::Update { .. }
            | PlanAction::Delete { .. }
            | PlanAction::PlainList(_),
            _,
        ) => execute_write(session, plan, program, visit).await,
        (
            PlanAction::CreateMany(_)
            | PlanAction::UpdateMany { .. }
            | PlanAction::DeleteMany { .. }
            | PlanAction::Upsert { .. }
            | PlanAction::Nested(_),
            _,
        ) => Err(internal_error("a write to many records has the program of another plan")),
    }
}

/// Creates all records. If one is refused, they are created once more, one by one, to find out which.
async fn create_many(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[Plan],
    programs: &CreatePrograms,
    visit: RowVisitor<'_>,
) -> Result<(), PostgresError> {
    session.execute_control("SAVEPOINT part").await?;
    let refusal = match insert_all(session, model, plans, programs, visit).await {
        Ok(()) => return session.execute_control("RELEASE part").await,
        Err(PostgresError::Refused(error)) => error,
        Err(error) => return Err(error),
    };
    session.execute_control("ROLLBACK TO part").await?;
    for (index, plan) in plans.iter().enumerate() {
        let mut ignore = |_: &dyn Row| ();
        let created = execute_part_plan(session, model, plan, programs.of_plan(plan)?, &mut ignore);
        match execute_explained(session, model, write_parts(&plan.action), created).await {
            Ok(_) => {}
            Err(PostgresError::Plan(error)) => return Err(PostgresError::Plan(error.of_item(index))),
            Err(error) => return Err(error),
        }
    }
    // What was in the way is gone by now; the rows that were visited are not those of the second attempt.
    Err(PostgresError::Plan(refused_error(&refusal)))
}

async fn insert_all(
    session: PostgresSession<'_>,
    model: &Model,
    plans: &[Plan],
    programs: &CreatePrograms,
    visit: RowVisitor<'_>,
) -> Result<(), PostgresError> {
    let mut index = 0;
    for plans in plans.chunk_by(|one, next| has_given_id(one) == has_given_id(next)) {
        let program = programs.of_plan(&plans[0])?;
        let width = write_parts(&plans[0].action).create_parameters().count();
        let Some(read_level) = insert_level(program).filter(|_| width > 0) else {
            for plan in plans {
                let created = execute_part_plan(session, model, plan, program, &mut *visit).await;
                created.map_err(|error| of_item(error, index))?;
                index += 1;
            }
            continue;
        };
        let plans: Vec<&Plan> = plans.iter().collect();
        for chunk in statement_chunks(&plans, width) {
            for (_, tree) in insert_records(session, model, chunk, read_level).await? {
                tree.visit_rows(&mut *visit);
                index += 1;
            }
        }
    }
    Ok(())
}

/// The number of records that match, unless they are too many.
async fn count_matches(
    session: PostgresSession<'_>,
    count: &ReadStatement,
    listing: &PlannedListing,
) -> Result<u64, PostgresError> {
    let count = session.read_integer(count, &count_parameters(listing)).await?.unwrap_or_default();
    Ok(check_match_count(listing, count)?)
}

fn first_id(values: &[StoredValue]) -> Option<RecordId> {
    values.first().and_then(|value| RecordId::from_cell(value.as_cell()))
}

/// The error of one of many records.
fn of_item(error: PostgresError, index: usize) -> PostgresError {
    match error {
        PostgresError::Plan(error) => PostgresError::Plan(error.of_item(index)),
        error @ (PostgresError::Refused(_)
        | PostgresError::Retryable(_)
        | PostgresError::ConnectionLost(_)
        | PostgresError::Locked(_)
        | PostgresError::Store(_)) => error,
    }
}
