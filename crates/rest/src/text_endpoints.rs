//! Text endpoints: bytes prepared at the start, sent as they stand to whatever method they are declared for.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use trefoil_application::{Methods, Reply, TextEndpoint};
use trefoil_http::errors::problem::{Voice, method_not_allowed};
use trefoil_http::etags;
use trefoil_http::response_headers;
use trefoil_http::response_headers::RequestId;

pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What a path with any method at all says to OPTIONS: the methods that people have heard of.
const EVERY: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/// Everything at one path: an answer, or several for different methods.
#[derive(Default)]
pub struct TextPath {
    answers: Vec<Prepared>,
}

struct Prepared {
    methods: Methods,
    content: Content,
    print: Option<String>,
}

enum Content {
    Text(Text),
    View { name: String, cache: Option<HeaderValue> },
}

struct Text {
    bytes: Bytes,
    tag: String,
    headers: HeaderMap,
}

impl TextPath {
    pub fn add(&mut self, endpoint: &TextEndpoint) {
        let cache = endpoint.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        let content = match &endpoint.reply {
            Reply::Text(text) => Content::Text(Text::new(text, cache)),
            Reply::View(name) => Content::View { name: name.clone(), cache },
        };
        let (methods, print) = (endpoint.methods.clone(), endpoint.print.clone());
        self.answers.push(Prepared { methods, content, print });
    }

    /// `view` shows the view of a name.
    pub async fn answer(
        &self,
        method: &Method,
        headers: &HeaderMap,
        request: Option<&RequestId>,
        view: impl Fn(&str) -> Response,
    ) -> Response {
        let mut response = match self.of(method) {
            Some(prepared) => prepared.answer(method, headers, request, view).await,
            None if method == Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            None => return method_not_allowed(&self.allow()).voice(Voice::Text).into_response(),
        };
        if method == Method::OPTIONS {
            response.headers_mut().insert(ALLOW, self.allow().parse().expect("methods are visible ASCII"));
        }
        response
    }

    /// The same, where it is a text and nothing is printed.
    pub fn answer_at_once(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        let prepared = self.of(method).filter(|prepared| prepared.print.is_none())?;
        match &prepared.content {
            Content::Text(text) if method != Method::OPTIONS => Some(text.sent(method, headers)),
            Content::Text(_) | Content::View { .. } => None,
        }
    }

    /// HEAD follows GET unless it has an answer of its own.
    fn of(&self, method: &Method) -> Option<&Prepared> {
        let takes = |method: &str| self.answers.iter().find(|prepared| prepared.takes(method));
        takes(method.as_str()).or_else(|| if method == Method::HEAD { takes("GET") } else { None })
    }

    fn allow(&self) -> String {
        let mut allowed: Vec<&str> = Vec::new();
        for prepared in &self.answers {
            match &prepared.methods {
                Methods::Any => allowed.extend(EVERY),
                Methods::Only(methods) => allowed.extend(methods.iter().map(String::as_str)),
            }
        }
        for (implied, by) in [("HEAD", Some("GET")), ("OPTIONS", None)] {
            if !allowed.contains(&implied) && by.is_none_or(|by| allowed.contains(&by)) {
                allowed.push(implied);
            }
        }
        allowed.join(", ")
    }
}

impl Text {
    fn new(text: &str, cache: Option<HeaderValue>) -> Text {
        let tag = format!("\"{:016x}\"", xxh3_64(text.as_bytes()));
        let own = [(CONTENT_TYPE, TEXT), (ETAG, tag.parse().expect("hexadecimal digits in quotes"))];
        let cache = cache.map(|cache| (CACHE_CONTROL, cache));
        let headers = response_headers::ready(own.into_iter().chain(cache).collect());
        Text { bytes: Bytes::from(text.to_owned()), tag, headers }
    }

    fn sent(&self, method: &Method, asking: &HeaderMap) -> Response {
        let is_read = method == Method::GET || method == Method::HEAD;
        if is_read && let Err(problem) = etags::allow(asking, Some(&self.tag)) {
            return problem.voice(Voice::Text).into_response();
        }
        let mut response = Response::new(Body::from(self.bytes.clone()));
        *response.headers_mut() = self.headers.clone();
        if is_read { etags::unless_known(asking, response) } else { response }
    }
}

impl Prepared {
    fn takes(&self, method: &str) -> bool {
        match &self.methods {
            Methods::Any => true,
            Methods::Only(methods) => methods.iter().any(|one| one == method),
        }
    }

    async fn answer(
        &self,
        method: &Method,
        headers: &HeaderMap,
        request: Option<&RequestId>,
        view: impl Fn(&str) -> Response,
    ) -> Response {
        if let Some(line) = &self.print {
            print(line.clone(), request).await;
        }
        match &self.content {
            Content::Text(text) => text.sent(method, headers),
            Content::View { name, cache } => kept(view(name), cache.as_ref()),
        }
    }
}

/// Neither a failure nor a page that says what it has for one reader alone is what was declared to be kept.
fn kept(mut response: Response, cache: Option<&HeaderValue>) -> Response {
    let is_passing = response.status().is_server_error() || response.headers().contains_key(CACHE_CONTROL);
    if let Some(cache) = cache.filter(|_| !is_passing) {
        response.headers_mut().insert(CACHE_CONTROL, cache.clone());
    }
    response
}

/// One line on standard output. On a thread that may wait: nobody promises that the other end reads.
async fn print(line: String, request: Option<&RequestId>) {
    let written = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush())
    });
    if let Ok(Err(error)) = written.await {
        let request_id = request.map(RequestId::as_str);
        tracing::warn!(request_id, %error, "standard output takes no lines");
    }
}
