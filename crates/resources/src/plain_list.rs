//! A plain list at its address: how it is asked and written, and what its form and its tags say.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderValue;
use http::header::{HeaderMap, HeaderName, IF_NONE_MATCH};
use http::request::Parts;

use trefoil_application::PlainList;
use trefoil_engine::plain_list::{ExpectedVersions, VersionMatch};
use trefoil_engine::{
    Engine, IdempotencyKey, JobResult, Operation, Outcome, PlainListAction, PlainListOperation, Row, RowSink,
    downcast_sink,
};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::negotiation::format::{OfferedFormats, PLAIN_LIST_FORMATS, PLAIN_LIST_PAGE_FORMATS};
use trefoil_http::{etags, idempotency};
use trefoil_model::CellValue;
use trefoil_model::error::{Error, Result};

use crate::body_text;

/// The one field of the page's form.
pub const VALUE_CONTROL: &str = "value";

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// One list as the manifest declares it.
pub struct PlainListResource {
    pub path: String,
    /// Without the slash.
    pub name: Arc<str>,
    /// Browsers get a page with a form.
    pub has_page: bool,
    pub cache_control: Option<HeaderValue>,
}

impl PlainListResource {
    pub fn new(declared: &PlainList) -> PlainListResource {
        let cache = declared.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        PlainListResource {
            path: declared.path.clone(),
            name: declared.name().into(),
            has_page: declared.page,
            cache_control: cache,
        }
    }

    pub fn offered_formats(&self) -> OfferedFormats {
        if self.has_page { PLAIN_LIST_PAGE_FORMATS } else { PLAIN_LIST_FORMATS }
    }

    pub fn operation(&self, act: PlainListAction) -> Operation {
        Operation::PlainList(PlainListOperation { list: self.name.clone(), action: act })
    }

    /// The page's form, where a body is one. A form without its field is a text like any other, as `curl -d milk`
    /// sends it.
    pub fn parse_form(&self, headers: &HeaderMap, body: &[u8]) -> Result<Option<FormPairs>, Problem> {
        let essence = body_text::media_type(headers);
        match essence.as_str() {
            _ if !self.has_page => Ok(None),
            "multipart/form-data" => {
                form_pairs::parse_multipart(body_text::content_type(headers), body).map(Some)
            }
            "application/x-www-form-urlencoded" if !body.is_empty() => {
                let Ok(text) = body_text::decode_body(headers, body) else { return Ok(None) };
                let is_form = form_pairs::readable_names(&text).any(|name| name == VALUE_CONTROL);
                if is_form { form_pairs::parse_urlencoded(&text, "the form").map(Some) } else { Ok(None) }
            }
            // Nothing at all is an empty form to whoever is shown one.
            _ if body.is_empty() && AcceptHeader::from_headers(headers).prefers_html() => {
                Ok(Some(FormPairs::new()))
            }
            _ => Ok(None),
        }
    }

    /// The key that a request came with.
    pub fn idempotency_key(head: &Parts, body: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
        let target = format!("{} {} {}", head.method, head.uri, body_text::media_type(&head.headers));
        idempotency::idempotency_key(&head.headers, &target, body)
    }

    /// Carries out a write; `said` is how the confirmation begins.
    pub async fn write(
        &self,
        engine: &Engine,
        act: PlainListAction,
        said: String,
        key: Option<IdempotencyKey>,
    ) -> Result<ConfirmedWrite> {
        let answer =
            Box::new(ConfirmationSink { confirmation: said, removed_line: String::new(), outcome: None });
        let request = trefoil_engine::EngineRequest { sink: answer, idempotency_key: key, atomic: false };
        match engine.run(vec![Ok(self.operation(act))], request).await? {
            JobResult::Completed(answer) => downcast_sink::<ConfirmationSink>(answer)?.finish(),
            JobResult::Replayed(bytes) => ConfirmedWrite::from_replay(&bytes),
        }
    }
}

/// Which methods there are at a list's path, or, with an index, at one of its values'.
pub fn allowed_methods(index: Option<&str>) -> &'static str {
    match index {
        None => "GET, HEAD, POST, OPTIONS",
        Some(_) => "PUT, DELETE, OPTIONS",
    }
}

/// The tag of a list at a version, as JSON.
pub fn json_etag(version: i64) -> String {
    format!("\"{version:x}\"")
}

/// Two forms of one version are different bytes, so they have different tags.
pub fn text_etag(version: i64) -> String {
    format!("\"{version:x}-text\"")
}

/// The version in a tag of either form, without its quotes.
fn etag_version(tag: &str) -> Option<i64> {
    i64::from_str_radix(tag.strip_suffix("-text").unwrap_or(tag), 16).ok()
}

/// What `If-Match` and `If-None-Match` leave of the versions.
pub fn expected_versions(headers: &HeaderMap) -> ExpectedVersions {
    match etags::expected_versions(headers, etag_version) {
        None if !headers.contains_key(IF_NONE_MATCH) => None,
        // A list is there at any version.
        None => Some(
            etags::excluded_versions(headers, etag_version)
                .map_or(VersionMatch::AnyOf(Vec::new()), VersionMatch::NoneOf),
        ),
        Some(mut among) => {
            among.retain(|found| !etags::excludes_version(headers, *found, etag_version));
            Some(VersionMatch::AnyOf(among))
        }
    }
}

/// A version means nothing to people.
pub fn list_problem(error: Error) -> Problem {
    let is_stale = matches!(error, Error::Stale { .. });
    let problem = Problem::from(error);
    if !is_stale {
        return problem;
    }
    let detail = "the list has changed since the version that If-Match names, or is at one that If-None-Match excludes; \
                  read it again";
    Problem { detail: detail.to_owned(), ..problem }
}

/// What another program put into a list and is no text is shown as a mark.
pub fn cell_text(cell: CellValue<'_>) -> &str {
    match cell {
        CellValue::Text(text) => text,
        CellValue::Null | CellValue::Int(_) | CellValue::Real(_) | CellValue::Unreadable => "\u{fffd}",
    }
}

/// Says what was done: what is known of it beforehand, then the value that was removed, if any.
struct ConfirmationSink {
    confirmation: String,
    removed_line: String,
    outcome: Option<Result<Outcome>>,
}

/// A write that happened.
pub struct ConfirmedWrite {
    pub version: i64,
    pub text: String,
    /// It happened before, under the same key.
    pub replayed: bool,
}

impl ConfirmedWrite {
    /// Says in the headers what they tell of a write.
    pub fn mark_response(&self, mut response: Response) -> Response {
        let tag = HeaderValue::from_str(&json_etag(self.version)).expect("hexadecimal digits in quotes");
        response.headers_mut().insert(http::header::ETAG, tag);
        if self.replayed {
            response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// What [`Answer::keep`] gave.
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
            other => Err(Error::internal(format!("a write to a list ended as {other:?}"))),
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

    /// Only a write that happened is kept.
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
    fn a_tag_of_either_form_names_its_version() {
        for tag in [json_etag(1_760_000_000_000_123), text_etag(1_760_000_000_000_123)] {
            assert_eq!(etag_version(tag.trim_matches('"')), Some(1_760_000_000_000_123), "{tag}");
        }
        assert_ne!(json_etag(5), text_etag(5));
        assert_eq!(etag_version("xyz"), None);
    }
}
