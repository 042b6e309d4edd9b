//! Records that are created: from a JSON object, many at once, or from nothing but a text.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, LOCATION};

use crate::read::closed;
use crate::write::checked_operation;
use trefoil_engine::{Done, Operation, answer_as};
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::format::Wanted;
use trefoil_model::Value;
use trefoil_model::error::{Error, Result};
use trefoil_model::values::coerce;
use trefoil_resources::field_values::Deed;
use trefoil_resources::list_query::Takes;
use trefoil_resources::parsed_body::{Object, numbered};
use trefoil_resources::request::Ask;
use trefoil_resources::row_writer::{Form, Rows, Written};
use trefoil_resources::write::{mark, refusal, visible};

pub async fn create_one(request: &Ask<'_>, object: Object, bytes: &[u8]) -> Result<Response, Problem> {
    let query = request.query(request.collection.record, Takes::Fields)?;
    let shape = request.shape(request.collection, &query);
    let operation =
        checked_operation(request, object, Deed::Create, |fields| request.creation(fields, &shape.selection));
    let done =
        request.write(operation, Rows::new(&shape, Form::One), request.key(bytes)?).await.map_err(refusal)?;
    let location = format!("{}/{}", request.collection.path, done.written.id);
    let tag = shape.tag(done.written.version);
    let headers =
        [(CONTENT_TYPE, Wanted::Json.content_type()), (LOCATION, visible(&location)), (ETAG, visible(&tag))];
    Ok(done.marked((StatusCode::CREATED, headers, done.written.bytes.clone()).into_response()))
}

/// All or none; the answer is the records in the order they were sent.
pub async fn create_many(
    request: &Ask<'_>,
    objects: Vec<Result<Object>>,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let query = request.query(request.collection.record, Takes::Fields)?;
    let shape = request.shape(request.collection, &query);
    let key = request.key(bytes)?;
    let mut wrong = 0;
    let judge = |object: Result<Object>| {
        if wrong == coerce::MOST {
            return Err(Error::Cancelled);
        }
        let judged = object.and_then(|object| {
            checked_operation(request, object, Deed::Create, |fields| {
                request.creation(fields, &shape.selection)
            })
        });
        wrong += usize::from(judged.is_err());
        judged
    };
    let operations: Vec<Result<Operation>> = objects.into_iter().map(judge).collect();
    let rows = Rows::new(&shape, Form::Array);
    let (bytes, replayed) = match request.run(operations, rows, key).await? {
        Done::Replayed(bytes) => (Written::kept(&bytes)?.bytes, true),
        Done::Answered(answer) => {
            let (read, outcomes) = answer_as::<Rows>(answer)?.finish();
            let failures = outcomes.into_iter().filter_map(|(number, end)| Some((number, end.err()?)));
            let failures: Vec<_> = failures.collect();
            if !failures.is_empty() {
                return Err(numbered(failures).into());
            }
            (read.bytes, false)
        }
    };
    let headers = [(CONTENT_TYPE, Wanted::Json.content_type())];
    let response = (StatusCode::CREATED, headers, closed(Form::Array, bytes)).into_response();
    Ok(mark(response, replayed))
}

pub async fn create_from_text(request: &Ask<'_>, text: String, bytes: &[u8]) -> Result<Response, Problem> {
    let Some(texts) = &request.collection.texts else {
        return Err(Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    };
    let said = format!("Added: {text}\n");
    let blank = texts.list.blank.iter().map(|field| (*field, Value::from("")));
    let fields = std::iter::once((texts.list.field, Value::from(text))).chain(blank).collect();
    let operation = request.creation(fields, &request.collection.whole.selection);
    let done = request.carry_out(operation, request.key(bytes)?).await.map_err(refusal)?;
    let location = format!("{}/{}", request.collection.path, done.written.id);
    let headers = [
        (CONTENT_TYPE, Wanted::Lines.content_type()),
        (LOCATION, visible(&location)),
        (ETAG, visible(&request.collection.whole.tag(done.written.version))),
    ];
    Ok(done.marked((StatusCode::CREATED, headers, said).into_response()))
}
