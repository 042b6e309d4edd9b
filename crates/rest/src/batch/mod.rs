//! `POST /_/batch`: several requests for records and plain lists in one. The server crate runs them.

mod references;
mod results;

use axum::body::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::Value;

use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::{etags, form_pairs};
use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::values::coerce;
use trefoil_resources::body_text;

pub use crate::batch::results::{BatchResult, ResultBudget, at_index, results_json};

/// The address of batches.
pub const BATCH_PATH: &str = "/_/batch";

const MEMBERS: [&str; 4] = ["method", "path", "headers", "body"];

/// The headers that a request of a batch may have.
const ITEM_HEADERS: [HeaderName; 4] = [ACCEPT, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH];

/// A batch as it was sent, with every request well-formed.
pub struct BatchRequest {
    pub items: Vec<BatchItem>,
    /// All or nothing; otherwise each by itself.
    pub is_atomic: bool,
}

/// One request of a batch; its path and body may refer to earlier results.
pub struct BatchItem {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Option<Value>,
}

impl BatchRequest {
    pub fn parse(head: &Parts, bytes: &[u8], max_items: usize) -> Result<BatchRequest, Problem> {
        let is_atomic = read_atomic(&head.uri)?;
        let media_type = body_text::media_type(&head.headers);
        if !matches!(media_type.as_str(), "application/json" | "text/json") {
            let detail = "a batch is a JSON array; send it as application/json";
            let accepted = HeaderValue::from_static("application/json");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
                .with_header(HeaderName::from_static("accept-post"), accepted));
        }
        // A batch has no version that it could depend on.
        etags::check_if_match(&head.headers, None)?;
        let text = body_text::decode_body(&head.headers, bytes)?;
        let items: Vec<Value> = serde_json::from_str(&text).map_err(|why| {
            Problem::bad_request("MALFORMED_BODY", format!("the body is not a JSON array: {why}"))
        })?;
        if items.len() > max_items {
            let detail = format!(
                "{} requests are too many for one batch: limits.batch allows at most {max_items}; split them",
                items.len()
            );
            return Err(Problem::bad_request("LIMIT_EXCEEDED", detail));
        }
        let mut violations = Vec::new();
        let mut read = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match BatchItem::read(item) {
                Ok(item) => read.push(item),
                Err(found) => {
                    let segment = || PathSegment::Index(index);
                    violations.extend(found.into_iter().map(|violation| violation.nested_under(segment())));
                }
            }
            if violations.len() >= coerce::MAX_VIOLATIONS {
                break;
            }
        }
        if violations.is_empty() {
            return Ok(BatchRequest { items: read, is_atomic });
        }
        let details: Vec<&str> = violations.iter().map(|violation| violation.message.as_str()).collect();
        Err(Problem::bad_request("INVALID", details.join("; ")).with_violations(violations))
    }
}

/// The parameter `atomic`, which is the only one.
fn read_atomic(uri: &Uri) -> Result<bool, Problem> {
    let mut is_atomic = true;
    for (name, value) in form_pairs::parse_urlencoded(uri.query().unwrap_or_default(), "the query")?.iter() {
        is_atomic = match (&**name, &**value) {
            ("atomic", "true") => true,
            ("atomic", "false") => false,
            ("atomic", _) => {
                return Err(Problem::bad_request("MALFORMED_QUERY", "`atomic` must be true or false"));
            }
            (name, _) => {
                let detail = format!("a batch has no parameter `{name}`; use `atomic`");
                return Err(Problem::bad_request("MALFORMED_QUERY", detail));
            }
        };
    }
    Ok(is_atomic)
}

impl BatchItem {
    fn read(item: Value) -> Result<BatchItem, Vec<Violation>> {
        let Value::Object(members) = item else {
            let message = "each request of a batch must be an object with `method` and `path`".to_owned();
            return Err(vec![Violation { path: Vec::new(), code: "TYPE", message }]);
        };
        let (mut violations, mut method, mut path) = (Vec::new(), None, None);
        let (mut headers, mut body) = (HeaderMap::new(), None);
        for (name, value) in members {
            let result = match name.as_str() {
                "method" => read_method(&value).map(|read| method = Some(read)),
                "path" => read_path(&value).map(|read| path = Some(read)),
                "headers" => read_headers(value).map(|read| headers = read),
                "body" => {
                    body = Some(value);
                    Ok(())
                }
                other => {
                    let near = nearest_name(other, MEMBERS);
                    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    let message = format!("a request of a batch has no member `{other}`{hint}");
                    Err(Violation::new(other, "UNKNOWN", message))
                }
            };
            violations.extend(result.err());
        }
        for (name, is_given) in [("method", method.is_some()), ("path", path.is_some())] {
            if !is_given && !violations.iter().any(|violation| is_at(violation, name)) {
                let message = format!("a request of a batch needs `{name}`");
                violations.push(Violation::new(name, "REQUIRED", message));
            }
        }
        match (method, path) {
            (Some(method), Some(path)) if violations.is_empty() => {
                Ok(BatchItem { method, path, headers, body })
            }
            _ => Err(violations),
        }
    }

    /// The request with the values of earlier results.
    pub fn resolve(&self, index: usize, results: &[BatchResult]) -> Result<(Parts, Bytes), Problem> {
        let at = |name: &str| vec![PathSegment::Index(index), PathSegment::Field(name.to_owned())];
        let path = references::resolve_path(&self.path, results)
            .map_err(|why| refusal(at("path"), "BATCH_REFERENCE", why))?;
        let uri: Uri =
            path.parse().map_err(|_| refusal(at("path"), "TYPE", format!("{path:?} is not a path")))?;
        let body = match &self.body {
            None => Bytes::new(),
            Some(body) => {
                let mut body = body.clone();
                references::resolve_body(&mut body, results)
                    .map_err(|(path, why)| refusal([at("body"), path].concat(), "BATCH_REFERENCE", why))?;
                Bytes::from(body.to_string())
            }
        };
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if !matches!(self.method, Method::GET | Method::DELETE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok((request.into_parts().0, body))
    }

    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }
}

fn is_at(violation: &Violation, name: &str) -> bool {
    violation.path.first() == Some(&PathSegment::Field(name.to_owned()))
}

fn read_method(value: &Value) -> Result<Method, Violation> {
    let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let found = known.into_iter().find(|method| value.as_str() == Some(method.as_str()));
    found.ok_or_else(|| {
        Violation::new("method", "ENUM", "`method` must be one of GET, POST, PUT, PATCH, DELETE")
    })
}

fn read_path(value: &Value) -> Result<String, Violation> {
    match value.as_str() {
        Some(path) if path.starts_with('/') && !path.starts_with("//") => Ok(path.to_owned()),
        Some(_) | None => Err(Violation::new(
            "path",
            "TYPE",
            "`path` must be a text that begins with a slash, without scheme and host",
        )),
    }
}

fn read_headers(value: Value) -> Result<HeaderMap, Violation> {
    let Value::Object(members) = value else {
        return Err(Violation::new("headers", "TYPE", "`headers` must be an object of texts"));
    };
    let mut headers = HeaderMap::new();
    for (name, value) in members {
        let refused = |code, message: String| {
            let violation = Violation::new(&name, code, message);
            Err(violation.nested_under(PathSegment::Field("headers".to_owned())))
        };
        let Some(header) = ITEM_HEADERS.iter().find(|known| known.as_str().eq_ignore_ascii_case(&name))
        else {
            let names = ITEM_HEADERS.map(|known| known.to_string()).join(", ");
            return refused("UNKNOWN", format!("a request of a batch can have the headers {names}"));
        };
        let text = value.as_str().and_then(|text| HeaderValue::from_str(text).ok());
        let Some(text) = text else {
            return refused("TYPE", format!("the header `{name}` must be a text of visible letters"));
        };
        let is_json = text.to_str().is_ok_and(|text| text.contains("json") || text == "*/*");
        if (*header == ACCEPT || *header == CONTENT_TYPE) && !is_json {
            return refused("TYPE", "requests and results of a batch are JSON".to_owned());
        }
        headers.insert(header.clone(), text);
    }
    Ok(headers)
}

/// The problem of a request that is not run, with its place in the batch.
fn refusal(path: Vec<PathSegment>, code: &'static str, why: String) -> Problem {
    let violation = Violation { path, code, message: why.clone() };
    Problem::bad_request("INVALID", why).with_violations(vec![violation]).with_format(ErrorFormat::Json)
}
