//! The one place where a [`Problem`] gets its body: GraphQL errors, a page, problem+json or plain text.

use axum::body::Body;
use axum::response::Response;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, VARY};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use serde_json::{Value, json};

use crate::client::Client;
use crate::errors::problem::{About, Problem, Voice};
use crate::negotiation::accept::Accept;
use crate::negotiation::format::{Chosen, chosen};
use crate::service::ErrorPage;

use trefoil_model::error::{Segment, Violation};

/// What the body of an error depends on, kept from the request before a handler takes it.
///
/// Only kept, not judged: nearly every request succeeds and never needs the judgement.
#[derive(Debug, Clone)]
pub struct Asker {
    pub method: Method,
    pub uri: Uri,
    client: Client,
    host: Option<HeaderValue>,
    accept: Vec<HeaderValue>,
    /// What the body was.
    sent: Option<HeaderValue>,
    /// Set where the path has a say.
    pub(crate) speaks: Option<Speaks>,
}

/// How errors are said at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Whatever `Accept` says.
    Always(Voice),
    /// Where `Accept` asks for no form in particular.
    Otherwise(Voice),
}

impl Asker {
    pub fn of<B>(request: &Request<B>, client: &Client) -> Self {
        let headers = request.headers();
        Asker {
            method: request.method().clone(),
            uri: request.uri().clone(),
            client: client.clone(),
            host: headers.get(HOST).cloned(),
            accept: headers.get_all(ACCEPT).iter().cloned().collect(),
            sent: headers.get(CONTENT_TYPE).cloned(),
            speaks: None,
        }
    }

    /// By which address we were reached: `https://shop.example`.
    pub fn origin(&self) -> String {
        self.client.origin(self.host.as_ref())
    }

    fn speaks_graphql(&self) -> bool {
        self.uri.path().strip_prefix("/graphql").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn sent_json(&self) -> bool {
        let sent = self.sent.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
        sent.windows(4).any(|part| part.eq_ignore_ascii_case(b"json"))
    }

    fn voice(&self) -> Voice {
        let otherwise = match self.speaks {
            Some(Speaks::Always(voice)) => return voice,
            // Who sends JSON, or names fields or a format, and asks for nothing in particular is a program.
            Some(Speaks::Otherwise(Voice::Html))
                if self.sent_json() || chosen(&self.uri) != Chosen::Nothing =>
            {
                Voice::Json
            }
            Some(Speaks::Otherwise(voice)) => voice,
            None if self.speaks_graphql() => return Voice::GraphQl,
            None => Voice::Text,
        };
        by_accept(&Accept::of_lines(&self.accept), otherwise)
    }

    /// Whether `Accept` makes no difference here.
    fn is_decided(&self) -> bool {
        matches!(self.speaks, Some(Speaks::Always(_)))
    }

    fn graphql_media(&self) -> &'static str {
        let accept = Accept::of_lines(&self.accept);
        let own = "application/graphql-response+json";
        if accept.names(own) && accept.quality(own) >= accept.quality("application/json") {
            "application/graphql-response+json; charset=utf-8"
        } else {
            "application/json; charset=utf-8"
        }
    }
}

fn by_accept(accept: &Accept<'_>, otherwise: Voice) -> Voice {
    const JSON: [&str; 4] =
        ["application/problem+json", "application/json", "application/x-ndjson", "text/csv"];
    if accept.prefers_html() {
        Voice::Html
    } else if JSON.iter().any(|media| accept.names(media)) {
        Voice::Json
    } else if accept.names("text/plain") {
        Voice::Text
    } else {
        otherwise
    }
}

/// Gives `response` the body of `problem`; what other layers have put in its headers stays.
pub fn spell(
    problem: &Problem,
    asker: &Asker,
    request_id: &str,
    page: &ErrorPage,
    mut response: Response,
) -> Response {
    let voice = problem.voice.unwrap_or_else(|| asker.voice());
    let (media, body) = match voice {
        Voice::GraphQl => (asker.graphql_media(), graphql(problem, request_id)),
        Voice::Html => ("text/html; charset=utf-8", page(problem, asker, request_id)),
        Voice::Json => ("application/problem+json; charset=utf-8", problem_json(problem, request_id)),
        Voice::Text => ("text/plain; charset=utf-8", text(problem, request_id)),
    };
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if problem.voice.is_none() && !asker.is_decided() {
        vary_on(headers, ACCEPT);
    }
    *response.body_mut() = Body::from(body);
    response
}

fn vary_on(headers: &mut HeaderMap, name: HeaderName) {
    let told = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    let mut names = told.flat_map(|line| line.split(',')).map(str::trim);
    if !names.any(|told| told.eq_ignore_ascii_case(name.as_str())) {
        headers.append(VARY, name.into());
    }
}

fn graphql(problem: &Problem, request_id: &str) -> String {
    let mut extensions = json!({ "code": problem.code, "requestId": request_id });
    if !problem.violations.is_empty() {
        extensions["violations"] = problem.violations.iter().map(violation).collect();
    }
    json!({ "errors": [{ "message": problem.detail, "extensions": extensions }] }).to_string()
}

fn violation(violation: &Violation) -> Value {
    let path: Vec<Value> = violation.path.iter().map(step).collect();
    json!({ "path": path, "code": violation.code, "message": violation.message })
}

fn step(segment: &Segment) -> Value {
    match segment {
        Segment::Field(name) => name.as_str().into(),
        Segment::Index(index) => (*index).into(),
    }
}

/// RFC 9457, with our stable code and one entry per broken rule.
fn problem_json(problem: &Problem, request_id: &str) -> String {
    let mut body = json!({
        "type": "about:blank",
        "title": problem.title(),
        "status": problem.status.as_u16(),
        "detail": problem.detail,
        "code": problem.code,
        "requestId": request_id,
    });
    if !problem.violations.is_empty() {
        let entry = |violation: &Violation| match problem.about {
            About::Body => entry("pointer", pointer(&violation.path), violation),
            About::Query => entry("parameter", parameter(&violation.path), violation),
        };
        body["errors"] = problem.violations.iter().map(entry).collect();
    }
    body.to_string()
}

fn entry(place: &str, at: String, violation: &Violation) -> Value {
    json!({ place: at, "code": violation.code, "detail": violation.message })
}

/// The name of a parameter: the first step tells all.
fn parameter(path: &[Segment]) -> String {
    match path.first() {
        Some(Segment::Field(name)) => name.clone(),
        Some(Segment::Index(_)) | None => String::new(),
    }
}

/// A JSON Pointer as a URI fragment, as RFC 9457 shows it: `#/lines/0/price`.
fn pointer(path: &[Segment]) -> String {
    let mut pointer = String::from("#");
    for segment in path {
        pointer.push('/');
        match segment {
            Segment::Field(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Segment::Index(index) => pointer.push_str(&index.to_string()),
        }
    }
    pointer
}

fn text(problem: &Problem, request_id: &str) -> String {
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

    fn spelled(path: &'static str, accept: &'static str, problem: Problem) -> (String, String) {
        let request = Request::get(path).header(ACCEPT, accept).body(()).expect("a request");
        let client = Client::of(None, request.headers(), &[]);
        let response = spell(
            &problem,
            &Asker::of(&request, &client),
            "id-1",
            &(std::sync::Arc::new(|problem: &Problem, _: &Asker, id: &str| format!("{} {id}", problem.detail))
                as ErrorPage),
            problem.clone().into_response(),
        );
        let media = response.headers()[CONTENT_TYPE].to_str().expect("ASCII").to_owned();
        let body =
            futures_util::FutureExt::now_or_never(axum::body::to_bytes(response.into_body(), usize::MAX));
        let bytes = body.expect("no waiting").expect("no failure");
        (media, String::from_utf8(bytes.to_vec()).expect("UTF-8"))
    }

    #[test]
    fn the_asker_decides_the_form() {
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
            assert_eq!(spelled(path, accept, crate::not_found()).0, media, "{path} {accept}");
        }
    }

    #[test]
    fn every_violation_is_listed_with_its_pointer() {
        let path = vec![Segment::Field("li/nes".into()), Segment::Index(0)];
        let broken = Violation { path, code: "RANGE", message: "too \"small\"".into() };
        let problem = Problem::bad_request("INVALID", "one rule").violations(vec![broken]);
        let (_, body) = spelled("/users", "application/json", problem.clone());
        let value: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(value["errors"][0]["pointer"], "#/li~1nes/0");
        let (_, body) = spelled("/graphql", "*/*", problem);
        let value: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(value["errors"][0]["extensions"]["violations"][0]["path"], json!(["li/nes", 0]));
    }

    #[test]
    fn a_cause_is_never_shown() {
        for (path, accept) in
            [("/", "*/*"), ("/", "application/json"), ("/", "text/html"), ("/graphql", "*/*")]
        {
            let (_, body) = spelled(path, accept, Problem::internal("password=1"));
            assert!(!body.contains("password") && body.contains("id-1"), "{body}");
        }
    }
}
