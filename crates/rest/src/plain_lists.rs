//! Plain lists over HTTP: read whole as JSON or lines, written a value at a time, told apart by version.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::plain_list_sink::{Form, Reading};
use crate::text_endpoints::TEXT;
use trefoil_engine::{Answer, Done, Engine, ListAct, Outcome, Place, answer_as};
use trefoil_http::compression::WORTH_COMPRESSING;
use trefoil_http::errors::problem::{Problem, Voice, method_not_allowed};
use trefoil_http::etags;
use trefoil_http::negotiation::accept::Accept;
use trefoil_http::response_cache::Made;
use trefoil_model::error::Error;
use trefoil_resources::plain_list;
use trefoil_resources::plain_list::{List, allow};
use trefoil_resources::{Site, body_text};

/// A list that is not longer goes out as one snapshot; of a longer one so much is held at a time.
const PART: usize = 1 << 20;

/// Answers at the list's own path, or, with an index, at one of its values'.
pub async fn answer(
    site: &Site,
    list: &Arc<List>,
    index: Option<&str>,
    head: &Parts,
    body: Sent,
) -> Response {
    let asked = Asked { site, list, head };
    let answered = match (&head.method, index) {
        (&Method::GET | &Method::HEAD, None) => asked.read().await,
        (&Method::POST, None) => asked.append(body).await,
        (&Method::PUT, Some(index)) => asked.replace(index, body).await,
        (&Method::DELETE, Some(index)) => asked.remove(index).await,
        (&Method::OPTIONS, _) => Ok((StatusCode::NO_CONTENT, [(ALLOW, allow(index))]).into_response()),
        (_, _) => Err(method_not_allowed(allow(index))),
    };
    let response = answered.unwrap_or_else(|problem| problem.voice(Voice::Text).into_response());
    tagged(&site.engine, list, response).await
}

/// A body, as far as it came.
type Sent = Result<Bytes, Problem>;

struct Asked<'a> {
    site: &'a Site,
    list: &'a Arc<List>,
    head: &'a Parts,
}

impl Asked<'_> {
    fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    async fn read(&self) -> Result<Response, Problem> {
        let (engine, before) = (&self.site.engine, self.site.answers.state());
        let form = Form::of(self.list.offers(), &Accept::of(self.headers()));
        if self.headers().contains_key(IF_NONE_MATCH) || self.headers().contains_key(IF_MATCH) {
            // So much tells whether it would be packed, and so its tag. A store weighs more than is written down.
            let glance = part(engine, self.list, form, None, 4 * WORTH_COMPRESSING).await?;
            etags::allow(self.headers(), Some(&form.tag(glance.version)))?;
            let glance = self.readable(form, glance.version, glance.bytes.into_response());
            let glance = etags::unless_known(self.headers(), glance);
            if glance.status() == StatusCode::NOT_MODIFIED {
                return Ok(glance);
            }
        }
        let first = part(engine, self.list, form, None, PART).await?;
        let version = first.version;
        etags::allow(self.headers(), Some(&form.tag(version)))?;
        let media = [(CONTENT_TYPE, form.media())];
        let response = match first.rest {
            None => Made::mark(before, (media, first.bytes).into_response()),
            Some(rest) => {
                (media, follow(engine.clone(), self.list.clone(), form, first.bytes, rest)).into_response()
            }
        };
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
        let value = body_text::text(self.headers(), &body)?;
        let said = format!("Added: {value}\n");
        let act = ListAct::Append { value, expected: plain_list::expected(self.headers()) };
        self.write(act, said, &body, StatusCode::CREATED).await
    }

    async fn replace(&self, index: &str, body: Sent) -> Result<Response, Problem> {
        let (index, body) = (self.index(index)?, body?);
        let value = body_text::text(self.headers(), &body)?;
        let said = format!("Index {index} is now: {value}\n");
        let act = ListAct::Replace { index, value, expected: plain_list::expected(self.headers()) };
        self.write(act, said, &body, StatusCode::OK).await
    }

    async fn remove(&self, index: &str) -> Result<Response, Problem> {
        let act =
            ListAct::Remove { index: self.index(index)?, expected: plain_list::expected(self.headers()) };
        self.write(act, "Removed: ".to_owned(), b"", StatusCode::OK).await
    }

    async fn write(
        &self,
        act: ListAct,
        said: String,
        body: &[u8],
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let key = List::key(self.head, body)?;
        let confirmed =
            self.list.write(&self.site.engine, act, said, key).await.map_err(plain_list::refusal)?;
        let response = (status, [(CONTENT_TYPE, TEXT)], confirmed.text.clone()).into_response();
        Ok(confirmed.marked(response))
    }

    /// An integer of any length is an index, if not one of this list.
    fn index(&self, text: &str) -> Result<i64, Problem> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            let detail = "the index must be an integer; the first value has index 0";
            return Err(Problem::bad_request("MALFORMED_INDEX", detail));
        }
        text.parse().map_err(|_| Error::not_found(format!("that index of {}", self.list.path)).into())
    }
}

/// Every answer tells the version; one that has not is about the list as it is now.
pub async fn tagged(engine: &Engine, list: &List, mut response: Response) -> Response {
    if !response.headers().contains_key(ETAG)
        && let Ok(version) = look(engine, list).await
    {
        response.headers_mut().insert(ETAG, header(&plain_list::tag(version)));
    }
    response
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("tags and declared paths are visible ASCII")
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

async fn part(
    engine: &Engine,
    list: &List,
    form: Form,
    from: Option<Place>,
    bytes: usize,
) -> Result<Part, Error> {
    let reading = Reading::new(form, from.is_none());
    ask(engine, list, ListAct::Read { from, bytes }, reading).await
}

async fn ask(engine: &Engine, list: &List, act: ListAct, reading: Reading) -> Result<Part, Error> {
    let answer: Box<dyn Answer> = Box::new(reading);
    let request = trefoil_engine::Request::new(answer);
    match engine.run(vec![Ok(list.operation(act))], request).await? {
        Done::Answered(answer) => {
            let (bytes, outcome) = answer_as::<Reading>(answer)?.finish()?;
            match outcome {
                Outcome::Plain { version, rest, .. } => Ok(Part { bytes, version, rest }),
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
            let part = part(&engine, &list, form, Some(from), PART).await?;
            Ok::<_, Error>(Some((part.bytes, part.rest)))
        }
    });
    let first = stream::once(std::future::ready(Ok(first)));
    Body::from_stream(first.chain(others).map_ok(Bytes::from))
}
