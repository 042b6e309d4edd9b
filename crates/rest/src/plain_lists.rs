//! Plain lists over HTTP: read whole as JSON or lines, written one value at a time, versioned by `ETag`.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use trefoil_engine::{Engine, EngineRequest, Outcome, PlainListAction, PlainListPosition, RowSink};
use trefoil_http::compression::MIN_COMPRESSED_BYTES;
use trefoil_http::errors::problem::{ErrorFormat, Problem, method_not_allowed};
use trefoil_http::etags;
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::response_cache::CacheableAt;
use trefoil_model::error::Error;
use trefoil_resources::plain_list::{self, PlainListResource, allowed_methods};
use trefoil_resources::{ServedResources, body_text};

use crate::plain_list_sink::{ListFormat, ListSink};
use crate::text_endpoints::TEXT_PLAIN;

/// A list of at most this size is sent as one snapshot. A longer one is streamed in parts of this size.
const PART_BYTES: usize = 1 << 20;

/// Responds at the path of the list or, with an index, at the path of one value.
pub async fn respond(
    resources: &ServedResources,
    list: &Arc<PlainListResource>,
    index: Option<&str>,
    head: &Parts,
    body: ReceivedBody,
) -> Response {
    let request = ListRequest { resources, list, head };
    let result = match (&head.method, index) {
        (&Method::GET | &Method::HEAD, None) => request.read().await,
        (&Method::POST, None) => request.append(body).await,
        (&Method::PUT, Some(index)) => request.replace(index, body).await,
        (&Method::DELETE, Some(index)) => request.remove(index).await,
        (&Method::OPTIONS, _) => {
            Ok((StatusCode::NO_CONTENT, [(ALLOW, allowed_methods(index))]).into_response())
        }
        (_, _) => Err(method_not_allowed(allowed_methods(index))),
    };
    let response = result.unwrap_or_else(|problem| problem.with_format(ErrorFormat::Text).into_response());
    with_etag(&resources.engine, list, response).await
}

/// A request body, or the problem met while receiving it.
type ReceivedBody = Result<Bytes, Problem>;

struct ListRequest<'a> {
    resources: &'a ServedResources,
    list: &'a Arc<PlainListResource>,
    head: &'a Parts,
}

impl ListRequest<'_> {
    fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    async fn read(&self) -> Result<Response, Problem> {
        let (engine, data_version) = (&self.resources.engine, self.resources.response_cache.data_version());
        let format =
            ListFormat::negotiate(self.list.offered_formats(), &AcceptHeader::from_headers(self.headers()));
        if self.headers().contains_key(IF_NONE_MATCH) || self.headers().contains_key(IF_MATCH) {
            // The first bytes tell whether the response would be compressed, which is part of its tag. The factor is
            // there because the store counts more bytes per value than are encoded.
            let preview = read_part(engine, self.list, format, None, 4 * MIN_COMPRESSED_BYTES).await?;
            etags::check_if_match(self.headers(), Some(&format.etag(preview.version)))?;
            let preview = self.with_list_headers(format, preview.version, preview.bytes.into_response());
            let preview = etags::not_modified_if_known(self.headers(), preview);
            if preview.status() == StatusCode::NOT_MODIFIED {
                return Ok(preview);
            }
        }
        let first = read_part(engine, self.list, format, None, PART_BYTES).await?;
        let version = first.version;
        etags::check_if_match(self.headers(), Some(&format.etag(version)))?;
        let headers = [(CONTENT_TYPE, format.content_type())];
        let response = match first.rest {
            None => CacheableAt::mark_response(data_version, (headers, first.bytes).into_response()),
            Some(rest) => {
                (headers, stream_parts(engine.clone(), self.list.clone(), format, first.bytes, rest))
                    .into_response()
            }
        };
        Ok(self.with_list_headers(format, version, response))
    }

    fn with_list_headers(&self, format: ListFormat, version: i64, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(VARY, ACCEPT.into());
        headers.insert(ETAG, header_value(&format.etag(version)));
        if let Some(cache) = &self.list.cache_control {
            headers.insert(CACHE_CONTROL, cache.clone());
        }
        response
    }

    async fn append(&self, body: ReceivedBody) -> Result<Response, Problem> {
        let body = body?;
        let value = body_text::body_text(self.headers(), &body)?;
        let message = format!("Added: {value}\n");
        let action =
            PlainListAction::Append { value, expected: plain_list::expected_versions(self.headers()) };
        self.write(action, message, &body, StatusCode::CREATED).await
    }

    async fn replace(&self, index: &str, body: ReceivedBody) -> Result<Response, Problem> {
        let (index, body) = (self.parse_index(index)?, body?);
        let value = body_text::body_text(self.headers(), &body)?;
        let message = format!("Index {index} is now: {value}\n");
        let action = PlainListAction::Replace {
            index,
            value,
            expected: plain_list::expected_versions(self.headers()),
        };
        self.write(action, message, &body, StatusCode::OK).await
    }

    async fn remove(&self, index: &str) -> Result<Response, Problem> {
        let action = PlainListAction::Remove {
            index: self.parse_index(index)?,
            expected: plain_list::expected_versions(self.headers()),
        };
        self.write(action, "Removed: ".to_owned(), b"", StatusCode::OK).await
    }

    async fn write(
        &self,
        action: PlainListAction,
        message: String,
        body: &[u8],
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let key = PlainListResource::idempotency_key(self.head, body)?;
        let confirmed = self
            .list
            .write(&self.resources.engine, action, message, key)
            .await
            .map_err(plain_list::list_problem)?;
        let response = (status, [(CONTENT_TYPE, TEXT_PLAIN)], confirmed.text.clone()).into_response();
        Ok(confirmed.mark_response(response))
    }

    /// An integer of any length is an index, though perhaps not one of this list: 404 instead of 400.
    fn parse_index(&self, text: &str) -> Result<i64, Problem> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            let detail = "the index must be an integer; the first value has index 0";
            return Err(Problem::bad_request("MALFORMED_INDEX", detail));
        }
        text.parse().map_err(|_| Error::not_found(format!("that index of {}", self.list.path)).into())
    }
}

/// Adds the `ETag` of the current version to a response that has none: every response carries a version.
pub async fn with_etag(engine: &Engine, list: &PlainListResource, mut response: Response) -> Response {
    if !response.headers().contains_key(ETAG)
        && let Ok(version) = read_version(engine, list).await
    {
        response.headers_mut().insert(ETAG, header_value(&plain_list::json_etag(version)));
    }
    response
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("tags and declared paths are visible ASCII")
}

async fn read_version(engine: &Engine, list: &PlainListResource) -> Result<i64, Error> {
    Ok(run_list_operation(engine, list, PlainListAction::ReadVersion, ListSink::new(ListFormat::Json, true))
        .await?
        .version)
}

/// An encoded part of a list.
struct ListPart {
    bytes: Vec<u8>,
    version: i64,
    rest: Option<PlainListPosition>,
}

async fn read_part(
    engine: &Engine,
    list: &PlainListResource,
    format: ListFormat,
    from: Option<PlainListPosition>,
    max_bytes: usize,
) -> Result<ListPart, Error> {
    let sink = ListSink::new(format, from.is_none());
    run_list_operation(engine, list, PlainListAction::Read { from, max_bytes }, sink).await
}

async fn run_list_operation(
    engine: &Engine,
    list: &PlainListResource,
    action: PlainListAction,
    sink: ListSink,
) -> Result<ListPart, Error> {
    let sink: Box<dyn RowSink> = Box::new(sink);
    let request = EngineRequest::new(sink);
    let finished = engine.run(vec![Ok(list.operation(action))], request).await?;
    let (bytes, outcome) = finished.into_sink::<ListSink>()?.finish()?;
    match outcome {
        Outcome::PlainList { version, remaining: rest, .. } => Ok(ListPart { bytes, version, rest }),
        other @ (Outcome::Found
        | Outcome::NotFound
        | Outcome::OutOfSight(_)
        | Outcome::Listed { .. }
        | Outcome::ChangedMany { .. }
        | Outcome::Created { .. }
        | Outcome::Updated { .. }
        | Outcome::Deleted { .. }) => {
            Err(Error::internal(format!("unexpected outcome of a list: {other:?}")))
        }
    }
}

/// The first part, then the others, each read after the client has taken the previous one.
fn stream_parts(
    engine: Engine,
    list: Arc<PlainListResource>,
    format: ListFormat,
    first: Vec<u8>,
    rest: PlainListPosition,
) -> Body {
    let others = stream::try_unfold(Some(rest), move |from| {
        let (engine, list) = (engine.clone(), list.clone());
        async move {
            let Some(from) = from else { return Ok(None) };
            let part = read_part(&engine, &list, format, Some(from), PART_BYTES).await?;
            Ok::<_, Error>(Some((part.bytes, part.rest)))
        }
    });
    let first = stream::once(std::future::ready(Ok(first)));
    Body::from_stream(first.chain(others).map_ok(Bytes::from))
}
