//! PUT, PATCH and DELETE of a record, protected against lost updates and safe to retry.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};

use trefoil_engine::{IdempotencyKey, MissingFields, Operation};
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::RecordId;
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_resources::field_values::{self, FieldValues, WriteMode};
use trefoil_resources::list_query::ParamSet;
use trefoil_resources::parsed_body::{self, RecordObject};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::{RowEncoding, RowWriter};
use trefoil_resources::write::{CompletedWrite, header_value, write_problem};

use crate::merge_patch;

/// Attempts at merging a patch while concurrent writes change the record in between.
pub const MERGE_ATTEMPTS: usize = 8;

/// PUT and POST to a record: both replace all of it.
pub async fn replace_record(
    request: &ResourceRequest<'_>,
    id: &RecordId,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let changed = apply_change(request, WriteMode::Replace(id), object, MissingFields::Reset, bytes).await;
    changed.map_err(|problem| json_problem(request, bytes, problem))
}

/// JSON Merge Patch.
pub async fn patch_record(
    request: &ResourceRequest<'_>,
    id: &RecordId,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let patched = if merge_patch::needs_merge(request.record(), &object) {
        merge_patch(request, id, object, bytes).await
    } else {
        apply_change(request, WriteMode::Patch(id), object, MissingFields::Keep, bytes).await
    };
    patched.map_err(|problem| json_problem(request, bytes, problem))
}

/// The problem with a JSON body, worded with the field names as the client sent them.
pub fn json_problem(request: &ResourceRequest<'_>, bytes: &[u8], problem: Problem) -> Problem {
    as_json_problem(parsed_body::with_sent_names(request.record(), bytes, problem))
}

/// Patches inside fields: the patch is merged with the stored record and written only over the version it was merged
/// with.
async fn merge_patch(
    request: &ResourceRequest<'_>,
    id: &RecordId,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let mistakes = patch_mistakes(request, id, &object)?;
    let (key, shape) = (request.idempotency_key(bytes)?, response_shape(request).await?);
    // Replay an answered idempotency key before merging: against today's record the same patch may produce a
    // different write or fail.
    if let Some(key) = &key
        && let Some(stored) = request.resources.engine.replay(key).await?
    {
        // A retry needs what the request needs now; a change without fields asks for nothing else.
        let (missing_fields, selection) =
            (MissingFields::Keep, request.collection.stored_shape.selection.clone());
        if request.resources.engine.model().access.is_some() {
            let repeated = request.update_operation(id, Vec::new(), missing_fields, None);
            let allowed = request.resources.engine.collect(repeated, selection).await?;
            if matches!(allowed.outcome, Some(Ok(outcome)) if outcome.is_missing()) {
                return Err(request.not_found_error(request.collection.record, id).into());
            }
        }
        let replayed = CompletedWrite::replayed(request.record().key_form(), &stored)?;
        return Ok(change_response(request, &replayed, &shape));
    }
    let expected = request.expected_version(id).await?;
    let mut attempts = 1;
    let written = loop {
        match merge_patch_once(request, id, object.clone(), expected, &shape, key.clone()).await {
            Err(Error::Stale { .. }) if expected.is_none() && attempts < MERGE_ATTEMPTS => attempts += 1,
            Err(Error::NotFound { .. }) if !mistakes.is_empty() => break Err(Error::Invalid(mistakes)),
            written => break written,
        }
    };
    Ok(change_response(request, &written.map_err(write_problem)?, &shape))
}

/// What is wrong with a patch whatever the record is, for one that is not there. An error refuses it before the record is
/// read.
fn patch_mistakes(
    request: &ResourceRequest<'_>,
    id: &RecordId,
    object: &RecordObject,
) -> Result<Vec<Violation>> {
    let (engine, record) = (&request.resources.engine, request.record());
    let change = |fields| request.update_operation(id, fields, MissingFields::Keep, None);
    let (input, _) =
        field_values::resolve_object(engine.model(), record, object.clone(), WriteMode::Patch(id));
    engine.check_access(&change(input.fields).with_related(input.related))?;
    let whole = merge_patch::without_merged(record, object);
    match checked_operation(request, whole, WriteMode::Patch(id), change) {
        Ok(operation) => Ok(engine.violations(operation)),
        Err(Error::Invalid(violations)) => Ok(violations),
        Err(error) => Err(error),
    }
}

/// Refuses fields of a body that the actor may never set, whatever they hold.
pub fn check_given(
    request: &ResourceRequest<'_>,
    object: &RecordObject,
    mode: WriteMode<'_>,
    operation: impl FnOnce(FieldValues) -> Operation,
) -> Result<()> {
    let engine = &request.resources.engine;
    let (input, _) = field_values::resolve_object(engine.model(), request.record(), object.clone(), mode);
    engine.check_access(&operation(input.fields))
}

async fn merge_patch_once(
    request: &ResourceRequest<'_>,
    id: &RecordId,
    object: RecordObject,
    expected: Option<i64>,
    shape: &Arc<RecordShape>,
    key: Option<IdempotencyKey>,
) -> Result<CompletedWrite> {
    let (record, selection) = (request.collection.record, &request.collection.stored_shape.selection);
    let operation = Operation::Get { record, id: id.clone(), selection: selection.clone() };
    let found = request.resources.engine.collect(operation, selection.clone()).await?;
    let row = found.rows.first().ok_or_else(|| request.not_found_error(record, id))?;
    let version = request.collection.stored_shape.version(row);
    let version = version.ok_or_else(|| Error::internal("a record has no readable version"))?;
    let merged = merge_patch::merge_fields(request.record(), selection, row, object);
    let change = ChangeRequest {
        id,
        missing_fields: MissingFields::Keep,
        expected_version: Some(expected.unwrap_or(version)),
    };
    write_change(request, &change, WriteMode::Patch(id), merged, shape, key).await
}

async fn apply_change(
    request: &ResourceRequest<'_>,
    mode: WriteMode<'_>,
    object: RecordObject,
    missing_fields: MissingFields,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let (WriteMode::Replace(id) | WriteMode::Patch(id)) = mode else {
        return Err(Error::internal("a creation changes nothing").into());
    };
    let change = ChangeRequest { id, missing_fields, expected_version: request.expected_version(id).await? };
    let (shape, key) = (response_shape(request).await?, request.idempotency_key(bytes)?);
    let written = write_change(request, &change, mode, object, &shape, key).await;
    Ok(change_response(request, &written.map_err(write_problem)?, &shape))
}

/// The fields of the response to a change.
async fn response_shape(request: &ResourceRequest<'_>) -> Result<Arc<RecordShape>, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Fields).await?;
    Ok(request.selected_shape(request.collection, &query))
}

async fn write_change(
    request: &ResourceRequest<'_>,
    change: &ChangeRequest<'_>,
    mode: WriteMode<'_>,
    object: RecordObject,
    shape: &Arc<RecordShape>,
    key: Option<IdempotencyKey>,
) -> Result<CompletedWrite> {
    let operation =
        checked_operation(request, object, mode, |fields| change.operation(request, fields, shape));
    request.write_one(operation, RowWriter::new(shape, RowEncoding::SingleObject), key).await
}

/// DELETE by a client that accepts nothing but JSON: 204.
pub async fn delete_record(request: &ResourceRequest<'_>, id: &RecordId) -> Result<Response, Problem> {
    request.parse_query(request.collection.record, ParamSet::Empty).await?;
    let expected = request.expected_version(id).await?;
    let written =
        request.execute_write(request.delete_operation(id, expected), request.idempotency_key(b"")?).await;
    Ok(written.map_err(write_problem)?.mark_replayed(StatusCode::NO_CONTENT.into_response()))
}

/// The operation for an object, or all violations of its names and values.
pub fn checked_operation(
    request: &ResourceRequest<'_>,
    object: RecordObject,
    mode: WriteMode<'_>,
    operation: impl FnOnce(FieldValues) -> Operation,
) -> Result<Operation> {
    let model = request.resources.engine.model();
    let (input, mut violations) = field_values::resolve_object(model, request.record(), object, mode);
    let operation = operation(input.fields);
    if !operation.takes_related() {
        violations.extend(input.related.iter().map(|related| related.unsupported(request.record())));
    }
    let operation = operation.with_related(input.related);
    if violations.is_empty() {
        return Ok(operation);
    }
    request.resources.engine.check_access(&operation)?;
    // At the limit the remaining names were not read, so that a field may look missing without being so.
    if violations.len() < coerce::MAX_VIOLATIONS {
        violations.extend(request.resources.engine.violations(operation));
    }
    Err(Error::Invalid(violations))
}

/// The response with the changed record.
fn change_response(request: &ResourceRequest<'_>, write: &CompletedWrite, shape: &RecordShape) -> Response {
    let tag = request.etag(shape, write.record.version, &write.record.bytes);
    let headers = [(CONTENT_TYPE, ResponseFormat::Json.content_type()), (ETAG, header_value(&tag))];
    write.mark_replayed((headers, write.record.bytes.clone()).into_response())
}

/// A change to a record, without its fields.
struct ChangeRequest<'a> {
    id: &'a RecordId,
    missing_fields: MissingFields,
    expected_version: Option<i64>,
}

impl ChangeRequest<'_> {
    fn operation(
        &self,
        request: &ResourceRequest<'_>,
        fields: FieldValues,
        shape: &RecordShape,
    ) -> Operation {
        Operation::Update {
            record: request.collection.record,
            id: self.id.clone(),
            fields,
            filled_fields: Vec::new(),
            missing_fields: self.missing_fields,
            expected_version: self.expected_version,
            selection: shape.selection.clone(),
        }
    }
}

/// Formats the problem as JSON, since the client sent JSON.
pub fn as_json_problem(problem: Problem) -> Problem {
    problem.with_format(ErrorFormat::Json)
}
