//! Parses a GraphQL request from a POST body, a query string or a WebSocket message.

use std::borrow::Cow;

use axum::body::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use trefoil_config::ServerLimits;
use trefoil_http::errors::problem::Problem;
use trefoil_model::Value;

use crate::document::limits;
use crate::over_http::json_input::{self, malformed_request};

/// A well-formed GraphQL request.
#[derive(Debug)]
pub struct GraphqlRequest<'a> {
    pub query: Cow<'a, str>,
    pub operation_name: Option<Cow<'a, str>>,
    pub variables: Vec<(String, Value)>,
}

/// A request with the event after which a subscription is to continue.
#[derive(Debug)]
pub struct ParsedRequest<'a> {
    pub request: GraphqlRequest<'a>,
    /// `extensions.lastEventId`.
    pub last_event_id: Option<String>,
}

impl ParsedRequest<'_> {
    pub fn into_owned(self) -> ParsedRequest<'static> {
        let GraphqlRequest { query, operation_name, variables } = self.request;
        let operation_name = operation_name.map(|name| name.into_owned().into());
        ParsedRequest {
            request: GraphqlRequest { query: query.into_owned().into(), operation_name, variables },
            last_event_id: self.last_event_id,
        }
    }
}

/// The reason why a request was not accepted.
#[derive(Debug)]
pub enum RequestError {
    /// Not a GraphQL request.
    Malformed(Problem),
    /// A GraphQL request that exceeds a limit, or that needs something we do not have.
    Refused(Problem),
}

impl From<Problem> for RequestError {
    fn from(problem: Problem) -> Self {
        RequestError::Malformed(problem)
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Malformed(problem) | RequestError::Refused(problem) => problem,
        }
    }
}

#[derive(Deserialize)]
struct Parameters<'a> {
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow, rename = "operationName")]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
    #[serde(borrow)]
    extensions: Option<&'a RawValue>,
}

/// Parses the body of a POST.
pub fn parse_post<'a>(
    headers: &HeaderMap,
    body: &'a Bytes,
    limits: &ServerLimits,
) -> Result<ParsedRequest<'a>, Problem> {
    if !is_json(headers) {
        let detail = "a GraphQL request must be JSON in UTF-8, sent with Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail));
    }
    if body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[') {
        return Err(malformed_request("batched requests are not supported; send them one by one"));
    }
    Ok(parse_request(body, limits)?)
}

/// Parses the JSON object of a request, from a body or a message.
pub fn parse_request<'a>(json: &'a [u8], limits: &ServerLimits) -> Result<ParsedRequest<'a>, RequestError> {
    let parameters: Parameters = serde_json::from_slice(json)
        .map_err(|error| malformed_request(format!("the body is not a valid JSON object: {error}")))?;
    let Parameters { query, operation, variables, extensions } = parameters;
    let extensions = extensions
        .map_or(Ok(Vec::new()), |extensions| json_input::read_object("extensions", extensions.get()))?;
    let Some(query) = query.filter(|query| query.get() != "null") else {
        return Err(without_query(&extensions));
    };
    // Checked before the text is copied: a document of megabytes is refused anyway.
    limits::check_length(query.get().len(), limits)
        .map_err(|failure| RequestError::Refused(Problem::bad_request("LIMIT_EXCEEDED", failure.message)))?;
    let request = GraphqlRequest {
        query: json_input::read_text("query", query)?.ok_or_else(missing_query)?,
        operation_name: operation
            .map(|raw| json_input::read_text("operationName", raw))
            .transpose()?
            .flatten(),
        variables: match variables {
            Some(variables) => json_input::read_object("variables", variables.get())?,
            None => Vec::new(),
        },
    };
    Ok(ParsedRequest { request, last_event_id: last_event_id(extensions)? })
}

/// `lastEventId` of the extensions. An empty id counts as absent: clients send it before their first event.
fn last_event_id(extensions: Vec<(String, Value)>) -> Result<Option<String>, Problem> {
    match extensions.into_iter().find(|(name, _)| name == "lastEventId") {
        None | Some((_, Value::Null)) => Ok(None),
        Some((_, Value::String(id))) => Ok(Some(id).filter(|id| !id.is_empty())),
        Some((_, other)) => {
            Err(malformed_request(format!("extensions.lastEventId must be text, not {}", other.type_noun())))
        }
    }
}

/// Parses the query string of a GET.
pub fn parse_query(query: &str) -> Result<ParsedRequest<'_>, Problem> {
    let mut request =
        GraphqlRequest { query: Cow::Borrowed(""), operation_name: None, variables: Vec::new() };
    let (mut found, mut extensions) = (false, Vec::new());
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match name.as_ref() {
            "query" => {
                found = true;
                request.query = value;
            }
            "operationName" if !value.is_empty() => request.operation_name = Some(value),
            "variables" if !value.is_empty() => {
                request.variables = json_input::read_object("variables", &value)?
            }
            "extensions" if !value.is_empty() => extensions = json_input::read_object("extensions", &value)?,
            _ => {}
        }
    }
    if !found {
        return Err(without_query(&extensions).into());
    }
    Ok(ParsedRequest { request, last_event_id: last_event_id(extensions)? })
}

/// Clients with automatic persisted queries send the hash of a document instead of the document, and send the document
/// when they get this message with status 200, whatever they accept.
fn without_query(extensions: &[(String, Value)]) -> RequestError {
    if extensions.iter().any(|(name, value)| name == "persistedQuery" && *value != Value::Null) {
        let (code, message) = ("PERSISTED_QUERY_NOT_SUPPORTED", "PersistedQueryNotSupported");
        return RequestError::Refused(Problem::new(StatusCode::OK, code, message));
    }
    missing_query().into()
}

fn missing_query() -> Problem {
    malformed_request("the parameter `query` with the GraphQL document is missing")
}

/// True for `application/json` without a charset or with UTF-8.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(media) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let mut parts = media.split(';').map(str::trim);
    let is_json_type = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/json"));
    let mut charsets = parts.filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value.trim().trim_matches('"'))
    });
    is_json_type
        && charsets
            .all(|charset| charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8"))
}
