//! GET of a record and of lists: in pages, whole, or streamed.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, HeaderName, LINK};

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{
    Condition, CountMode, Engine, ListSlice, Listing, Operation, Outcome, PreparedSelection, Selection,
};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::{RecordId, RecordTypeId};
use trefoil_resources::aggregate_query::asks_for_groups;
use trefoil_resources::collection::{Collection, NestedCollection, equals_id, record_path};
use trefoil_resources::list_query::{ListQuery, ParamSet, query_problem};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::{ResourceRequest, read_rows};
use trefoil_resources::row_writer::{EncodedRows, RowEncoding, RowWriter};

use crate::event_stream::{StreamSettings, stream_changes};
use crate::groups::read_groups;
use crate::read_response::{attachment_header, close_rows, list_etag, tagged_response};

const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// Target size of a part of a streamed list. The size of the last part determines how many records the next one reads.
const PART_BYTES: usize = 256 << 10;
const MIN_PART_ROWS: i64 = 16;
const MAX_PART_ROWS: i64 = 4_096;

pub async fn read_record(request: &ResourceRequest<'_>, id: &RecordId) -> Result<Response, Problem> {
    let record = request.collection.record;
    let shape = record_shape(request, request.collection).await?;
    let operation = Operation::Get { record, id: id.clone(), selection: shape.selection.clone() };
    let (read, _) = request
        .read_rows(vec![operation], RowWriter::new(&shape, RowEncoding::SingleObject))
        .await
        .map_err(query_problem)?;
    record_response(request, record, id, &shape, read)
}

/// A record below another one, to which its reference must point.
pub async fn read_nested_record(
    request: &ResourceRequest<'_>,
    parent_id: &RecordId,
    nested: &NestedCollection,
    id: &RecordId,
) -> Result<Response, Problem> {
    let target = request.resources.collection(nested.record);
    let shape = record_shape(request, target).await?;
    let own = request.resources.engine.model().record(nested.record).id_field();
    let conditions = vec![equals_id(own, id), nested.condition(request.collection.record, parent_id)];
    let slice = ListSlice::First { first: 1, after: None };
    let listing = Listing { conditions, slice, ..Listing::default() };
    let operation = Operation::List { record: nested.record, listing, selection: shape.selection.clone() };
    let (read, _) = request
        .read_rows(vec![operation], RowWriter::new(&shape, RowEncoding::SingleObject))
        .await
        .map_err(query_problem)?;
    record_response(request, nested.record, id, &shape, read)
}

async fn record_shape(
    request: &ResourceRequest<'_>,
    target: &Collection,
) -> Result<Arc<RecordShape>, Problem> {
    let query = request.parse_query(target.record, ParamSet::Fields).await?;
    Ok(request.selected_shape(target, &query))
}

fn record_response(
    request: &ResourceRequest<'_>,
    record: RecordTypeId,
    id: &RecordId,
    shape: &RecordShape,
    read: EncodedRows,
) -> Result<Response, Problem> {
    if read.row_count == 0 {
        return Err(request.not_found(record, id));
    }
    let version = read.version.ok_or_else(|| Error::internal("a record has no readable version"))?;
    let tag = request.etag(shape, version, &read.bytes);
    tagged_response(request, tag, ResponseFormat::Json, read.bytes)
}

pub async fn read_list(
    request: &ResourceRequest<'_>,
    format: ResponseFormat,
    streams: &StreamSettings,
) -> Result<Response, Problem> {
    if format == ResponseFormat::EventStream {
        return stream_changes(request, streams).await;
    }
    if asks_for_groups(&request.head.uri, request.record()) {
        return read_groups(request, request.collection.record, format, None).await;
    }
    let query = request.parse_query(request.collection.record, ParamSet::List).await?;
    check_included_format(&query, format)?;
    check_shown_texts(request, &query, format)?;
    let reader = list_reader(request, request.collection, &query, format, Vec::new());
    list_response(request, &request.collection.path, query, format, reader, None).await
}

/// The records that refer to one record; 404 if that does not exist.
pub async fn read_nested_list(
    request: &ResourceRequest<'_>,
    parent_id: &RecordId,
    nested: &NestedCollection,
    format: ResponseFormat,
) -> Result<Response, Problem> {
    if asks_for_groups(&request.head.uri, request.resources.engine.model().record(nested.record)) {
        let parent = Some((parent_id, nested));
        return read_groups(request, nested.record, format, parent).await;
    }
    let query = request.parse_query(nested.record, ParamSet::List).await?;
    check_included_format(&query, format)?;
    let target = request.resources.collection(nested.record);
    let condition = nested.condition(request.collection.record, parent_id);
    let reader = list_reader(request, target, &query, format, vec![condition]);
    let path = format!("{}/{}", record_path(&request.collection.path, parent_id), nested.segment);
    list_response(request, &path, query, format, reader, Some(parent_id)).await
}

/// A line of CSV has no place for related records.
fn check_included_format(query: &ListQuery, format: ResponseFormat) -> Result<(), Problem> {
    if format != ResponseFormat::Csv || query.included.is_empty() {
        return Ok(());
    }
    let message = "`include` is for JSON and NDJSON: CSV has no place for related records";
    Err(query_problem(Error::Invalid(vec![Violation::new("include", "FORMAT", message)])))
}

/// A list of texts names their field, which must not be hidden.
fn check_shown_texts(
    request: &ResourceRequest<'_>,
    query: &ListQuery,
    format: ResponseFormat,
) -> Result<(), Problem> {
    let Some(texts) = &request.collection.texts else { return Ok(()) };
    let is_text = match format {
        ResponseFormat::TextLines => true,
        ResponseFormat::Json => !query.chose_fields,
        ResponseFormat::Ndjson | ResponseFormat::Csv | ResponseFormat::Html | ResponseFormat::EventStream => {
            false
        }
    };
    let engine = &request.resources.engine;
    if !is_text || engine.shows_field(request.collection.record, texts.list.field) {
        return Ok(());
    }
    let name = &request.record().field(texts.list.field).input_name;
    let message = format!("`{name}`, of which this list consists, may not be read by you");
    let violations = vec![Violation::new(name, "FORBIDDEN", message)];
    let view = engine.access_view();
    let rule = view
        .and_then(|view| view.field_refusal(AccessAction::Read, request.collection.record, texts.list.field));
    Err(Error::Forbidden { violations, rule }.into())
}

fn list_reader(
    request: &ResourceRequest<'_>,
    target: &Collection,
    query: &ListQuery,
    format: ResponseFormat,
    conditions: Vec<Condition>,
) -> ListReader {
    let (encoding, shape) = match (format, &target.texts) {
        (ResponseFormat::Ndjson, _) => (RowEncoding::Ndjson, request.selected_shape(target, query)),
        (ResponseFormat::Csv, _) => (RowEncoding::Csv, request.selected_shape(target, query)),
        (ResponseFormat::TextLines, Some(texts)) => (RowEncoding::TextLines, texts.shape.clone()),
        (ResponseFormat::Json, Some(texts)) if !query.chose_fields && conditions.is_empty() => {
            (RowEncoding::TextArray, texts.shape.clone())
        }
        (
            ResponseFormat::Json
            | ResponseFormat::Html
            | ResponseFormat::TextLines
            | ResponseFormat::EventStream,
            _,
        ) => (RowEncoding::Array, request.selected_shape(target, query)),
    };
    let mut listing = Listing { with_cursors: true, ..query.listing.clone() };
    listing.conditions.extend(conditions);
    ListReader { engine: request.resources.engine.clone(), record: target.record, shape, encoding, listing }
}

async fn list_response(
    request: &ResourceRequest<'_>,
    path: &str,
    query: ListQuery,
    format: ResponseFormat,
    mut reader: ListReader,
    parent_id: Option<&RecordId>,
) -> Result<Response, Problem> {
    let record = reader.record;
    let is_whole = reader.encoding != RowEncoding::Array && !query.is_sliced;
    if is_whole {
        let first = if query.included.is_empty() { 1_000 } else { 100 };
        reader.listing.slice = ListSlice::First { first, after: None };
    }
    let parent = parent_id.map(|id| Operation::Get {
        record: request.collection.record,
        id: id.clone(),
        selection: PreparedSelection::new(Selection::new(vec![request.record().id_field()], Vec::new())),
    });
    let data_version = request.resources.response_cache.data_version();
    let (first, outcomes) = reader.read_part(parent, false).await.map_err(query_problem)?;
    if let (Some(id), Some(Outcome::NotFound)) = (parent_id, outcomes.first()) {
        return Err(request.not_found(request.collection.record, id));
    }
    let Some(Outcome::Listed { has_more, total }) = outcomes.last() else {
        return Err(Error::internal(format!("unexpected outcome of a list: {outcomes:?}")).into());
    };
    let (has_more, total) = (*has_more, *total);
    let mut response = if is_whole && has_more {
        etags::check_if_match(request.headers(), None)?;
        request.with_negotiated_headers(
            ([(CONTENT_TYPE, format.content_type())], reader.stream_body(first)).into_response(),
        )
    } else {
        let next = first.last_cursor.as_deref().filter(|_| has_more);
        let links = (!is_whole).then(|| query.link_header(path, next, total));
        let bytes = reader.close(first.bytes);
        let tag = list_etag(format, &bytes, links.as_deref(), total);
        let mut response = tagged_response(request, tag, format, bytes)?;
        let links = links.and_then(|links| HeaderValue::from_str(&links).ok());
        response.headers_mut().extend(links.map(|links| (LINK, links)));
        CacheableAt::mark_response(data_version, response)
    };
    response.headers_mut().extend(query.format.and_then(|format| attachment_header(request, record, format)));
    response.headers_mut().extend(total.map(|total| (X_TOTAL_COUNT, HeaderValue::from(total))));
    Ok(response)
}

/// Reads and encodes a list.
struct ListReader {
    engine: Engine,
    record: RecordTypeId,
    shape: Arc<RecordShape>,
    encoding: RowEncoding,
    listing: Listing,
}

impl ListReader {
    /// The bytes of a finished part. A CSV table without rows still has its header.
    fn close(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.encoding == RowEncoding::Csv && bytes.is_empty() {
            self.shape.write_csv_header(&mut bytes);
        }
        close_rows(self.encoding, bytes)
    }

    /// Reads the current slice of the listing; `parent` is read together with the first.
    async fn read_part(
        &self,
        parent: Option<Operation>,
        continued: bool,
    ) -> Result<(EncodedRows, Vec<Outcome>)> {
        let first_shown = usize::from(parent.is_some());
        let model = self.engine.model();
        let format = CursorFormat::of(model, model.record(self.record), &self.listing.sort_keys);
        let rows = RowWriter::new(&self.shape, self.encoding)
            .skip_operations_before(first_shown)
            .with_cursors(format)
            .continued(continued);
        let selection = self.shape.selection.clone();
        let list = Operation::List { record: self.record, listing: self.listing.clone(), selection };
        read_rows(&self.engine, parent.into_iter().chain([list]).collect(), rows).await
    }

    /// The first part, then the others, each read after the client has taken the previous one: reading stops when the
    /// client disconnects, and memory holds one part. Parts are read at different times, each with the records of then.
    fn stream_body(mut self, first: EncodedRows) -> Body {
        self.listing.count = CountMode::Skip;
        let encoding = self.encoding;
        let next = self.next_slice(&first);
        let others = stream::try_unfold(Some((self, next)), |state| async move {
            let Some((mut reader, slice)) = state else { return Ok::<_, Error>(None) };
            reader.listing.slice = slice;
            let (read, outcomes) = reader.read_part(None, true).await?;
            let has_more = matches!(outcomes.last(), Some(Outcome::Listed { has_more: true, .. }));
            let next = reader.next_slice(&read);
            Ok(Some((read.bytes, has_more.then_some((reader, next)))))
        });
        let end = match encoding {
            RowEncoding::Array | RowEncoding::TextArray => b"]".to_vec(),
            RowEncoding::SingleObject
            | RowEncoding::Ndjson
            | RowEncoding::Csv
            | RowEncoding::TextLines
            | RowEncoding::Events => Vec::new(),
        };
        let parts = stream::iter([Ok(first.bytes)]).chain(others).chain(stream::iter([Ok(end)]));
        Body::from_stream(parts.map_ok(Bytes::from))
    }

    fn next_slice(&self, read: &EncodedRows) -> ListSlice {
        let rows = i64::try_from(read.row_count).unwrap_or(MAX_PART_ROWS).max(1);
        let row_bytes = (read.bytes.len() as i64 / rows).max(1);
        ListSlice::First {
            first: (PART_BYTES as i64 / row_bytes).clamp(MIN_PART_ROWS, MAX_PART_ROWS),
            after: read.last_cursor.clone(),
        }
    }
}
