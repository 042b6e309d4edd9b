//! Text endpoints: fixed texts and views, prepared at start-up and sent for the methods they are declared for.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use trefoil_application::{AllowedMethods, EndpointReply, TextEndpoint};
use trefoil_http::errors::problem::{ErrorFormat, Problem, method_not_allowed};
use trefoil_http::etags;
use trefoil_http::response_headers::{self, RequestId};
use trefoil_model::error::Error;

pub const TEXT_PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The methods listed in `Allow` for a path that accepts any method.
const KNOWN_METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/// All replies at one path, each for its own methods.
#[derive(Default)]
pub struct TextPath {
    replies: Vec<PreparedReply>,
}

struct PreparedReply {
    methods: AllowedMethods,
    content: ReplyContent,
    printed_line: Option<String>,
    /// Its position in `trefoil.toml`, if not everybody may see it.
    guarded: Option<usize>,
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
    /// `position` is that in `trefoil.toml`.
    pub fn add(&mut self, position: usize, endpoint: &TextEndpoint) {
        let cache = endpoint.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        let content = match &endpoint.reply {
            EndpointReply::Text(text) => ReplyContent::Text(PreparedText::new(text, cache)),
            EndpointReply::View(name) => ReplyContent::View { name: name.clone(), cache },
        };
        let (methods, printed_line) = (endpoint.methods.clone(), endpoint.print.clone());
        let guarded = endpoint.allow.as_ref().map(|_| position);
        self.replies.push(PreparedReply { methods, content, printed_line, guarded });
    }

    /// The response to a request; `view` renders the view of a name, `check` refuses who may not see the endpoint at a
    /// position.
    pub async fn respond(
        &self,
        method: &Method,
        headers: &HeaderMap,
        request: Option<&RequestId>,
        view: impl Fn(&str) -> Response,
        check: impl Fn(usize) -> Result<(), Error>,
    ) -> Response {
        let reply = self.reply_for(method);
        if let Some(Err(error)) = reply.and_then(|reply| reply.guarded).map(check) {
            return Problem::from(error).with_format(ErrorFormat::Text).into_response();
        }
        let mut response = match reply {
            Some(reply) => reply.respond(method, headers, request, view).await,
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

    /// The same without waiting: for a text for everybody, with no line to print.
    pub fn respond_immediately(&self, method: &Method, headers: &HeaderMap) -> Option<Response> {
        let reply =
            self.reply_for(method).filter(|reply| reply.printed_line.is_none() && reply.guarded.is_none())?;
        match &reply.content {
            ReplyContent::Text(text) if method != Method::OPTIONS => Some(text.respond(method, headers)),
            ReplyContent::Text(_) | ReplyContent::View { .. } => None,
        }
    }

    /// Whether everybody may have what is at this path, by any method.
    pub fn is_public(&self) -> bool {
        self.replies.iter().all(|reply| reply.guarded.is_none())
    }

    /// The reply for a method. HEAD falls back to the reply of GET.
    fn reply_for(&self, method: &Method) -> Option<&PreparedReply> {
        let find_reply = |method: &str| self.replies.iter().find(|reply| reply.accepts(method));
        find_reply(method.as_str()).or_else(|| if method == Method::HEAD { find_reply("GET") } else { None })
    }

    /// As in the header `Allow`.
    pub fn allowed_methods(&self) -> String {
        let mut allowed: Vec<&str> = Vec::new();
        for reply in &self.replies {
            match &reply.methods {
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
        let etag = format!("\"{:016x}\"", xxh3_64(text.as_bytes()));
        let own_headers =
            [(CONTENT_TYPE, TEXT_PLAIN), (ETAG, etag.parse().expect("hexadecimal digits in quotes"))];
        let cache = cache.map(|cache| (CACHE_CONTROL, cache));
        let headers = response_headers::with_defaults(own_headers.into_iter().chain(cache).collect());
        PreparedText { bytes: Bytes::from(text.to_owned()), etag, headers }
    }

    fn respond(&self, method: &Method, headers: &HeaderMap) -> Response {
        let is_read = method == Method::GET || method == Method::HEAD;
        if is_read && let Err(problem) = etags::check_if_match(headers, Some(&self.etag)) {
            return problem.with_format(ErrorFormat::Text).into_response();
        }
        let mut response = Response::new(Body::from(self.bytes.clone()));
        *response.headers_mut() = self.headers.clone();
        if is_read { etags::not_modified_if_known(headers, response) } else { response }
    }
}

impl PreparedReply {
    fn accepts(&self, method: &str) -> bool {
        match &self.methods {
            AllowedMethods::Any => true,
            AllowedMethods::Only(methods) => methods.iter().any(|allowed| allowed == method),
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

/// Adds the declared `Cache-Control`, unless the response is a server error or has its own, as a page rendered for one
/// visitor does.
fn with_cache_control(mut response: Response, cache: Option<&HeaderValue>) -> Response {
    let is_exempt = response.status().is_server_error() || response.headers().contains_key(CACHE_CONTROL);
    if let Some(cache) = cache.filter(|_| !is_exempt) {
        response.headers_mut().insert(CACHE_CONTROL, cache.clone());
    }
    response
}

/// Prints one line to standard output, on a blocking thread: the reader of the pipe may be slow.
async fn print_line(line: String, request: Option<&RequestId>) {
    let written = tokio::task::spawn_blocking(move || {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush())
    });
    if let Ok(Err(error)) = written.await {
        let request_id = request.map(RequestId::as_str);
        tracing::warn!(request_id, %error, "cannot write to standard output");
    }
}
