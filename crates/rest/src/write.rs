//! Records that are replaced, patched and deleted, safely against lost updates and retries.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};

use trefoil_engine::{IdempotencyKey, MissingFields, Operation};
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_resources::field_values::{self, FieldValues, WriteMode};
use trefoil_resources::list_query::ParamSet;
use trefoil_resources::parsed_body::{self, RecordObject};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::{RowEncoding, RowWriter};
use trefoil_resources::write::{CompletedWrite, header_value, write_problem};

use crate::merge_patch;

/// How often a patch is merged anew because somebody else was quicker.
const MERGE_ATTEMPTS: usize = 8;

/// PUT, and POST to a record: both overwrite the whole of it.
pub async fn replace_record(
    request: &ResourceRequest<'_>,
    id: i64,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let changed = apply_change(request, WriteMode::Replace(id), object, MissingFields::Reset, bytes).await;
    changed.map_err(|problem| json_problem(request, bytes, problem))
}

/// JSON Merge Patch.
pub async fn patch_record(
    request: &ResourceRequest<'_>,
    id: i64,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let deed = WriteMode::Patch(id);
    let patched = if merge_patch::needs_merge(request.record(), &object) {
        merge_patch(request, id, object, bytes).await
    } else {
        apply_change(request, deed, object, MissingFields::Keep, bytes).await
    };
    patched.map_err(|problem| json_problem(request, bytes, problem))
}

/// Why a body of JSON is refused, with the names that are in it.
pub fn json_problem(request: &ResourceRequest<'_>, bytes: &[u8], problem: Problem) -> Problem {
    as_json_problem(parsed_body::with_sent_names(request.record(), bytes, problem))
}

/// A patch of what is inside a field depends on what is there: merged with it, and written only over that.
async fn merge_patch(
    request: &ResourceRequest<'_>,
    id: i64,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let (key, shape) = (request.idempotency_key(bytes)?, wanted_shape(request)?);
    // Merged with what is there by now it could be one that cannot be carried out any more.
    if let Some(key) = &key
        && let Some(kept) = request.resources.engine.replay(key).await?
    {
        return Ok(changed_to(&CompletedWrite::replayed(&kept)?, &shape));
    }
    let expected = request.expected_version(id).await?;
    let mut tries = 1;
    let done = loop {
        match merge_patch_once(request, id, object.clone(), expected, &shape, key.clone()).await {
            Err(Error::Stale { .. }) if expected.is_none() && tries < MERGE_ATTEMPTS => tries += 1,
            done => break done,
        }
    };
    Ok(changed_to(&done.map_err(write_problem)?, &shape))
}

async fn merge_patch_once(
    request: &ResourceRequest<'_>,
    id: i64,
    object: RecordObject,
    expected: Option<i64>,
    shape: &Arc<RecordShape>,
    key: Option<IdempotencyKey>,
) -> Result<CompletedWrite> {
    let (record, selection) = (request.collection.record, &request.collection.full_shape.selection);
    let operation = Operation::Get { record, id, selection: selection.clone() };
    let found = request.resources.engine.collect(operation, selection.clone()).await?;
    let row = found.rows.first().ok_or_else(|| request.no_record(record, id))?;
    let version = request.collection.full_shape.version(row);
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
    deed: WriteMode,
    object: RecordObject,
    absent: MissingFields,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let (WriteMode::Replace(id) | WriteMode::Patch(id)) = deed else {
        return Err(Error::internal("a creation changes nothing").into());
    };
    let change =
        ChangeRequest { id, missing_fields: absent, expected_version: request.expected_version(id).await? };
    let (shape, key) = (wanted_shape(request)?, request.idempotency_key(bytes)?);
    let done = write_change(request, &change, deed, object, &shape, key).await;
    Ok(changed_to(&done.map_err(write_problem)?, &shape))
}

/// The fields that the answer to a change has.
fn wanted_shape(request: &ResourceRequest<'_>) -> Result<Arc<RecordShape>, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Fields)?;
    Ok(request.selected_shape(request.collection, &query))
}

async fn write_change(
    request: &ResourceRequest<'_>,
    change: &ChangeRequest,
    deed: WriteMode,
    object: RecordObject,
    shape: &Arc<RecordShape>,
    key: Option<IdempotencyKey>,
) -> Result<CompletedWrite> {
    let operation =
        checked_operation(request, object, deed, |fields| change.operation(request, fields, shape));
    request.write_one(operation, RowWriter::new(shape, RowEncoding::SingleObject), key).await
}

/// For clients that take nothing but JSON: nothing is left to show.
pub async fn delete_record(request: &ResourceRequest<'_>, id: i64) -> Result<Response, Problem> {
    request.parse_query(request.collection.record, ParamSet::Empty)?;
    let expected = request.expected_version(id).await?;
    let done =
        request.execute_write(request.delete_operation(id, expected), request.idempotency_key(b"")?).await;
    Ok(done.map_err(write_problem)?.mark_replayed(StatusCode::NO_CONTENT.into_response()))
}

/// The operation that an object asks for, or what is wrong with its names and its values.
pub fn checked_operation(
    request: &ResourceRequest<'_>,
    object: RecordObject,
    deed: WriteMode,
    operation: impl FnOnce(FieldValues) -> Operation,
) -> Result<Operation> {
    let (fields, mut violations) = field_values::resolve_object(request.record(), object, deed);
    let operation = operation(fields);
    if violations.is_empty() {
        return Ok(operation);
    }
    // Where no more names were read, what looks absent may only be unread.
    if violations.len() < coerce::MAX_VIOLATIONS {
        violations.extend(request.resources.engine.violations(operation));
    }
    Err(Error::Invalid(violations))
}

/// The record as a change left it.
fn changed_to(done: &CompletedWrite, shape: &RecordShape) -> Response {
    let tag = shape.etag(done.written.version);
    let headers = [(CONTENT_TYPE, ResponseFormat::Json.content_type()), (ETAG, header_value(&tag))];
    done.mark_replayed((headers, done.written.bytes.clone()).into_response())
}

/// What is to happen to a record, but for its fields.
struct ChangeRequest {
    id: i64,
    missing_fields: MissingFields,
    expected_version: Option<i64>,
}

impl ChangeRequest {
    fn operation(&self, ask: &ResourceRequest<'_>, fields: FieldValues, shape: &RecordShape) -> Operation {
        Operation::Update {
            record: ask.collection.record,
            id: self.id,
            fields,
            missing_fields: self.missing_fields,
            expected_version: self.expected_version,
            selection: shape.selection.clone(),
        }
    }
}

/// Whoever sends JSON reads it.
pub fn as_json_problem(problem: Problem) -> Problem {
    problem.with_format(ErrorFormat::Json)
}
