//! A plain list at its path: its form, its ETags, and writes to it.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderValue;
use http::header::{ETAG, HeaderMap, HeaderName, IF_NONE_MATCH};
use http::request::Parts;

use trefoil_application::PlainList;
use trefoil_engine::plain_list::{ExpectedVersions, VersionMatch};
use trefoil_engine::{
    Engine, EngineRequest, IdempotencyKey, JobResult, Operation, Outcome, PlainListAction,
    PlainListOperation, Row, RowSink, downcast_sink,
};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::negotiation::format::{OfferedFormats, PLAIN_LIST_FORMATS, PLAIN_LIST_PAGE_FORMATS};
use trefoil_http::{etags, idempotency};
use trefoil_model::CellValue;
use trefoil_model::error::{Error, Result};

use crate::body_text;

/// The only control of the page's form.
pub const VALUE_CONTROL: &str = "value";

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A plain list of the manifest.
pub struct PlainListResource {
    pub path: String,
    /// The path without the slash.
    pub name: Arc<str>,
    /// Browsers get an HTML page with a form.
    pub has_page: bool,
    pub cache_control: Option<HeaderValue>,
}

impl PlainListResource {
    pub fn new(list: &PlainList) -> PlainListResource {
        let cache_control = list.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        PlainListResource {
            path: list.path.clone(),
            name: list.name().into(),
            has_page: list.page,
            cache_control,
        }
    }

    pub fn offered_formats(&self) -> OfferedFormats {
        if self.has_page { PLAIN_LIST_PAGE_FORMATS } else { PLAIN_LIST_FORMATS }
    }

    pub fn operation(&self, action: PlainListAction) -> Operation {
        Operation::PlainList(PlainListOperation { list: self.name.clone(), action })
    }

    /// The page's form, or `None` if the body is not one. A form without its control is a plain text, as `curl -d milk`
    /// sends it.
    pub fn parse_form(&self, headers: &HeaderMap, body: &[u8]) -> Result<Option<FormPairs>, Problem> {
        let media_type = body_text::media_type(headers);
        match media_type.as_str() {
            _ if !self.has_page => Ok(None),
            "multipart/form-data" => {
                form_pairs::parse_multipart(body_text::content_type(headers), body).map(Some)
            }
            "application/x-www-form-urlencoded" if !body.is_empty() => {
                let Ok(text) = body_text::decode_body(headers, body) else { return Ok(None) };
                let is_form = form_pairs::readable_names(&text).any(|name| name == VALUE_CONTROL);
                if is_form { form_pairs::parse_urlencoded(&text, "the form").map(Some) } else { Ok(None) }
            }
            // An empty body from a browser is an empty form.
            _ if body.is_empty() && AcceptHeader::from_headers(headers).prefers_html() => {
                Ok(Some(FormPairs::new()))
            }
            _ => Ok(None),
        }
    }

    /// The idempotency key of a request.
    pub fn idempotency_key(head: &Parts, body: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
        let target = format!("{} {} {}", head.method, head.uri, body_text::media_type(&head.headers));
        idempotency::idempotency_key(&head.headers, &target, body)
    }

    /// Runs a write; `confirmation` is the start of the confirmation text.
    pub async fn write(
        &self,
        engine: &Engine,
        action: PlainListAction,
        confirmation: String,
        key: Option<IdempotencyKey>,
    ) -> Result<ConfirmedWrite> {
        let sink = Box::new(ConfirmationSink { confirmation, removed_line: String::new(), outcome: None });
        let request = EngineRequest { sink, idempotency_key: key, atomic: false };
        match engine.run(vec![Ok(self.operation(action))], request).await? {
            JobResult::Completed(sink) => downcast_sink::<ConfirmationSink>(sink)?.finish(),
            JobResult::Replayed(bytes) => ConfirmedWrite::from_replay(&bytes),
        }
    }
}

/// The methods of a list's path, or, with an index, of a value's path.
pub fn allowed_methods(index: Option<&str>) -> &'static str {
    match index {
        None => "GET, HEAD, POST, OPTIONS",
        Some(_) => "PUT, DELETE, OPTIONS",
    }
}

/// The ETag of a list as JSON.
pub fn json_etag(version: i64) -> String {
    format!("\"{version:x}\"")
}

/// The ETag of a list as text, which differs since the bytes differ.
pub fn text_etag(version: i64) -> String {
    format!("\"{version:x}-text\"")
}

/// The version in an unquoted ETag of either format.
fn etag_version(tag: &str) -> Option<i64> {
    i64::from_str_radix(tag.strip_suffix("-text").unwrap_or(tag), 16).ok()
}

/// The versions that `If-Match` and `If-None-Match` allow.
pub fn expected_versions(headers: &HeaderMap) -> ExpectedVersions {
    match etags::expected_versions(headers, etag_version) {
        None if !headers.contains_key(IF_NONE_MATCH) => None,
        // A list always exists, so `If-None-Match: *` allows no version.
        None => Some(
            etags::excluded_versions(headers, etag_version)
                .map_or(VersionMatch::AnyOf(Vec::new()), VersionMatch::NoneOf),
        ),
        Some(mut versions) => {
            versions.retain(|version| !etags::excludes_version(headers, *version, etag_version));
            Some(VersionMatch::AnyOf(versions))
        }
    }
}

/// Explains a version conflict by the headers, since a version number means nothing to people.
pub fn list_problem(error: Error) -> Problem {
    let is_stale = matches!(error, Error::Stale { .. });
    let problem = Problem::from(error);
    if !is_stale {
        return problem;
    }
    let detail = "the version of the list does not satisfy If-Match or If-None-Match; read it again";
    Problem { detail: detail.to_owned(), ..problem }
}

/// The text of a value; a replacement character if another program stored something else.
pub fn cell_text(cell: CellValue<'_>) -> &str {
    match cell {
        CellValue::Text(text) => text,
        CellValue::Null | CellValue::Int(_) | CellValue::Real(_) | CellValue::Unreadable => "\u{fffd}",
    }
}

/// Makes the confirmation of a write: a text known beforehand, then the removed value, if any.
struct ConfirmationSink {
    confirmation: String,
    removed_line: String,
    outcome: Option<Result<Outcome>>,
}

/// The result of a successful write.
pub struct ConfirmedWrite {
    pub version: i64,
    pub text: String,
    /// The stored result of an earlier request with the same key.
    pub replayed: bool,
}

impl ConfirmedWrite {
    /// Adds the headers `ETag` and `Idempotency-Replayed`.
    pub fn mark_response(&self, mut response: Response) -> Response {
        let tag = HeaderValue::from_str(&json_etag(self.version)).expect("hexadecimal digits in quotes");
        response.headers_mut().insert(ETAG, tag);
        if self.replayed {
            response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// Decodes the bytes of [`RowSink::bytes_to_replay`].
    fn from_replay(bytes: &[u8]) -> Result<ConfirmedWrite> {
        let parts = bytes.split_first_chunk().map(|(version, text)| (i64::from_be_bytes(*version), text));
        let (version, text) = parts.ok_or_else(|| Error::internal("a kept answer is cut off"))?;
        Ok(ConfirmedWrite { version, text: String::from_utf8_lossy(text).into_owned(), replayed: true })
    }
}

impl ConfirmationSink {
    fn finish(mut self) -> Result<ConfirmedWrite> {
        match self.outcome.take() {
            Some(Err(error)) => Err(error),
            Some(Ok(Outcome::PlainList { version, .. })) => {
                Ok(ConfirmedWrite { version, text: self.confirmation + &self.removed_line, replayed: false })
            }
            other => Err(Error::internal(format!("unexpected outcome of a write to a list: {other:?}"))),
        }
    }
}

impl RowSink for ConfirmationSink {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        self.removed_line = format!("{}\n", cell_text(row.cell(0)));
    }

    fn finish_plan(&mut self, _plan: usize, outcome: Result<Outcome>) {
        self.outcome = Some(outcome);
    }

    /// `None` unless the write succeeded.
    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        match &self.outcome {
            Some(Ok(Outcome::PlainList { version, .. })) => {
                let mut bytes = version.to_be_bytes().to_vec();
                bytes.extend_from_slice(self.confirmation.as_bytes());
                bytes.extend_from_slice(self.removed_line.as_bytes());
                Some(bytes)
            }
            Some(_) | None => None,
        }
    }

    fn reset(&mut self) {
        self.removed_line.clear();
        self.outcome = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_of_both_formats_contain_the_version() {
        for tag in [json_etag(1_760_000_000_000_123), text_etag(1_760_000_000_000_123)] {
            assert_eq!(etag_version(tag.trim_matches('"')), Some(1_760_000_000_000_123), "{tag}");
        }
        assert_ne!(json_etag(5), text_etag(5));
        assert_eq!(etag_version("xyz"), None);
    }
}
