//! Text endpoints: bytes prepared at the start, sent as they stand to whatever method they are declared for.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use trefoil_application::{AllowedMethods, EndpointReply, TextEndpoint};
use trefoil_http::errors::problem::{ErrorFormat, method_not_allowed};
use trefoil_http::etags;
use trefoil_http::response_headers::{self, RequestId};

pub const TEXT_PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What a path with any method at all says to OPTIONS: the methods that people have heard of.
const KNOWN_METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/// Everything at one path: an answer, or several for different methods.
#[derive(Default)]
pub struct TextPath {
    replies: Vec<PreparedReply>,
}

struct PreparedReply {
    methods: AllowedMethods,
    content: ReplyContent,
    printed_line: Option<String>,
}

enum ReplyContent {
    Text(PreparedText),
    View { name: String, cache: Option<HeaderValue> },
}

struct PreparedText {
    bytes: Bytes,
    etag: String,
    headers: HeaderMap,
}

impl TextPath {
    pub fn add(&mut self, endpoint: &TextEndpoint) {
        let cache = endpoint.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        let content = match &endpoint.reply {
            EndpointReply::Text(text) => ReplyContent::Text(PreparedText::new(text, cache)),
            EndpointReply::View(name) => ReplyContent::View { name: name.clone(), cache },
        };
        let (methods, print) = (endpoint.methods.clone(), endpoint.print.clone());
        self.replies.push(PreparedReply { methods, content, printed_line: print });
    }

    /// `view` shows the view of a name.
    pub async fn respond(
        &self,
        method: &Method,
        headers: &HeaderMap,
        request: Option<&RequestId>,
        view: impl Fn(&str) -> Response,
    ) -> Response {
        let mut response = match self.reply_for(method) {
            Some(prepared) => prepared.respond(method, headers, request, view).await,
            None if method == Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            None => {
                return method_not_allowed(&self.allowed_methods())
                    .with_format(ErrorFormat::Text)
                    .into_response();
            }
        };
        if method == Method::OPTIONS {
            response
                .headers_mut()
                .insert(ALLOW, self.allowed_methods().parse().expect("methods are visible ASCII"));
        }
        response
    }

    /// The same, where it is a text and nothing is printed.
    pub fn respond_immediately(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        let prepared = self.reply_for(method).filter(|prepared| prepared.printed_line.is_none())?;
        match &prepared.content {
            ReplyContent::Text(text) if method != Method::OPTIONS => Some(text.respond(method, headers)),
            ReplyContent::Text(_) | ReplyContent::View { .. } => None,
        }
    }

    /// HEAD follows GET unless it has an answer of its own.
    fn reply_for(&self, method: &Method) -> Option<&PreparedReply> {
        let takes = |method: &str| self.replies.iter().find(|prepared| prepared.accepts(method));
        takes(method.as_str()).or_else(|| if method == Method::HEAD { takes("GET") } else { None })
    }

    fn allowed_methods(&self) -> String {
        let mut allowed: Vec<&str> = Vec::new();
        for prepared in &self.replies {
            match &prepared.methods {
                AllowedMethods::Any => allowed.extend(KNOWN_METHODS),
                AllowedMethods::Only(methods) => allowed.extend(methods.iter().map(String::as_str)),
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

impl PreparedText {
    fn new(text: &str, cache: Option<HeaderValue>) -> PreparedText {
        let tag = format!("\"{:016x}\"", xxh3_64(text.as_bytes()));
        let own = [(CONTENT_TYPE, TEXT_PLAIN), (ETAG, tag.parse().expect("hexadecimal digits in quotes"))];
        let cache = cache.map(|cache| (CACHE_CONTROL, cache));
        let headers = response_headers::with_defaults(own.into_iter().chain(cache).collect());
        PreparedText { bytes: Bytes::from(text.to_owned()), etag: tag, headers }
    }

    fn respond(&self, method: &Method, asking: &HeaderMap) -> Response {
        let is_read = method == Method::GET || method == Method::HEAD;
        if is_read && let Err(problem) = etags::check_if_match(asking, Some(&self.etag)) {
            return problem.with_format(ErrorFormat::Text).into_response();
        }
        let mut response = Response::new(Body::from(self.bytes.clone()));
        *response.headers_mut() = self.headers.clone();
        if is_read { etags::not_modified_if_known(asking, response) } else { response }
    }
}

impl PreparedReply {
    fn accepts(&self, method: &str) -> bool {
        match &self.methods {
            AllowedMethods::Any => true,
            AllowedMethods::Only(methods) => methods.iter().any(|one| one == method),
        }
    }

    async fn respond(
        &self,
        method: &Method,
        headers: &HeaderMap,
        request: Option<&RequestId>,
        view: impl Fn(&str) -> Response,
    ) -> Response {
        if let Some(line) = &self.printed_line {
            print_line(line.clone(), request).await;
        }
        match &self.content {
            ReplyContent::Text(text) => text.respond(method, headers),
            ReplyContent::View { name, cache } => with_cache_control(view(name), cache.as_ref()),
        }
    }
}

/// Neither a failure nor a page that says what it has for one reader alone is what was declared to be kept.
fn with_cache_control(mut response: Response, cache: Option<&HeaderValue>) -> Response {
    let is_passing = response.status().is_server_error() || response.headers().contains_key(CACHE_CONTROL);
    if let Some(cache) = cache.filter(|_| !is_passing) {
        response.headers_mut().insert(CACHE_CONTROL, cache.clone());
    }
    response
}

/// One line on standard output. On a thread that may wait: nobody promises that the other end reads.
async fn print_line(line: String, request: Option<&RequestId>) {
    let written = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush())
    });
    if let Ok(Err(error)) = written.await {
        let request_id = request.map(RequestId::as_str);
        tracing::warn!(request_id, %error, "standard output takes no lines");
    }
}
