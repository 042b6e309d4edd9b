//! Executes programs that write any number of records, inside the caller's transaction.

mod nested_write;

use trefoil_engine::plan::{PlanAction, PlannedListing};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::error::Error;
use trefoil_model::{Model, RecordId, StoredValue};

use crate::sqlite::constraint_errors::explain_error;
use crate::sqlite::error::SqliteError;
use crate::sqlite::execute_guarded::execute_guarded;
use crate::sqlite::execute_many::nested_write::execute_nested;
use crate::sqlite::execute_write::{execute_update, execute_write};
use crate::sqlite::session::SqliteSession;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::compile::Program;
use crate::statements::select::{count_parameters, match_parameters};
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write_many::check_match_count;
use crate::statements::write_parts::{WriteParts, write_parts};

/// Runs any plan, under the rules of its actor.
pub fn execute_plan(
    session: SqliteSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: &mut dyn FnMut(&dyn Row),
) -> Result<Outcome, SqliteError> {
    let session = session.for_plan(plan);
    match plan.access_view() {
        Some(view) if plan.is_write() => {
            execute_guarded(session, model, plan, program, view, visit, execute_unchecked)
        }
        Some(_) | None => execute_unchecked(session, model, plan, program, visit),
    }
}

/// Runs any plan. The rows of many new records are visited one after the other; if a later one fails, the sink drops
/// them.
fn execute_unchecked(
    session: SqliteSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: &mut dyn FnMut(&dyn Row),
) -> Result<Outcome, SqliteError> {
    let write = ManyWrite { session, model, parts: write_parts(&plan.action) };
    match (&plan.action, program) {
        (PlanAction::CreateMany(plans), Program::CreateMany(programs)) => {
            for (index, plan) in plans.iter().enumerate() {
                let program = programs.of_plan(plan)?;
                execute_plan(session, model, plan, program, visit).map_err(|error| match error {
                    SqliteError::Plan(error) => SqliteError::Plan(error.of_item(index)),
                    error @ SqliteError::Store(_) => error,
                })?;
            }
            Ok(Outcome::ChangedMany { count: plans.len() as u64 })
        }
        (PlanAction::UpdateMany { listing, .. }, Program::UpdateMany { count, update }) => {
            let matching = write.count_matches(count, listing)?;
            let Some(update) = update else { return Ok(Outcome::ChangedMany { count: matching }) };
            let values = write.parts.value_parameters();
            let parameters: Vec<_> = match_parameters(listing).into_iter().chain(values).collect();
            Ok(Outcome::ChangedMany { count: write.execute(update, &parameters)? as u64 })
        }
        (
            PlanAction::UpdateMany { listing, links: linked, .. },
            Program::UpdateManyLinks { find, links, update },
        ) => {
            let ids = session.read_values(find, &count_parameters(listing))?;
            check_match_count(listing, ids.len() as i64)?;
            for (statements, (_, others)) in links.iter().zip(linked) {
                let parameters = [SqlParameter::List(&ids), SqlParameter::ids(others)];
                session.write_links(&statements.side, || {
                    write.execute_seen(&statements.remove, &parameters)?;
                    write.execute(&statements.add, &parameters)
                })?;
            }
            let values = write.parts.value_parameters();
            let parameters: Vec<_> = [SqlParameter::List(&ids)].into_iter().chain(values).collect();
            Ok(Outcome::ChangedMany { count: write.execute(update, &parameters)? as u64 })
        }
        (PlanAction::DeleteMany { listing, .. }, Program::DeleteMany { count, delete }) => {
            write.count_matches(count, listing)?;
            Ok(Outcome::ChangedMany { count: write.execute(delete, &match_parameters(listing))? as u64 })
        }
        (
            PlanAction::Upsert { record, listing, create, values, links, selection },
            Program::Upsert { find, create: create_program, update },
        ) => match first_id(&session.read_values(find, &match_parameters(listing))?) {
            Some(id) => {
                let parts = WriteParts::of_found_record(*record, &id, values, links);
                execute_update(session, model, parts, selection, update, visit)
            }
            None => execute_write(session, model, create, create_program, visit),
        },
        (PlanAction::DeleteMany { listing, .. }, Program::DeleteFound { find, delete }) => {
            let ids = session.read_values(find, &count_parameters(listing))?;
            check_match_count(listing, ids.len() as i64)?;
            let count = write.execute(delete, &[SqlParameter::List(&ids)])? as u64;
            Ok(Outcome::ChangedMany { count })
        }
        (PlanAction::Nested(nested), Program::Nested { read_level }) => {
            execute_nested(session, model, nested, read_level, visit)
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
        ) => execute_write(session, model, plan, program, visit),
        (
            PlanAction::CreateMany(_)
            | PlanAction::UpdateMany { .. }
            | PlanAction::DeleteMany { .. }
            | PlanAction::Upsert { .. }
            | PlanAction::Nested(_),
            _,
        ) => Err(Error::internal("a write to many records has the program of another plan").into()),
    }
}

struct ManyWrite<'a> {
    session: SqliteSession<'a>,
    model: &'a Model,
    parts: WriteParts<'a>,
}

impl ManyWrite<'_> {
    /// The number of records that match, unless they are too many.
    fn count_matches(&self, count: &ReadStatement, listing: &PlannedListing) -> Result<u64, SqliteError> {
        let count = self.session.read_integer(count, &count_parameters(listing))?.unwrap_or_default();
        Ok(check_match_count(listing, count)?)
    }

    fn execute_seen(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<usize, SqliteError> {
        let run = self.session.execute_seen(statement, parameters);
        run.map_err(|error| explain_error(self.session, self.model, self.parts, error))
    }

    /// Returns the number of changed rows.
    fn execute(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> Result<usize, SqliteError> {
        let run = self.session.execute(sql, parameters);
        run.map_err(|error| explain_error(self.session, self.model, self.parts, error))
    }
}

fn first_id(values: &[StoredValue]) -> Option<RecordId> {
    values.first().and_then(|value| RecordId::from_cell(value.as_cell()))
}
