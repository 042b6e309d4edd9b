//! PATCH of the records that match. An object inside the patch is merged with the value of each record.

use axum::response::Response;

use trefoil_engine::plan::check_match_count;
use trefoil_engine::{
    Condition, EngineRequest, JobResult, ListSlice, Listing, MissingFields, Operation, Outcome, Row, RowSink,
    downcast_sink,
};
use trefoil_http::errors::problem::Problem;
use trefoil_model::error::{Error, Result};
use trefoil_model::{KeyForm, RecordId};
use trefoil_resources::field_values::{FieldValues, WriteMode};
use trefoil_resources::parsed_body::RecordObject;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::WrittenRecord;

use crate::bulk_write::{change_count, count_response, matching_conditions, matching_problem};
use crate::merge_patch;
use crate::write::{MERGE_ATTEMPTS, check_given, checked_operation};

/// Changes the given fields of every record that matches, and responds with their number.
pub async fn patch_matching(
    request: &ResourceRequest<'_>,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let conditions = matching_conditions(request).await?;
    if merge_patch::needs_merge(request.record(), &object) {
        return merge_matching(request, conditions, object, bytes).await;
    }
    let record = request.collection.record;
    let operation = checked_operation(request, object, WriteMode::PatchMany, |fields| {
        Operation::UpdateMany { record, conditions, fields, filled_fields: Vec::new() }
    });
    count_response(request, operation, bytes).await
}

/// Merges the patch with every record that matches. All are written over the versions they were merged with, or none.
async fn merge_matching(
    request: &ResourceRequest<'_>,
    conditions: Vec<Condition>,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    check_given(request, &object, WriteMode::PatchMany, |fields| {
        change_nothing(request, &conditions, fields)
    })?;
    let key = request.idempotency_key(bytes)?;
    if let Some(key) = &key
        && let Some(stored) = request.resources.engine.replay(key).await?
    {
        // A retry needs what the request needs now.
        let nothing = change_nothing(request, &conditions, Vec::new());
        let selection = request.collection.stored_shape.selection.clone();
        request.resources.engine.collect(nothing, selection).await?;
        return change_count(WrittenRecord::from_replay(KeyForm::Number, &stored)?.id, true);
    }
    // What is wrong with the request itself is found without a record, and told as for a patch without objects.
    let plain = merge_patch::without_merged(request.record(), &object);
    let checked = checked_operation(request, plain, WriteMode::PatchMany, |fields| {
        change_nothing(request, &conditions, fields)
    });
    let mut attempts = 1;
    loop {
        let nothing = match &checked {
            Ok(nothing) => nothing.clone(),
            Err(error) => return Err(matching_problem(request, error.clone()).await),
        };
        let (ids, operations) = match merged_updates(request, &conditions, &object).await {
            Ok(updates) => updates,
            Err(error) => return Err(matching_problem(request, error).await),
        };
        if operations.is_empty() {
            return count_response(request, Ok(nothing), bytes).await;
        }
        let sink = Box::new(ChangeCounter::default());
        let job = EngineRequest { sink, idempotency_key: key.clone(), atomic: true };
        let counter = match request.resources.engine.run(operations, job).await? {
            JobResult::Completed(sink) => downcast_sink::<ChangeCounter>(sink)?,
            JobResult::Replayed(stored) => {
                return change_count(WrittenRecord::from_replay(KeyForm::Number, &stored)?.id, true);
            }
        };
        match counter.failure {
            None => return change_count(RecordId::Number(counter.count), false),
            Some((_, Error::Stale { .. })) if attempts < MERGE_ATTEMPTS => attempts += 1,
            Some((position, error)) => {
                return Err(matching_problem(request, of_record(request, &ids[position], error)).await);
            }
        }
    }
}

/// A change of none of the records that match: it asks for what the change of all of them needs.
fn change_nothing(request: &ResourceRequest<'_>, conditions: &[Condition], fields: FieldValues) -> Operation {
    let conditions = conditions.iter().cloned().chain([Condition::HasId(Vec::new())]).collect();
    let record = request.collection.record;
    Operation::UpdateMany { record, conditions, fields, filled_fields: Vec::new() }
}

/// The ids of the records that match, and an update of each with the patch merged into its values.
async fn merged_updates(
    request: &ResourceRequest<'_>,
    conditions: &[Condition],
    object: &RecordObject,
) -> Result<(Vec<RecordId>, Vec<Result<Operation>>)> {
    let (record, shape) = (request.collection.record, &request.collection.stored_shape);
    let engine = &request.resources.engine;
    let max = engine.limits().bulk;
    // One more than is allowed, to see that there are more.
    let slice = ListSlice::Range { offset: 0, limit: Some(i64::from(max) + 1) };
    let listing = Listing { conditions: conditions.to_vec(), slice, ..Listing::default() };
    let list = Operation::List { record, listing, selection: shape.selection.clone() };
    let found = engine.collect(list, shape.selection.clone()).await?;
    check_match_count(found.rows.len() as u64, max)?;
    let unreadable = || Error::internal("a record has no readable id and version");
    let id_field = request.record().id_field();
    let id_column = shape.selection.columns.iter().position(|column| *column == id_field);
    let id_column = id_column.ok_or_else(unreadable)?;
    let (mut ids, mut updates) = (Vec::new(), Vec::new());
    for row in &found.rows {
        let id = RecordId::from_cell(row.cell(id_column)).ok_or_else(unreadable)?;
        let version = shape.version(row).ok_or_else(unreadable)?;
        let merged = merge_patch::merge_fields(request.record(), &shape.selection, row, object.clone());
        updates.push(checked_operation(request, merged, WriteMode::Patch(&id), |fields| {
            request.update_operation(&id, fields, MissingFields::Keep, Some(version))
        }));
        ids.push(id);
    }
    Ok((ids, updates))
}

/// A mistake in the values of one record, which it names.
fn of_record(request: &ResourceRequest<'_>, id: &RecordId, error: Error) -> Error {
    let Error::Invalid(mut violations) = error else { return error };
    let label = request.record().label();
    for violation in &mut violations {
        violation.message = format!("{} ({label} {id})", violation.message);
    }
    Error::Invalid(violations)
}

/// Counts the records that were changed, and keeps the first failure.
#[derive(Default)]
struct ChangeCounter {
    count: i64,
    failure: Option<(usize, Error)>,
    is_missing: bool,
}

impl RowSink for ChangeCounter {
    fn row(&mut self, _plan: usize, _row: &dyn Row) {}

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        match outcome {
            Ok(outcome) => {
                self.is_missing = outcome.is_missing();
                self.count += 1;
            }
            Err(Error::RolledBack) => {}
            Err(error) => self.failure = self.failure.take().or(Some((plan, error))),
        }
    }

    /// A record that was deleted since it was read does not match any more.
    fn refusal(&mut self, _plan: usize) -> Option<Error> {
        self.is_missing.then_some(Error::Stale { expected: 0, found: 0 })
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        let is_done = self.failure.is_none();
        is_done.then(|| WrittenRecord::to_replay(&RecordId::Number(self.count), 0, false, &[]))
    }

    fn reset(&mut self) {
        *self = ChangeCounter::default();
    }
}
