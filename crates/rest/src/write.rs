//! Records that are replaced, patched and deleted, safely against lost updates and retries.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};

use crate::merge_patch;
use trefoil_engine::{Absent, Key, Operation};
use trefoil_http::errors::problem::{Problem, Voice};
use trefoil_http::negotiation::format::Wanted;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_resources::field_values;
use trefoil_resources::field_values::{Deed, Fields};
use trefoil_resources::list_query::Takes;
use trefoil_resources::parsed_body;
use trefoil_resources::parsed_body::Object;
use trefoil_resources::record_shape::Shape;
use trefoil_resources::request::Ask;
use trefoil_resources::row_writer::{Form, Rows};
use trefoil_resources::write::{Finished, refusal, visible};

/// How often a patch is merged anew because somebody else was quicker.
const TRIES: usize = 8;

/// PUT, and POST to a record: both overwrite the whole of it.
pub async fn replace_record(
    request: &Ask<'_>,
    id: i64,
    object: Object,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let changed = apply_change(request, Deed::Replace(id), object, Absent::Reset, bytes).await;
    changed.map_err(|problem| json_problem(request, bytes, problem))
}

/// JSON Merge Patch.
pub async fn patch_record(
    request: &Ask<'_>,
    id: i64,
    object: Object,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let deed = Deed::Change(id);
    let patched = if merge_patch::reaches_inside(request.record(), &object) {
        merge_patch(request, id, object, bytes).await
    } else {
        apply_change(request, deed, object, Absent::Keep, bytes).await
    };
    patched.map_err(|problem| json_problem(request, bytes, problem))
}

/// Why a body of JSON is refused, with the names that are in it.
pub fn json_problem(request: &Ask<'_>, bytes: &[u8], problem: Problem) -> Problem {
    in_json(parsed_body::as_sent(request.record(), bytes, problem))
}

/// A patch of what is inside a field depends on what is there: merged with it, and written only over that.
async fn merge_patch(request: &Ask<'_>, id: i64, object: Object, bytes: &[u8]) -> Result<Response, Problem> {
    let (key, shape) = (request.key(bytes)?, wanted_shape(request)?);
    // Merged with what is there by now it could be one that cannot be carried out any more.
    if let Some(key) = &key
        && let Some(kept) = request.site.engine.replay(key).await?
    {
        return Ok(changed_to(&Finished::replayed(&kept)?, &shape));
    }
    let expected = request.expected(id).await?;
    let mut tries = 1;
    let done = loop {
        match merge_patch_once(request, id, object.clone(), expected, &shape, key.clone()).await {
            Err(Error::Stale { .. }) if expected.is_none() && tries < TRIES => tries += 1,
            done => break done,
        }
    };
    Ok(changed_to(&done.map_err(refusal)?, &shape))
}

async fn merge_patch_once(
    request: &Ask<'_>,
    id: i64,
    object: Object,
    expected: Option<i64>,
    shape: &Arc<Shape>,
    key: Option<Key>,
) -> Result<Finished> {
    let (record, selection) = (request.collection.record, &request.collection.whole.selection);
    let operation = Operation::Get { record, id, selection: selection.clone() };
    let found = request.site.engine.collect(operation, selection.clone()).await?;
    let row = found.rows.first().ok_or_else(|| request.no_record(record, id))?;
    let version = request.collection.whole.version(row);
    let version = version.ok_or_else(|| Error::internal("a record has no readable version"))?;
    let merged = merge_patch::merge(request.record(), selection, row, object);
    let change = Change { id, absent: Absent::Keep, expected: Some(expected.unwrap_or(version)) };
    write_change(request, &change, Deed::Change(id), merged, shape, key).await
}

async fn apply_change(
    request: &Ask<'_>,
    deed: Deed,
    object: Object,
    absent: Absent,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let (Deed::Replace(id) | Deed::Change(id)) = deed else {
        return Err(Error::internal("a creation changes nothing").into());
    };
    let change = Change { id, absent, expected: request.expected(id).await? };
    let (shape, key) = (wanted_shape(request)?, request.key(bytes)?);
    let done = write_change(request, &change, deed, object, &shape, key).await;
    Ok(changed_to(&done.map_err(refusal)?, &shape))
}

/// The fields that the answer to a change has.
fn wanted_shape(request: &Ask<'_>) -> Result<Arc<Shape>, Problem> {
    let query = request.query(request.collection.record, Takes::Fields)?;
    Ok(request.shape(request.collection, &query))
}

async fn write_change(
    request: &Ask<'_>,
    change: &Change,
    deed: Deed,
    object: Object,
    shape: &Arc<Shape>,
    key: Option<Key>,
) -> Result<Finished> {
    let operation =
        checked_operation(request, object, deed, |fields| change.operation(request, fields, shape));
    request.write(operation, Rows::new(shape, Form::One), key).await
}

/// For clients that take nothing but JSON: nothing is left to show.
pub async fn delete_record(request: &Ask<'_>, id: i64) -> Result<Response, Problem> {
    request.query(request.collection.record, Takes::Nothing)?;
    let expected = request.expected(id).await?;
    let done = request.carry_out(request.deletion(id, expected), request.key(b"")?).await;
    Ok(done.map_err(refusal)?.marked(StatusCode::NO_CONTENT.into_response()))
}

/// The operation that an object asks for, or what is wrong with its names and its values.
pub fn checked_operation(
    request: &Ask<'_>,
    object: Object,
    deed: Deed,
    operation: impl FnOnce(Fields) -> Operation,
) -> Result<Operation> {
    let (fields, mut violations) = field_values::of_object(request.record(), object, deed);
    let operation = operation(fields);
    if violations.is_empty() {
        return Ok(operation);
    }
    // Where no more names were read, what looks absent may only be unread.
    if violations.len() < coerce::MOST {
        violations.extend(request.site.engine.violations(operation));
    }
    Err(Error::Invalid(violations))
}

/// The record as a change left it.
fn changed_to(done: &Finished, shape: &Shape) -> Response {
    let tag = shape.tag(done.written.version);
    let headers = [(CONTENT_TYPE, Wanted::Json.content_type()), (ETAG, visible(&tag))];
    done.marked((headers, done.written.bytes.clone()).into_response())
}

/// What is to happen to a record, but for its fields.
struct Change {
    id: i64,
    absent: Absent,
    expected: Option<i64>,
}

impl Change {
    fn operation(&self, ask: &Ask<'_>, fields: Fields, shape: &Shape) -> Operation {
        Operation::Update {
            record: ask.collection.record,
            id: self.id,
            fields,
            absent: self.absent,
            expected_version: self.expected,
            selection: shape.selection.clone(),
        }
    }
}

/// Whoever sends JSON reads it.
pub fn in_json(problem: Problem) -> Problem {
    problem.voice(Voice::Json)
}
