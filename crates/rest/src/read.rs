//! Records that are read: one, a part of a list, or all of them streamed.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderName, LINK};
use xxhash_rust::xxh3::Xxh3;

use crate::event_stream::Streams;
use crate::event_stream::stream_changes;
use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{Condition, Count, Engine, Listing, Operation, Outcome, Selection, Slice};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::negotiation::format::Wanted;
use trefoil_http::response_cache::Made;
use trefoil_model::TypeId;
use trefoil_model::error::{Error, Result};
use trefoil_resources::collection::{Collection, Nested, is};
use trefoil_resources::list_query::{Query, Takes, refused};
use trefoil_resources::record_shape::Shape;
use trefoil_resources::request::{Ask, look};
use trefoil_resources::row_writer::{Form, Read, Rows};

const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");

/// How many records are read at once of a list that is streamed: about so many bytes, as the last part tells.
const PART: usize = 256 << 10;
const FEWEST: i64 = 16;
const MOST: i64 = 4_096;

pub async fn read_record(request: &Ask<'_>, id: i64) -> Result<Response, Problem> {
    let record = request.collection.record;
    let shape = record_shape(request, request.collection)?;
    let operation = Operation::Get { record, id, selection: shape.selection.clone() };
    let (read, _) = request.look(vec![operation], Rows::new(&shape, Form::One)).await.map_err(refused)?;
    record_response(request, record, id, &shape, read)
}

/// A record of another record's: its reference must lead there.
pub async fn read_nested_record(
    request: &Ask<'_>,
    above: i64,
    nested: &Nested,
    id: i64,
) -> Result<Response, Problem> {
    let target = request.site.collection(nested.record);
    let shape = record_shape(request, target)?;
    let own = request.site.engine.model().record(nested.record).id_field();
    let conditions = vec![is(own, id), is(nested.reference, above)];
    let slice = Slice::First { first: 1, after: None };
    let listing = Listing { conditions, slice, ..Listing::default() };
    let operation = Operation::List { record: nested.record, listing, selection: shape.selection.clone() };
    let (read, _) = request.look(vec![operation], Rows::new(&shape, Form::One)).await.map_err(refused)?;
    record_response(request, nested.record, id, &shape, read)
}

fn record_shape(request: &Ask<'_>, target: &Collection) -> Result<Arc<Shape>, Problem> {
    let query = request.query(target.record, Takes::Fields)?;
    Ok(request.shape(target, &query))
}

fn record_response(
    request: &Ask<'_>,
    record: TypeId,
    id: i64,
    shape: &Shape,
    read: Read,
) -> Result<Response, Problem> {
    if read.rows == 0 {
        return Err(request.missing(record, id));
    }
    let version = read.version.ok_or_else(|| Error::internal("a record has no readable version"))?;
    tagged_response(request, shape.tag(version), Wanted::Json, read.bytes)
}

/// The bytes, or nothing but the news that the client has them.
fn tagged_response(
    request: &Ask<'_>,
    tag: String,
    wanted: Wanted,
    bytes: Vec<u8>,
) -> Result<Response, Problem> {
    etags::allow(request.headers(), Some(&tag))?;
    let tag = HeaderValue::from_str(&tag).expect("a tag is visible ASCII");
    let response = ([(CONTENT_TYPE, wanted.content_type()), (ETAG, tag)], bytes).into_response();
    Ok(etags::unless_known(request.headers(), request.negotiated(response)))
}

pub async fn read_list(request: &Ask<'_>, wanted: Wanted, streams: &Streams) -> Result<Response, Problem> {
    if wanted == Wanted::Events {
        return stream_changes(request, streams).await;
    }
    let query = request.query(request.collection.record, Takes::List)?;
    let reading = list_reader(request, request.collection, &query, wanted, Vec::new());
    list_response(request, &request.collection.path, query, wanted, reading, None).await
}

/// The records that refer to one record, which must be there.
pub async fn read_nested_list(
    request: &Ask<'_>,
    above: i64,
    nested: &Nested,
    wanted: Wanted,
) -> Result<Response, Problem> {
    let query = request.query(nested.record, Takes::List)?;
    let target = request.site.collection(nested.record);
    let reading = list_reader(request, target, &query, wanted, vec![is(nested.reference, above)]);
    let path = format!("{}/{above}/{}", request.collection.path, nested.segment);
    list_response(request, &path, query, wanted, reading, Some(above)).await
}

fn list_reader(
    request: &Ask<'_>,
    target: &Collection,
    query: &Query,
    wanted: Wanted,
    conditions: Vec<Condition>,
) -> Reading {
    let (form, shape) = match (wanted, &target.texts) {
        (Wanted::Ndjson, _) => (Form::Ndjson, request.shape(target, query)),
        (Wanted::Csv, _) => (Form::Csv, request.shape(target, query)),
        (Wanted::Lines, Some(texts)) => (Form::Lines, texts.shape.clone()),
        (Wanted::Json, Some(texts)) if !query.chose_fields && conditions.is_empty() => {
            (Form::Texts, texts.shape.clone())
        }
        (Wanted::Json | Wanted::Page | Wanted::Lines | Wanted::Events, _) => {
            (Form::Array, request.shape(target, query))
        }
    };
    let mut listing = Listing { cursors: true, ..query.listing.clone() };
    listing.conditions.extend(conditions);
    Reading { engine: request.site.engine.clone(), record: target.record, shape, form, listing }
}

async fn list_response(
    request: &Ask<'_>,
    path: &str,
    query: Query,
    wanted: Wanted,
    mut reading: Reading,
    above: Option<i64>,
) -> Result<Response, Problem> {
    let record = reading.record;
    let is_whole = reading.form != Form::Array && !query.sliced;
    if is_whole {
        reading.listing.slice = Slice::First { first: 1_000, after: None };
    }
    let id = above;
    let above = above.map(|id| Operation::Get {
        record: request.collection.record,
        id,
        selection: Arc::new(Selection::new(vec![request.record().id_field()], Vec::new())),
    });
    let before = request.site.answers.state();
    let model = request.site.engine.model();
    let first = reading.part(above, false).await;
    let (first, outcomes) = first.map_err(|error| query.blamed(model, model.record(record), error))?;
    if let (Some(id), Some(Outcome::Missing)) = (id, outcomes.first()) {
        return Err(request.missing(request.collection.record, id));
    }
    let Some(Outcome::Listed { more, total }) = outcomes.last() else {
        return Err(Error::internal(format!("a list ended as {outcomes:?}")).into());
    };
    let (more, total) = (*more, *total);
    let mut response = if is_whole && more {
        etags::allow(request.headers(), None)?;
        request.negotiated(([(CONTENT_TYPE, wanted.content_type())], reading.follow(first)).into_response())
    } else {
        let next = first.last.as_deref().filter(|_| more);
        let links = (!is_whole).then(|| query.links(path, next, total));
        let bytes = reading.closed(first.bytes);
        let tag = tag(wanted, &bytes, links.as_deref(), total);
        let mut response = tagged_response(request, tag, wanted, bytes)?;
        let links = links.and_then(|links| HeaderValue::from_str(&links).ok());
        response.headers_mut().extend(links.map(|links| (LINK, links)));
        Made::mark(before, response)
    };
    response.headers_mut().extend(query.format.and_then(|format| attachment_header(request, record, format)));
    response.headers_mut().extend(total.map(|total| (X_TOTAL_COUNT, HeaderValue::from(total))));
    Ok(response)
}

/// What a browser is to call a list that it was led to by a link, where it cannot show it.
fn attachment_header(request: &Ask<'_>, record: TypeId, format: Wanted) -> Option<(HeaderName, HeaderValue)> {
    let extension = match format {
        Wanted::Csv => "csv",
        Wanted::Ndjson => "ndjson",
        Wanted::Json | Wanted::Page | Wanted::Lines | Wanted::Events => return None,
    };
    let path = &request.site.engine.model().record(record).path;
    let value = HeaderValue::from_str(&format!("attachment; filename=\"{path}.{extension}\"")).ok()?;
    Some((CONTENT_DISPOSITION, value))
}

/// Of everything that the answer says, so that it is exact whatever changed; two forms of an empty list differ too.
fn tag(wanted: Wanted, bytes: &[u8], links: Option<&str>, total: Option<u64>) -> String {
    let mut hash = Xxh3::new();
    hash.update(wanted.content_type().as_bytes());
    hash.update(bytes);
    hash.update(links.unwrap_or_default().as_bytes());
    hash.update(&total.unwrap_or_default().to_le_bytes());
    format!("\"{:032x}\"", hash.digest128())
}

/// Ends what rows have begun.
pub fn closed(form: Form, mut bytes: Vec<u8>) -> Vec<u8> {
    match form {
        Form::Array | Form::Texts => {
            if bytes.is_empty() {
                bytes.push(b'[');
            }
            bytes.push(b']');
        }
        Form::One | Form::Ndjson | Form::Csv | Form::Lines | Form::Events => {}
    }
    bytes
}

/// A list while it is read.
struct Reading {
    engine: Engine,
    record: TypeId,
    shape: Arc<Shape>,
    form: Form,
    listing: Listing,
}

impl Reading {
    /// A list that was read to the end of its part. A table without rows still says what its columns are.
    fn closed(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.form == Form::Csv && bytes.is_empty() {
            self.shape.write_names(&mut bytes);
        }
        closed(self.form, bytes)
    }

    /// The part that the listing asks for now; `above` is asked with the first.
    async fn part(&self, above: Option<Operation>, continued: bool) -> Result<(Read, Vec<Outcome>)> {
        let from = usize::from(above.is_some());
        let format = CursorFormat::of(self.engine.model().record(self.record), &self.listing.order);
        let rows = Rows::new(&self.shape, self.form).from(from).cursors(format).continued(continued);
        let selection = self.shape.selection.clone();
        let list = Operation::List { record: self.record, listing: self.listing.clone(), selection };
        look(&self.engine, above.into_iter().chain([list]).collect(), rows).await
    }

    /// The first part and then the others, each read when the client has taken the one before: what goes away stops
    /// being read, and memory holds one part. Each part is read as the records are then.
    fn follow(mut self, first: Read) -> Body {
        self.listing.count = Count::No;
        let form = self.form;
        let next = self.next(&first);
        let others = stream::try_unfold(Some((self, next)), |state| async move {
            let Some((mut reading, slice)) = state else { return Ok::<_, Error>(None) };
            reading.listing.slice = slice;
            let (read, outcomes) = reading.part(None, true).await?;
            let more = matches!(outcomes.last(), Some(Outcome::Listed { more: true, .. }));
            let next = reading.next(&read);
            Ok(Some((read.bytes, more.then_some((reading, next)))))
        });
        let end = match form {
            Form::Array | Form::Texts => b"]".to_vec(),
            Form::One | Form::Ndjson | Form::Csv | Form::Lines | Form::Events => Vec::new(),
        };
        let parts = stream::iter([Ok(first.bytes)]).chain(others).chain(stream::iter([Ok(end)]));
        Body::from_stream(parts.map_ok(Bytes::from))
    }

    fn next(&self, read: &Read) -> Slice {
        let rows = i64::try_from(read.rows).unwrap_or(MOST).max(1);
        let each = (read.bytes.len() as i64 / rows).max(1);
        Slice::First { first: (PART as i64 / each).clamp(FEWEST, MOST), after: read.last.clone() }
    }
}
