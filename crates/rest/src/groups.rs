//! GET of a list with `aggregate`: groups of its records as flat objects or as a table.

use std::sync::Arc;

use axum::response::Response;

use trefoil_engine::{Operation, Outcome, PreparedSelection, Selection};
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::{RecordId, RecordTypeId};
use trefoil_resources::aggregate_query::GroupQuery;
use trefoil_resources::collection::NestedCollection;
use trefoil_resources::list_query::query_problem;
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::{RowEncoding, RowWriter};

use crate::read_response::{attachment_header, close_rows, list_etag, tagged_response};

/// The groups of all records of a type, or of those in a list of one record; 404 if that does not exist.
pub async fn read_groups(
    request: &ResourceRequest<'_>,
    record: RecordTypeId,
    format: ResponseFormat,
    parent: Option<(&RecordId, &NestedCollection)>,
) -> Result<Response, Problem> {
    let engine = &request.resources.engine;
    let GroupQuery { mut query, columns, format: named_format } =
        GroupQuery::parse(&request.head.uri, engine.model(), record, engine.limits())?;
    query.conditions.extend(parent.map(|(id, nested)| nested.condition(request.collection.record, id)));
    let (encoding, format) = match format {
        ResponseFormat::Csv => (RowEncoding::Csv, format),
        ResponseFormat::Ndjson => (RowEncoding::Ndjson, format),
        ResponseFormat::Json
        | ResponseFormat::Html
        | ResponseFormat::TextLines
        | ResponseFormat::EventStream => (RowEncoding::Array, ResponseFormat::Json),
    };
    let parent_read = parent.map(|(id, _)| Operation::Get {
        record: request.collection.record,
        id: id.clone(),
        selection: PreparedSelection::new(Selection::new(vec![request.record().id_field()], Vec::new())),
    });
    let shape = Arc::new(RecordShape::of_columns(&columns));
    let rows = RowWriter::new(&shape, encoding).skip_operations_before(usize::from(parent.is_some()));
    let operations = parent_read.into_iter().chain([Operation::Aggregate { record, query }]).collect();
    let data_version = request.resources.response_cache.data_version();
    let (read, outcomes) = request.read_rows(operations, rows).await.map_err(query_problem)?;
    if let (Some((id, _)), Some(Outcome::NotFound)) = (parent, outcomes.first()) {
        return Err(request.not_found(request.collection.record, id));
    }
    let mut bytes = read.bytes;
    if encoding == RowEncoding::Csv && bytes.is_empty() {
        shape.write_csv_header(&mut bytes);
    }
    let bytes = close_rows(encoding, bytes);
    let tag = list_etag(format, &bytes, None, None);
    let mut response =
        CacheableAt::mark_response(data_version, tagged_response(request, tag, format, bytes)?);
    let attachment = named_format.and_then(|format| attachment_header(request, record, format));
    response.headers_mut().extend(attachment);
    Ok(response)
}
