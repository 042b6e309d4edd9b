//! Plain lists over HTTP: read whole as JSON or lines, written a value at a time, told apart by version.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH, LOCATION, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::lines::{Confirming, Form, Reading};
use super::text::TEXT;
use crate::app::PlainList;
use crate::engine::plain::Expected;
use crate::engine::{Answer, Done, Engine, ListAct, OnList, Operation, Outcome, Place, answer_as};
use crate::error::Error;
use crate::faces::accept::Accept;
use crate::faces::problem::{Problem, Voice, method_not_allowed};
use crate::faces::resources::negotiate::{Offers, PLAIN, PLAIN_WITH_PAGE};
use crate::faces::resources::{body, pairs};
use crate::faces::{idempotency, tags};

/// The one field of the page's form.
const CONTROL: &str = "value";

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A list that is not longer goes out as one snapshot; of a longer one so much is held at a time.
const PART: usize = 1 << 20;

/// One list as the manifest declares it.
pub struct List {
    pub path: String,
    name: Arc<str>,
    /// Browsers get a page with a form.
    pub page: bool,
    cache: Option<HeaderValue>,
}

impl List {
    pub fn new(declared: &PlainList) -> List {
        let cache = declared.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        List { path: declared.path.clone(), name: declared.name().into(), page: declared.page, cache }
    }

    fn offers(&self) -> Offers {
        if self.page { PLAIN_WITH_PAGE } else { PLAIN }
    }

    fn operation(&self, act: ListAct) -> Operation {
        Operation::Plain(OnList { list: self.name.clone(), act })
    }
}

/// Answers at the list's own path, or, with an index, at one of its values'.
pub async fn answer(engine: &Engine, list: &Arc<List>, index: Option<&str>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let asked = Asked { engine, list, head: &head };
    // Read in any case: a connection with unread bytes could not be used again.
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|_| cut_off());
    let answered = match (&head.method, index) {
        (&Method::GET | &Method::HEAD, None) => asked.read().await,
        (&Method::POST, None) => asked.append(body).await,
        (&Method::PUT, Some(index)) => asked.replace(index, body).await,
        (&Method::DELETE, Some(index)) => asked.remove(index).await,
        (&Method::OPTIONS, _) => Ok((StatusCode::NO_CONTENT, [(ALLOW, allow(index))]).into_response()),
        (_, _) => Err(method_not_allowed(allow(index))),
    };
    let response = answered.unwrap_or_else(|problem| problem.voice(Voice::Text).into_response());
    asked.tagged(response).await
}

fn allow(index: Option<&str>) -> &'static str {
    match index {
        None => "GET, HEAD, POST, OPTIONS",
        Some(_) => "PUT, DELETE, OPTIONS",
    }
}

/// A body, as far as it came.
type Sent = Result<Bytes, Problem>;

struct Asked<'a> {
    engine: &'a Engine,
    list: &'a Arc<List>,
    head: &'a Parts,
}

impl Asked<'_> {
    fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    async fn read(&self) -> Result<Response, Problem> {
        let form = Form::of(self.list.offers(), &Accept::of(self.headers()));
        if self.headers().contains_key(IF_NONE_MATCH) || self.headers().contains_key(IF_MATCH) {
            let version = look(self.engine, self.list).await?;
            tags::allow(self.headers(), Some(&form.tag(version)))?;
            if tags::is_known(self.headers(), &form.tag(version)) {
                return Ok(self.readable(form, version, StatusCode::NOT_MODIFIED.into_response()));
            }
        }
        let first = part(self.engine, self.list, form, None).await?;
        let version = first.version;
        tags::allow(self.headers(), Some(&form.tag(version)))?;
        let body = match first.rest {
            None => Body::from(first.bytes),
            Some(rest) => follow(self.engine.clone(), self.list.clone(), form, first.bytes, rest),
        };
        let response = ([(CONTENT_TYPE, form.media())], body).into_response();
        Ok(self.readable(form, version, response))
    }

    fn readable(&self, form: Form, version: i64, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(VARY, ACCEPT.into());
        headers.insert(ETAG, header(&form.tag(version)));
        if let Some(cache) = &self.list.cache {
            headers.insert(CACHE_CONTROL, cache.clone());
        }
        response
    }

    async fn append(&self, body: Sent) -> Result<Response, Problem> {
        let body = body?;
        if let Some(value) = self.control(&body)? {
            let act = ListAct::Append { value, expected: self.expected() };
            let written = self.write(act, String::new(), &body, StatusCode::SEE_OTHER).await?;
            let (mut head, _) = written.into_parts();
            head.headers.remove(CONTENT_TYPE);
            head.headers.insert(LOCATION, header(&self.list.path));
            return Ok(Response::from_parts(head, Body::empty()));
        }
        let value = body::text(self.headers(), &body)?;
        let said = format!("Added: {value}\n");
        let act = ListAct::Append { value, expected: self.expected() };
        self.write(act, said, &body, StatusCode::CREATED).await
    }

    /// What the page's form holds, where the body is one. A form without its field is a text like any other, as
    /// `curl -d milk` sends it; nothing at all is an empty form.
    fn control(&self, body: &[u8]) -> Result<Option<String>, Problem> {
        let essence = body::essence(self.headers());
        let pairs = match essence.as_str() {
            _ if !self.list.page => return Ok(None),
            "multipart/form-data" => pairs::multipart(body::media(self.headers()), body)?,
            "application/x-www-form-urlencoded" if !body.is_empty() => {
                let text = body::decoded(self.headers(), body)?;
                match pairs::urlencoded(&text, "the form") {
                    Ok(pairs) if pairs.iter().any(|(name, _)| name == CONTROL) => pairs,
                    Ok(_) | Err(_) => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let value = pairs.into_iter().rev().find(|(name, _)| name == CONTROL).map(|(_, value)| value);
        let missing = || Error::invalid(CONTROL, "REQUIRED", "the form has no field `value`");
        value.map(Some).ok_or_else(|| missing().into())
    }

    async fn replace(&self, index: &str, body: Sent) -> Result<Response, Problem> {
        let (index, body) = (self.index(index)?, body?);
        let value = body::text(self.headers(), &body)?;
        let said = format!("Index {index} is now: {value}\n");
        let act = ListAct::Replace { index, value, expected: self.expected() };
        self.write(act, said, &body, StatusCode::OK).await
    }

    async fn remove(&self, index: &str) -> Result<Response, Problem> {
        let act = ListAct::Remove { index: self.index(index)?, expected: self.expected() };
        self.write(act, "Removed: ".to_owned(), b"", StatusCode::OK).await
    }

    async fn write(
        &self,
        act: ListAct,
        said: String,
        body: &[u8],
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let target = format!("{} {} {}", self.head.method, self.head.uri, body::essence(self.headers()));
        let key = idempotency::key(self.headers(), &target, body)?;
        let answer = Box::new(Confirming::new(said));
        let request = crate::engine::Request { answer, key, atomic: false };
        let done = self.engine.run(vec![Ok(self.list.operation(act))], request).await.map_err(refusal)?;
        let (confirmed, replayed) = match done {
            Done::Answered(answer) => (answer_as::<Confirming>(answer)?.finish().map_err(refusal)?, false),
            Done::Replayed(bytes) => (Confirming::kept(&bytes)?, true),
        };
        let tag = Form::Json.tag(confirmed.version);
        let mut response =
            (status, [(CONTENT_TYPE, TEXT), (ETAG, header(&tag))], confirmed.text).into_response();
        if replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        Ok(response)
    }

    fn expected(&self) -> Expected {
        tags::expected(self.headers(), Form::version)
    }

    /// An integer of any length is an index, if not one of this list.
    fn index(&self, text: &str) -> Result<i64, Problem> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            let detail = "the index must be an integer; the first value has index 0";
            return Err(Problem::bad_request("MALFORMED_INDEX", detail));
        }
        text.parse().map_err(|_| Error::NotFound(format!("that index of {}", self.list.path)).into())
    }

    /// Every answer tells the version; one that has not is about the list as it is now.
    async fn tagged(&self, mut response: Response) -> Response {
        if !response.headers().contains_key(ETAG)
            && let Ok(version) = look(self.engine, self.list).await
        {
            response.headers_mut().insert(ETAG, header(&Form::Json.tag(version)));
        }
        response
    }
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("tags and declared paths are visible ASCII")
}

/// The foundation says it better when it is a limit that cut it off.
fn cut_off() -> Problem {
    Problem::bad_request("MALFORMED_BODY", "the body ended early")
}

/// A version means nothing to people.
fn refusal(error: Error) -> Problem {
    let is_stale = matches!(error, Error::Stale { .. });
    let problem = Problem::from(error);
    if !is_stale {
        return problem;
    }
    let detail = "the list has changed since the version that If-Match names; read it again".to_owned();
    Problem { detail, ..problem }
}

async fn look(engine: &Engine, list: &List) -> Result<i64, Error> {
    Ok(ask(engine, list, ListAct::Look, Reading::new(Form::Json, true)).await?.version)
}

/// Some of a list, encoded.
struct Part {
    bytes: Vec<u8>,
    version: i64,
    rest: Option<Place>,
}

async fn part(engine: &Engine, list: &List, form: Form, from: Option<Place>) -> Result<Part, Error> {
    let reading = Reading::new(form, from.is_none());
    ask(engine, list, ListAct::Read { from, bytes: PART }, reading).await
}

async fn ask(engine: &Engine, list: &List, act: ListAct, reading: Reading) -> Result<Part, Error> {
    let answer: Box<dyn Answer> = Box::new(reading);
    let request = crate::engine::Request::new(answer);
    match engine.run(vec![Ok(list.operation(act))], request).await? {
        Done::Answered(answer) => {
            let (bytes, outcome) = answer_as::<Reading>(answer)?.finish()?;
            match outcome {
                Outcome::Plain { version, rest } => Ok(Part { bytes, version, rest }),
                other @ (Outcome::Found
                | Outcome::Missing
                | Outcome::Listed { .. }
                | Outcome::Created { .. }
                | Outcome::Updated { .. }
                | Outcome::Deleted { .. }) => Err(Error::internal(format!("a list ended as {other:?}"))),
            }
        }
        Done::Replayed(_) => Err(Error::internal("a reading without a key was replayed")),
    }
}

/// The first part and then the others, each read when the client has taken the one before.
fn follow(engine: Engine, list: Arc<List>, form: Form, first: Vec<u8>, rest: Place) -> Body {
    let others = stream::try_unfold(Some(rest), move |from| {
        let (engine, list) = (engine.clone(), list.clone());
        async move {
            let Some(from) = from else { return Ok(None) };
            let part = part(&engine, &list, form, Some(from)).await?;
            Ok::<_, Error>(Some((part.bytes, part.rest)))
        }
    });
    let first = stream::once(std::future::ready(Ok(first)));
    Body::from_stream(first.chain(others).map_ok(Bytes::from))
}
