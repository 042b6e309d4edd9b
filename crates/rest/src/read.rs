//! Records that are read: one, a part of a list, or all of them streamed.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderName, LINK};
use xxhash_rust::xxh3::Xxh3;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{Condition, CountMode, Engine, ListSlice, Listing, Operation, Outcome, Selection};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::RecordTypeId;
use trefoil_model::error::{Error, Result};
use trefoil_resources::collection::{Collection, NestedCollection, equals_id};
use trefoil_resources::list_query::{ListQuery, ParamSet, query_problem};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::{ResourceRequest, read_rows};
use trefoil_resources::row_writer::{EncodedRows, RowEncoding, RowWriter};

use crate::event_stream::{StreamSettings, stream_changes};

const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// How many records are read at once of a list that is streamed: about so many bytes, as the last part tells.
const PART_BYTES: usize = 256 << 10;
const MIN_PART_ROWS: i64 = 16;
const MAX_PART_ROWS: i64 = 4_096;

pub async fn read_record(request: &ResourceRequest<'_>, id: i64) -> Result<Response, Problem> {
    let record = request.collection.record;
    let shape = record_shape(request, request.collection)?;
    let operation = Operation::Get { record, id, selection: shape.selection.clone() };
    let (read, _) = request
        .read_rows(vec![operation], RowWriter::new(&shape, RowEncoding::SingleObject))
        .await
        .map_err(query_problem)?;
    record_response(request, record, id, &shape, read)
}

/// A record of another record's: its reference must lead there.
pub async fn read_nested_record(
    request: &ResourceRequest<'_>,
    above: i64,
    nested: &NestedCollection,
    id: i64,
) -> Result<Response, Problem> {
    let target = request.resources.collection(nested.record);
    let shape = record_shape(request, target)?;
    let own = request.resources.engine.model().record(nested.record).id_field();
    let conditions = vec![equals_id(own, id), equals_id(nested.reference, above)];
    let slice = ListSlice::First { first: 1, after: None };
    let listing = Listing { conditions, slice, ..Listing::default() };
    let operation = Operation::List { record: nested.record, listing, selection: shape.selection.clone() };
    let (read, _) = request
        .read_rows(vec![operation], RowWriter::new(&shape, RowEncoding::SingleObject))
        .await
        .map_err(query_problem)?;
    record_response(request, nested.record, id, &shape, read)
}

fn record_shape(request: &ResourceRequest<'_>, target: &Collection) -> Result<Arc<RecordShape>, Problem> {
    let query = request.parse_query(target.record, ParamSet::Fields)?;
    Ok(request.selected_shape(target, &query))
}

fn record_response(
    request: &ResourceRequest<'_>,
    record: RecordTypeId,
    id: i64,
    shape: &RecordShape,
    read: EncodedRows,
) -> Result<Response, Problem> {
    if read.row_count == 0 {
        return Err(request.not_found(record, id));
    }
    let version = read.version.ok_or_else(|| Error::internal("a record has no readable version"))?;
    tagged_response(request, shape.etag(version), ResponseFormat::Json, read.bytes)
}

/// The bytes, or nothing but the news that the client has them.
fn tagged_response(
    request: &ResourceRequest<'_>,
    tag: String,
    wanted: ResponseFormat,
    bytes: Vec<u8>,
) -> Result<Response, Problem> {
    etags::check_if_match(request.headers(), Some(&tag))?;
    let tag = HeaderValue::from_str(&tag).expect("a tag is visible ASCII");
    let response = ([(CONTENT_TYPE, wanted.content_type()), (ETAG, tag)], bytes).into_response();
    Ok(etags::not_modified_if_known(request.headers(), request.with_negotiated_headers(response)))
}

pub async fn read_list(
    request: &ResourceRequest<'_>,
    wanted: ResponseFormat,
    streams: &StreamSettings,
) -> Result<Response, Problem> {
    if wanted == ResponseFormat::EventStream {
        return stream_changes(request, streams).await;
    }
    let query = request.parse_query(request.collection.record, ParamSet::List)?;
    let reading = list_reader(request, request.collection, &query, wanted, Vec::new());
    list_response(request, &request.collection.path, query, wanted, reading, None).await
}

/// The records that refer to one record, which must be there.
pub async fn read_nested_list(
    request: &ResourceRequest<'_>,
    above: i64,
    nested: &NestedCollection,
    wanted: ResponseFormat,
) -> Result<Response, Problem> {
    let query = request.parse_query(nested.record, ParamSet::List)?;
    let target = request.resources.collection(nested.record);
    let reading = list_reader(request, target, &query, wanted, vec![equals_id(nested.reference, above)]);
    let path = format!("{}/{above}/{}", request.collection.path, nested.segment);
    list_response(request, &path, query, wanted, reading, Some(above)).await
}

fn list_reader(
    request: &ResourceRequest<'_>,
    target: &Collection,
    query: &ListQuery,
    wanted: ResponseFormat,
    conditions: Vec<Condition>,
) -> ListReader {
    let (form, shape) = match (wanted, &target.texts) {
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
    ListReader {
        engine: request.resources.engine.clone(),
        record: target.record,
        shape,
        encoding: form,
        listing,
    }
}

async fn list_response(
    request: &ResourceRequest<'_>,
    path: &str,
    query: ListQuery,
    wanted: ResponseFormat,
    mut reading: ListReader,
    above: Option<i64>,
) -> Result<Response, Problem> {
    let record = reading.record;
    let is_whole = reading.encoding != RowEncoding::Array && !query.is_sliced;
    if is_whole {
        reading.listing.slice = ListSlice::First { first: 1_000, after: None };
    }
    let id = above;
    let above = above.map(|id| Operation::Get {
        record: request.collection.record,
        id,
        selection: Arc::new(Selection::new(vec![request.record().id_field()], Vec::new())),
    });
    let before = request.resources.response_cache.data_version();
    let model = request.resources.engine.model();
    let first = reading.read_part(above, false).await;
    let (first, outcomes) =
        first.map_err(|error| query.filter_problem(model, model.record(record), error))?;
    if let (Some(id), Some(Outcome::NotFound)) = (id, outcomes.first()) {
        return Err(request.not_found(request.collection.record, id));
    }
    let Some(Outcome::Listed { has_more: more, total }) = outcomes.last() else {
        return Err(Error::internal(format!("a list ended as {outcomes:?}")).into());
    };
    let (more, total) = (*more, *total);
    let mut response = if is_whole && more {
        etags::check_if_match(request.headers(), None)?;
        request.with_negotiated_headers(
            ([(CONTENT_TYPE, wanted.content_type())], reading.stream_body(first)).into_response(),
        )
    } else {
        let next = first.last_cursor.as_deref().filter(|_| more);
        let links = (!is_whole).then(|| query.link_header(path, next, total));
        let bytes = reading.close(first.bytes);
        let tag = list_etag(wanted, &bytes, links.as_deref(), total);
        let mut response = tagged_response(request, tag, wanted, bytes)?;
        let links = links.and_then(|links| HeaderValue::from_str(&links).ok());
        response.headers_mut().extend(links.map(|links| (LINK, links)));
        CacheableAt::mark_response(before, response)
    };
    response.headers_mut().extend(query.format.and_then(|format| attachment_header(request, record, format)));
    response.headers_mut().extend(total.map(|total| (X_TOTAL_COUNT, HeaderValue::from(total))));
    Ok(response)
}

/// What a browser is to call a list that it was led to by a link, where it cannot show it.
fn attachment_header(
    request: &ResourceRequest<'_>,
    record: RecordTypeId,
    format: ResponseFormat,
) -> Option<(HeaderName, HeaderValue)> {
    let extension = match format {
        ResponseFormat::Csv => "csv",
        ResponseFormat::Ndjson => "ndjson",
        ResponseFormat::Json
        | ResponseFormat::Html
        | ResponseFormat::TextLines
        | ResponseFormat::EventStream => return None,
    };
    let path = &request.resources.engine.model().record(record).path;
    let value = HeaderValue::from_str(&format!("attachment; filename=\"{path}.{extension}\"")).ok()?;
    Some((CONTENT_DISPOSITION, value))
}

/// Of everything that the answer says, so that it is exact whatever changed; two forms of an empty list differ too.
fn list_etag(wanted: ResponseFormat, bytes: &[u8], links: Option<&str>, total: Option<u64>) -> String {
    let mut hash = Xxh3::new();
    hash.update(wanted.content_type().as_bytes());
    hash.update(bytes);
    hash.update(links.unwrap_or_default().as_bytes());
    hash.update(&total.unwrap_or_default().to_le_bytes());
    format!("\"{:032x}\"", hash.digest128())
}

/// Ends what rows have begun.
pub fn close_rows(form: RowEncoding, mut bytes: Vec<u8>) -> Vec<u8> {
    match form {
        RowEncoding::Array | RowEncoding::TextArray => {
            if bytes.is_empty() {
                bytes.push(b'[');
            }
            bytes.push(b']');
        }
        RowEncoding::SingleObject
        | RowEncoding::Ndjson
        | RowEncoding::Csv
        | RowEncoding::TextLines
        | RowEncoding::Events => {}
    }
    bytes
}

/// A list while it is read.
struct ListReader {
    engine: Engine,
    record: RecordTypeId,
    shape: Arc<RecordShape>,
    encoding: RowEncoding,
    listing: Listing,
}

impl ListReader {
    /// A list that was read to the end of its part. A table without rows still says what its columns are.
    fn close(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.encoding == RowEncoding::Csv && bytes.is_empty() {
            self.shape.write_csv_header(&mut bytes);
        }
        close_rows(self.encoding, bytes)
    }

    /// The part that the listing asks for now; `above` is asked with the first.
    async fn read_part(
        &self,
        above: Option<Operation>,
        continued: bool,
    ) -> Result<(EncodedRows, Vec<Outcome>)> {
        let from = usize::from(above.is_some());
        let format = CursorFormat::of(self.engine.model().record(self.record), &self.listing.sort_keys);
        let rows = RowWriter::new(&self.shape, self.encoding)
            .show_from(from)
            .with_cursors(format)
            .continued(continued);
        let selection = self.shape.selection.clone();
        let list = Operation::List { record: self.record, listing: self.listing.clone(), selection };
        read_rows(&self.engine, above.into_iter().chain([list]).collect(), rows).await
    }

    /// The first part and then the others, each read when the client has taken the one before: what goes away stops
    /// being read, and memory holds one part. Each part is read as the records are then.
    fn stream_body(mut self, first: EncodedRows) -> Body {
        self.listing.count = CountMode::Skip;
        let form = self.encoding;
        let next = self.next_slice(&first);
        let others = stream::try_unfold(Some((self, next)), |state| async move {
            let Some((mut reading, slice)) = state else { return Ok::<_, Error>(None) };
            reading.listing.slice = slice;
            let (read, outcomes) = reading.read_part(None, true).await?;
            let more = matches!(outcomes.last(), Some(Outcome::Listed { has_more: true, .. }));
            let next = reading.next_slice(&read);
            Ok(Some((read.bytes, more.then_some((reading, next)))))
        });
        let end = match form {
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
        let each = (read.bytes.len() as i64 / rows).max(1);
        ListSlice::First {
            first: (PART_BYTES as i64 / each).clamp(MIN_PART_ROWS, MAX_PART_ROWS),
            after: read.last_cursor.clone(),
        }
    }
}
