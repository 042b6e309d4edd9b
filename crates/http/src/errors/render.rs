//! The bodies of a [`Problem`]: GraphQL errors, an HTML page, problem+json or plain text.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, LOCATION, VARY, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::{Value, json};

use trefoil_engine::ActorIdentity;
use trefoil_model::error::{PathSegment, Violation};

use crate::client_info::ClientInfo;
use crate::errors::problem::{ErrorFormat, Problem, RequestPart};
use crate::form_pairs::percent_encode;
use crate::negotiation::accept::AcceptHeader;
use crate::negotiation::format::{FormatChoice, chosen};

/// Renders the HTML page of an error, from the problem, its request and the request id.
pub type ErrorPageRenderer = Arc<dyn Fn(&Problem, &ErrorContext, &str) -> String + Send + Sync>;

/// The parts of a request that determine the body of an error, saved before a handler takes the request.
///
/// They are saved but not evaluated: nearly every request succeeds and never needs them.
#[derive(Debug, Clone)]
pub struct ErrorContext {
    pub method: Method,
    pub uri: Uri,
    client: ClientInfo,
    host: Option<HeaderValue>,
    accept: Vec<HeaderValue>,
    /// Of the request's body.
    content_type: Option<HeaderValue>,
    /// Set if the path influences the format.
    pub(crate) format_policy: Option<FormatPolicy>,
}

/// The format of errors at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatPolicy {
    /// Whatever `Accept` says.
    Always(ErrorFormat),
    /// Unless `Accept` names another format.
    Fallback(ErrorFormat),
}

impl ErrorContext {
    pub fn from_request<B>(request: &Request<B>, client: &ClientInfo) -> Self {
        let headers = request.headers();
        ErrorContext {
            method: request.method().clone(),
            uri: request.uri().clone(),
            client: client.clone(),
            host: headers.get(HOST).cloned(),
            accept: headers.get_all(ACCEPT).iter().cloned().collect(),
            content_type: headers.get(CONTENT_TYPE).cloned(),
            format_policy: None,
        }
    }

    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    /// Sets whom the request's credential proves: pages of errors show what that actor may see.
    pub(crate) fn set_identity(&mut self, identity: Option<Arc<ActorIdentity>>) {
        self.client.identity = identity;
    }

    /// The origin by which the client reached us: `https://shop.example`.
    pub fn origin(&self) -> String {
        self.client.origin(self.host.as_ref())
    }

    fn is_graphql_path(&self) -> bool {
        self.uri.path().strip_prefix("/graphql").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn sent_json(&self) -> bool {
        let content_type = self.content_type.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
        content_type.windows(4).any(|part| part.eq_ignore_ascii_case(b"json"))
    }

    fn error_format(&self) -> ErrorFormat {
        let fallback = match self.format_policy {
            Some(FormatPolicy::Always(format)) => return format,
            // A client that sends JSON, or names fields or a format, and has no preference in `Accept` is a program.
            Some(FormatPolicy::Fallback(ErrorFormat::Html))
                if self.sent_json() || chosen(&self.uri) != FormatChoice::Unspecified =>
            {
                ErrorFormat::Json
            }
            Some(FormatPolicy::Fallback(format)) => format,
            None if self.is_graphql_path() => return ErrorFormat::Graphql,
            None => ErrorFormat::Text,
        };
        format_by_accept(&AcceptHeader::from_lines(&self.accept), fallback)
    }

    /// Whether a person asked for a page that is only for those who are signed in. Who sent a credential is told about it.
    pub(crate) fn needs_sign_in(&self, problem: &Problem) -> bool {
        let is_page = problem.format.unwrap_or_else(|| self.error_format()) == ErrorFormat::Html;
        let has_credential = problem.headers.iter().any(|(name, _)| name == WWW_AUTHENTICATE);
        is_page && problem.code == "UNAUTHENTICATED" && self.method.is_safe() && !has_credential
    }

    /// Leads to the page where people sign in, and back from there.
    pub(crate) fn lead_to_sign_in(&self, mut response: Response) -> Response {
        let next = self.uri.path_and_query().map_or("/", |address| address.as_str());
        let location = format!("/_/sign-in?next={}", percent_encode(next));
        *response.status_mut() = StatusCode::SEE_OTHER;
        let headers = response.headers_mut();
        headers.insert(LOCATION, HeaderValue::try_from(location).expect("encoded"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        vary_on(headers, ACCEPT);
        response
    }

    /// Whether `Accept` makes no difference here.
    fn ignores_accept(&self) -> bool {
        matches!(self.format_policy, Some(FormatPolicy::Always(_)))
    }

    fn graphql_media(&self) -> &'static str {
        let accept = AcceptHeader::from_lines(&self.accept);
        let graphql_json = "application/graphql-response+json";
        if accept.names_type(graphql_json)
            && accept.quality(graphql_json) >= accept.quality("application/json")
        {
            "application/graphql-response+json; charset=utf-8"
        } else {
            "application/json; charset=utf-8"
        }
    }
}

fn format_by_accept(accept: &AcceptHeader<'_>, fallback: ErrorFormat) -> ErrorFormat {
    const JSON: [&str; 4] =
        ["application/problem+json", "application/json", "application/x-ndjson", "text/csv"];
    if accept.prefers_html() {
        ErrorFormat::Html
    } else if JSON.iter().any(|media| accept.names_type(media)) {
        ErrorFormat::Json
    } else if accept.names_type("text/plain") {
        ErrorFormat::Text
    } else {
        fallback
    }
}

/// Gives `response` the body of `problem`; headers set by other layers stay.
pub fn render_error(
    problem: &Problem,
    context: &ErrorContext,
    request_id: &str,
    page: &ErrorPageRenderer,
    mut response: Response,
) -> Response {
    let format = problem.format.unwrap_or_else(|| context.error_format());
    let (media, body) = match format {
        ErrorFormat::Graphql => (context.graphql_media(), graphql_body(problem, request_id)),
        ErrorFormat::Html => ("text/html; charset=utf-8", page(problem, context, request_id)),
        ErrorFormat::Json => {
            ("application/problem+json; charset=utf-8", problem_value(problem, request_id).to_string())
        }
        ErrorFormat::Text => ("text/plain; charset=utf-8", text_body(problem, request_id)),
    };
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if problem.format.is_none() && !context.ignores_accept() {
        vary_on(headers, ACCEPT);
    }
    *response.body_mut() = Body::from(body);
    response
}

fn vary_on(headers: &mut HeaderMap, name: HeaderName) {
    let lines = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    let mut names = lines.flat_map(|line| line.split(',')).map(str::trim);
    if !names.any(|listed| listed.eq_ignore_ascii_case(name.as_str())) {
        headers.append(VARY, name.into());
    }
}

fn graphql_body(problem: &Problem, request_id: &str) -> String {
    let mut extensions = json!({ "code": problem.code, "requestId": request_id });
    if !problem.violations.is_empty() {
        extensions["violations"] = problem.violations.iter().map(violation_json).collect();
    }
    json!({ "errors": [{ "message": problem.detail, "extensions": extensions }] }).to_string()
}

fn violation_json(violation: &Violation) -> Value {
    let path: Vec<Value> = violation.path.iter().map(segment_json).collect();
    json!({ "path": path, "code": violation.code, "message": violation.message })
}

fn segment_json(segment: &PathSegment) -> Value {
    match segment {
        PathSegment::Field(name) => name.as_str().into(),
        PathSegment::Index(index) => (*index).into(),
    }
}

/// RFC 9457, with our stable code and one entry per violation.
pub fn problem_value(problem: &Problem, request_id: &str) -> Value {
    let mut body = json!({
        "type": "about:blank",
        "title": problem.title(),
        "status": problem.status.as_u16(),
        "detail": problem.detail,
        "code": problem.code,
        "requestId": request_id,
    });
    if let Some(index) = problem.index {
        body["index"] = index.into();
    }
    if !problem.violations.is_empty() {
        let entry = |violation: &Violation| match problem.request_part {
            RequestPart::Body => problem_entry("pointer", json_pointer(&violation.path), violation),
            RequestPart::Query => problem_entry("parameter", parameter_name(&violation.path), violation),
        };
        body["errors"] = problem.violations.iter().map(entry).collect();
    }
    body
}

fn problem_entry(key: &str, location: String, violation: &Violation) -> Value {
    json!({ key: location, "code": violation.code, "detail": violation.message })
}

/// The name of a parameter: the first segment of the path.
fn parameter_name(path: &[PathSegment]) -> String {
    match path.first() {
        Some(PathSegment::Field(name)) => name.clone(),
        Some(PathSegment::Index(_)) | None => String::new(),
    }
}

/// A JSON Pointer as a URI fragment, as RFC 9457 shows it: `#/lines/0/price`.
fn json_pointer(path: &[PathSegment]) -> String {
    let mut pointer = String::from("#");
    for segment in path {
        pointer.push('/');
        match segment {
            PathSegment::Field(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
            PathSegment::Index(index) => pointer.push_str(&index.to_string()),
        }
    }
    pointer
}

fn text_body(problem: &Problem, request_id: &str) -> String {
    let mut body = format!("{}\n", problem.detail);
    if problem.status.is_server_error() {
        body.push_str(&format!("request id: {request_id}\n"));
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;

    fn render(path: &'static str, accept: &'static str, problem: Problem) -> (String, String) {
        let request = Request::get(path).header(ACCEPT, accept).body(()).expect("a request");
        let client = ClientInfo::from_request(None, false, request.headers(), &[]);
        let response = render_error(
            &problem,
            &ErrorContext::from_request(&request, &client),
            "id-1",
            &(std::sync::Arc::new(|problem: &Problem, _: &ErrorContext, id: &str| {
                format!("{} {id}", problem.detail)
            }) as ErrorPageRenderer),
            problem.clone().into_response(),
        );
        let media = response.headers()[CONTENT_TYPE].to_str().expect("ASCII").to_owned();
        let body =
            futures_util::FutureExt::now_or_never(axum::body::to_bytes(response.into_body(), usize::MAX));
        let bytes = body.expect("no waiting").expect("no failure");
        (media, String::from_utf8(bytes.to_vec()).expect("UTF-8"))
    }

    #[test]
    fn error_format_follows_path_and_accept() {
        let table = [
            ("/users", "*/*", "text/plain; charset=utf-8"),
            ("/users", "application/json", "application/problem+json; charset=utf-8"),
            ("/users", "text/html,*/*;q=0.8", "text/html; charset=utf-8"),
            ("/graphql", "text/html,*/*;q=0.8", "application/json; charset=utf-8"),
            (
                "/graphql/x",
                "application/graphql-response+json",
                "application/graphql-response+json; charset=utf-8",
            ),
            ("/graphqls", "*/*", "text/plain; charset=utf-8"),
        ];
        for (path, accept, media) in table {
            assert_eq!(render(path, accept, crate::not_found()).0, media, "{path} {accept}");
        }
    }

    #[test]
    fn violations_are_listed_with_their_paths() {
        let path = vec![PathSegment::Field("li/nes".into()), PathSegment::Index(0)];
        let broken = Violation { path, code: "RANGE", message: "too \"small\"".into() };
        let problem = Problem::bad_request("INVALID", "one rule").with_violations(vec![broken]);
        let (_, body) = render("/users", "application/json", problem.clone());
        let value: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(value["errors"][0]["pointer"], "#/li~1nes/0");
        let (_, body) = render("/graphql", "*/*", problem);
        let value: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(value["errors"][0]["extensions"]["violations"][0]["path"], json!(["li/nes", 0]));
    }

    #[test]
    fn causes_are_never_shown() {
        for (path, accept) in
            [("/", "*/*"), ("/", "application/json"), ("/", "text/html"), ("/graphql", "*/*")]
        {
            let (_, body) = render(path, accept, Problem::internal("password=1"));
            assert!(!body.contains("password") && body.contains("id-1"), "{body}");
        }
    }
}
