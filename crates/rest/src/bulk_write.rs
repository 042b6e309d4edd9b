//! Writes to many records of a collection: DELETE of those that match, PUT of those with unique values, and what PATCH shares.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use serde_json::json;

use trefoil_engine::{Condition, JobResult, Operation, Outcome, downcast_sink};
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::KeyForm;
use trefoil_model::RecordId;
use trefoil_model::error::{Error, Result};
use trefoil_resources::field_values::WriteMode;
use trefoil_resources::list_query::{ListQuery, ParamSet, query_problem};
use trefoil_resources::parsed_body::RecordObject;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::{RowEncoding, RowWriter, WrittenRecord};
use trefoil_resources::write::{mark_replayed, write_problem};

use crate::create::{checked_operations, run_many, written_record};
use crate::write::checked_operation;

/// Deletes every record that matches, and responds with their number.
pub async fn delete_matching(request: &ResourceRequest<'_>) -> Result<Response, Problem> {
    let conditions = matching_conditions(request).await?;
    let operation = Operation::DeleteMany { record: request.collection.record, conditions };
    count_response(request, Ok(operation), b"").await
}

/// The conditions of the query. A write to all records must say so.
pub async fn matching_conditions(request: &ResourceRequest<'_>) -> Result<Vec<Condition>, Problem> {
    let ListQuery { listing, all_records, .. } =
        request.parse_query(request.collection.record, ParamSet::Conditions).await?;
    let refuse = |message: &str| Err(query_problem(Error::invalid("all", "REQUIRED", message)));
    match (listing.conditions.iter().all(Condition::says_nothing), all_records) {
        (true, false) => refuse("this would reach all records: add a condition, or `all=true`"),
        (false, true) => refuse("`all=true` is for a request without conditions"),
        (true, true) | (false, false) => Ok(listing.conditions),
    }
}

/// Runs a write to many records, and responds with their number.
pub async fn count_response(
    request: &ResourceRequest<'_>,
    operation: Result<Operation>,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let key = request.idempotency_key(bytes)?;
    let rows = RowWriter::new(&request.collection.stored_shape, RowEncoding::Array);
    let result = match request.run_atomically(vec![operation], rows, key).await {
        Ok(result) => result,
        Err(error) => return Err(matching_problem(request, error).await),
    };
    let (count, replayed) = match result {
        JobResult::Replayed(stored) => (WrittenRecord::from_replay(KeyForm::Number, &stored)?.id, true),
        JobResult::Completed(sink) => {
            let (_, mut outcomes) = downcast_sink::<RowWriter>(sink)?.finish();
            let outcome = match outcomes.pop().map(|(_, outcome)| outcome).transpose() {
                Ok(outcome) => outcome,
                Err(error) => return Err(matching_problem(request, error).await),
            };
            let Some(Outcome::ChangedMany { count }) = outcome else {
                return Err(Error::internal(format!("unexpected outcome of a write: {outcome:?}")).into());
            };
            (RecordId::Number(count.cast_signed()), false)
        }
    };
    change_count(count, replayed)
}

/// The response with the number of changed records.
pub fn change_count(count: RecordId, replayed: bool) -> Result<Response, Problem> {
    let RecordId::Number(count) = count else { return Err(Error::internal("a count that is none").into()) };
    let headers = [(CONTENT_TYPE, ResponseFormat::Json.content_type())];
    Ok(mark_replayed((headers, json!({ "count": count }).to_string()).into_response(), replayed))
}

/// What is wrong with the conditions is said of the query, everything else of the body.
pub async fn matching_problem(request: &ResourceRequest<'_>, error: Error) -> Problem {
    let record = request.collection.record;
    match request.parse_query(record, ParamSet::Conditions).await {
        Ok(query) => match request.resources.engine.check_conditions(record, &query.listing.conditions) {
            Ok(()) => write_problem(error),
            Err(of_conditions) => query_problem(of_conditions),
        },
        Err(of_query) => of_query,
    }
}

/// Updates the record that has the same values in the fields `by`, else creates one.
pub async fn upsert_one(
    request: &ResourceRequest<'_>,
    object: RecordObject,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let query = upsert_query(request).await?;
    let shape = request.selected_shape(request.collection, &query);
    let operation = checked_operation(request, object, WriteMode::Create, |fields| Operation::Upsert {
        id: None,
        record: request.collection.record,
        by: query.unique_fields.clone(),
        fields,
        filled_fields: Vec::new(),
        selection: shape.selection.clone(),
    });
    let rows = RowWriter::new(&shape, RowEncoding::SingleObject);
    let write =
        request.write_one(operation, rows, request.idempotency_key(bytes)?).await.map_err(write_problem)?;
    // A record is new if this is its first version.
    let status = if write.record.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok(write.mark_replayed(written_record(request, &shape, status, &write)))
}

/// The same for several records, all or none. The response lists them in the order they were sent.
pub async fn upsert_many(
    request: &ResourceRequest<'_>,
    objects: Vec<Result<RecordObject>>,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let query = upsert_query(request).await?;
    request.check_included(&query, request.collection.record, objects.len() as i64).await?;
    let shape = request.selected_shape(request.collection, &query);
    let operations = checked_operations(request, objects, |fields| Operation::Upsert {
        id: None,
        record: request.collection.record,
        by: query.unique_fields.clone(),
        fields,
        filled_fields: Vec::new(),
        selection: shape.selection.clone(),
    })?;
    run_many(request, operations, &shape, StatusCode::OK, bytes).await
}

async fn upsert_query(request: &ResourceRequest<'_>) -> Result<ListQuery, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Upsert).await?;
    if query.unique_fields.is_empty() {
        let message = "`by` is missing: it names the unique fields that a record is found by";
        return Err(query_problem(Error::invalid("by", "REQUIRED", message)));
    }
    Ok(query)
}
