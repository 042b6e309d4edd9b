//! POST to a collection: creates one record, many records at once, or one record from plain text.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderMap, StatusCode};

use trefoil_engine::plan::check_record_count;
use trefoil_engine::{JobResult, Operation, downcast_sink};
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::Value;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_resources::field_values::{FieldValues, WriteMode};
use trefoil_resources::list_query::ParamSet;
use trefoil_resources::parsed_body::{RecordObject, merge_errors};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::{RowEncoding, RowWriter, WrittenRecord};
use trefoil_resources::write::{CompletedWrite, header_value, mark_replayed, write_problem};

use crate::read_response::close_rows;
use crate::write::checked_operation;

/// Creates one record and responds with it.
pub async fn create_one(
    request: &ResourceRequest<'_>,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Fields).await?;
    let shape = request.selected_shape(request.collection, &query);
    let operation = checked_operation(request, object, WriteMode::Create, |fields| {
        request.create_operation(fields, &shape.selection)
    });
    let write = request
        .write_one(
            operation,
            RowWriter::new(&shape, RowEncoding::SingleObject),
            request.idempotency_key(bytes)?,
        )
        .await
        .map_err(write_problem)?;
    let response = written_record(request, &shape, StatusCode::CREATED, &write);
    Ok(write.mark_replayed(response))
}

/// The response with a written record, and where it is.
pub fn written_record(
    request: &ResourceRequest<'_>,
    shape: &RecordShape,
    status: StatusCode,
    write: &CompletedWrite,
) -> Response {
    let tag = request.etag(shape, write.record.version, &write.record.bytes);
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, ResponseFormat::Json.content_type())]);
    headers.extend(request.location(&write.record));
    headers.insert(ETAG, header_value(&tag));
    (status, headers, write.record.bytes.clone()).into_response()
}

/// Creates all records or none. The response lists them in the order they were sent.
pub async fn create_many(
    request: &ResourceRequest<'_>,
    objects: Vec<Result<RecordObject>>,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Fields).await?;
    request.check_included(&query, request.collection.record, objects.len() as i64).await?;
    let shape = request.selected_shape(request.collection, &query);
    let operations =
        checked_operations(request, objects, |fields| request.create_operation(fields, &shape.selection))?;
    run_many(request, operations, &shape, StatusCode::CREATED, bytes).await
}

/// An operation for each object, or its violations.
pub fn checked_operations(
    request: &ResourceRequest<'_>,
    objects: Vec<Result<RecordObject>>,
    operation: impl Fn(FieldValues) -> Operation,
) -> Result<Vec<Result<Operation>>> {
    check_record_count(objects.len(), request.resources.engine.limits())?;
    let mut invalid_count = 0;
    let check = |object: Result<RecordObject>| {
        if invalid_count == coerce::MAX_VIOLATIONS {
            return Err(Error::RolledBack);
        }
        let checked =
            object.and_then(|object| checked_operation(request, object, WriteMode::Create, &operation));
        invalid_count += usize::from(checked.is_err());
        checked
    };
    Ok(objects.into_iter().map(check).collect())
}

/// Runs all operations or none, and responds with their records.
pub async fn run_many(
    request: &ResourceRequest<'_>,
    operations: Vec<Result<Operation>>,
    shape: &Arc<RecordShape>,
    status: StatusCode,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let key = request.idempotency_key(bytes)?;
    let rows = RowWriter::new(shape, RowEncoding::Array);
    let (bytes, replayed) = match request.run_atomically(operations, rows, key).await? {
        JobResult::Replayed(bytes) => {
            (WrittenRecord::from_replay(request.record().key_form(), &bytes)?.bytes, true)
        }
        JobResult::Completed(sink) => {
            let (written, outcomes) = downcast_sink::<RowWriter>(sink)?.finish();
            let failures =
                outcomes.into_iter().filter_map(|(number, outcome)| Some((number, outcome.err()?)));
            let failures: Vec<_> = failures.collect();
            if !failures.is_empty() {
                return Err(merge_errors(failures).into());
            }
            (written.bytes, false)
        }
    };
    let headers = [(CONTENT_TYPE, ResponseFormat::Json.content_type())];
    let response = (status, headers, close_rows(RowEncoding::Array, bytes)).into_response();
    Ok(mark_replayed(response, replayed))
}

/// Creates a record from a plain text body, where the collection is declared as a list of texts.
pub async fn create_from_text(
    request: &ResourceRequest<'_>,
    text: String,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let Some(texts) = &request.collection.texts else {
        return Err(Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    };
    let message = format!("Added: {text}\n");
    let blank = texts.list.blank_fields.iter().map(|field| (*field, Value::from("")));
    let fields = std::iter::once((texts.list.field, Value::from(text))).chain(blank).collect();
    let operation = request.create_operation(fields, &request.collection.stored_shape.selection);
    let write =
        request.execute_write(operation, request.idempotency_key(bytes)?).await.map_err(write_problem)?;
    let tag = request.etag(&request.collection.stored_shape, write.record.version, &[]);
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, ResponseFormat::TextLines.content_type())]);
    headers.extend(request.location(&write.record));
    headers.insert(ETAG, header_value(&tag));
    Ok(write.mark_replayed((StatusCode::CREATED, headers, message).into_response()))
}
