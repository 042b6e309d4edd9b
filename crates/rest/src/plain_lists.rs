//! Plain lists over HTTP: read whole as JSON or lines, written a value at a time, told apart by version.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use trefoil_engine::{
    Engine, JobResult, Outcome, PlainListAction, PlainListPosition, RowSink, downcast_sink,
};
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

/// A list that is not longer goes out as one snapshot; of a longer one so much is held at a time.
const PART_BYTES: usize = 1 << 20;

/// Answers at the list's own path, or, with an index, at one of its values'.
pub async fn respond(
    site: &ServedResources,
    list: &Arc<PlainListResource>,
    index: Option<&str>,
    head: &Parts,
    body: ReceivedBody,
) -> Response {
    let asked = ListRequest { resources: site, list, head };
    let answered = match (&head.method, index) {
        (&Method::GET | &Method::HEAD, None) => asked.read().await,
        (&Method::POST, None) => asked.append(body).await,
        (&Method::PUT, Some(index)) => asked.replace(index, body).await,
        (&Method::DELETE, Some(index)) => asked.remove(index).await,
        (&Method::OPTIONS, _) => {
            Ok((StatusCode::NO_CONTENT, [(ALLOW, allowed_methods(index))]).into_response())
        }
        (_, _) => Err(method_not_allowed(allowed_methods(index))),
    };
    let response = answered.unwrap_or_else(|problem| problem.with_format(ErrorFormat::Text).into_response());
    with_etag(&site.engine, list, response).await
}

/// A body, as far as it came.
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
        let (engine, before) = (&self.resources.engine, self.resources.response_cache.data_version());
        let form =
            ListFormat::negotiate(self.list.offered_formats(), &AcceptHeader::from_headers(self.headers()));
        if self.headers().contains_key(IF_NONE_MATCH) || self.headers().contains_key(IF_MATCH) {
            // So much tells whether it would be packed, and so its tag. A store weighs more than is written down.
            let glance = read_part(engine, self.list, form, None, 4 * MIN_COMPRESSED_BYTES).await?;
            etags::check_if_match(self.headers(), Some(&form.etag(glance.version)))?;
            let glance = self.with_list_headers(form, glance.version, glance.bytes.into_response());
            let glance = etags::not_modified_if_known(self.headers(), glance);
            if glance.status() == StatusCode::NOT_MODIFIED {
                return Ok(glance);
            }
        }
        let first = read_part(engine, self.list, form, None, PART_BYTES).await?;
        let version = first.version;
        etags::check_if_match(self.headers(), Some(&form.etag(version)))?;
        let media = [(CONTENT_TYPE, form.content_type())];
        let response = match first.rest {
            None => CacheableAt::mark_response(before, (media, first.bytes).into_response()),
            Some(rest) => (media, stream_parts(engine.clone(), self.list.clone(), form, first.bytes, rest))
                .into_response(),
        };
        Ok(self.with_list_headers(form, version, response))
    }

    fn with_list_headers(&self, form: ListFormat, version: i64, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(VARY, ACCEPT.into());
        headers.insert(ETAG, header_value(&form.etag(version)));
        if let Some(cache) = &self.list.cache_control {
            headers.insert(CACHE_CONTROL, cache.clone());
        }
        response
    }

    async fn append(&self, body: ReceivedBody) -> Result<Response, Problem> {
        let body = body?;
        let value = body_text::body_text(self.headers(), &body)?;
        let said = format!("Added: {value}\n");
        let act = PlainListAction::Append { value, expected: plain_list::expected_versions(self.headers()) };
        self.write(act, said, &body, StatusCode::CREATED).await
    }

    async fn replace(&self, index: &str, body: ReceivedBody) -> Result<Response, Problem> {
        let (index, body) = (self.parse_index(index)?, body?);
        let value = body_text::body_text(self.headers(), &body)?;
        let said = format!("Index {index} is now: {value}\n");
        let act = PlainListAction::Replace {
            index,
            value,
            expected: plain_list::expected_versions(self.headers()),
        };
        self.write(act, said, &body, StatusCode::OK).await
    }

    async fn remove(&self, index: &str) -> Result<Response, Problem> {
        let act = PlainListAction::Remove {
            index: self.parse_index(index)?,
            expected: plain_list::expected_versions(self.headers()),
        };
        self.write(act, "Removed: ".to_owned(), b"", StatusCode::OK).await
    }

    async fn write(
        &self,
        act: PlainListAction,
        said: String,
        body: &[u8],
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let key = PlainListResource::idempotency_key(self.head, body)?;
        let confirmed = self
            .list
            .write(&self.resources.engine, act, said, key)
            .await
            .map_err(plain_list::list_problem)?;
        let response = (status, [(CONTENT_TYPE, TEXT_PLAIN)], confirmed.text.clone()).into_response();
        Ok(confirmed.mark_response(response))
    }

    /// An integer of any length is an index, if not one of this list.
    fn parse_index(&self, text: &str) -> Result<i64, Problem> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            let detail = "the index must be an integer; the first value has index 0";
            return Err(Problem::bad_request("MALFORMED_INDEX", detail));
        }
        text.parse().map_err(|_| Error::not_found(format!("that index of {}", self.list.path)).into())
    }
}

/// Every answer tells the version; one that has not is about the list as it is now.
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

/// Some of a list, encoded.
struct ListPart {
    bytes: Vec<u8>,
    version: i64,
    rest: Option<PlainListPosition>,
}

async fn read_part(
    engine: &Engine,
    list: &PlainListResource,
    form: ListFormat,
    from: Option<PlainListPosition>,
    bytes: usize,
) -> Result<ListPart, Error> {
    let reading = ListSink::new(form, from.is_none());
    run_list_operation(engine, list, PlainListAction::Read { from, max_bytes: bytes }, reading).await
}

async fn run_list_operation(
    engine: &Engine,
    list: &PlainListResource,
    act: PlainListAction,
    reading: ListSink,
) -> Result<ListPart, Error> {
    let answer: Box<dyn RowSink> = Box::new(reading);
    let request = trefoil_engine::EngineRequest::new(answer);
    match engine.run(vec![Ok(list.operation(act))], request).await? {
        JobResult::Completed(answer) => {
            let (bytes, outcome) = downcast_sink::<ListSink>(answer)?.finish()?;
            match outcome {
                Outcome::PlainList { version, remaining: rest, .. } => Ok(ListPart { bytes, version, rest }),
                other @ (Outcome::Found
                | Outcome::NotFound
                | Outcome::Listed { .. }
                | Outcome::Created { .. }
                | Outcome::Updated { .. }
                | Outcome::Deleted { .. }) => Err(Error::internal(format!("a list ended as {other:?}"))),
            }
        }
        JobResult::Replayed(_) => Err(Error::internal("a reading without a key was replayed")),
    }
}

/// The first part and then the others, each read when the client has taken the one before.
fn stream_parts(
    engine: Engine,
    list: Arc<PlainListResource>,
    form: ListFormat,
    first: Vec<u8>,
    rest: PlainListPosition,
) -> Body {
    let others = stream::try_unfold(Some(rest), move |from| {
        let (engine, list) = (engine.clone(), list.clone());
        async move {
            let Some(from) = from else { return Ok(None) };
            let part = read_part(&engine, &list, form, Some(from), PART_BYTES).await?;
            Ok::<_, Error>(Some((part.bytes, part.rest)))
        }
    });
    let first = stream::once(std::future::ready(Ok(first)));
    Body::from_stream(first.chain(others).map_ok(Bytes::from))
}
