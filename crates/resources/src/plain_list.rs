//! A plain list at its address: how it is asked and written, and what its form and its tags say.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderValue;
use http::header::{HeaderMap, HeaderName, IF_NONE_MATCH};
use http::request::Parts;

use crate::body_text;
use trefoil_application::PlainList;
use trefoil_engine::plain_list::{Expected, Versions};
use trefoil_engine::{Answer, Done, Engine, Key, ListAct, OnList, Operation, Outcome, Row, answer_as};
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs;
use trefoil_http::form_pairs::Pairs;
use trefoil_http::negotiation::accept::Accept;
use trefoil_http::negotiation::format::{Offers, PLAIN, PLAIN_WITH_PAGE};
use trefoil_http::{etags, idempotency};
use trefoil_model::Cell;
use trefoil_model::error::{Error, Result};

/// The one field of the page's form.
pub const CONTROL: &str = "value";

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// One list as the manifest declares it.
pub struct List {
    pub path: String,
    /// Without the slash.
    pub name: Arc<str>,
    /// Browsers get a page with a form.
    pub page: bool,
    pub cache: Option<HeaderValue>,
}

impl List {
    pub fn new(declared: &PlainList) -> List {
        let cache = declared.cache.as_deref().and_then(|cache| HeaderValue::from_str(cache).ok());
        List { path: declared.path.clone(), name: declared.name().into(), page: declared.page, cache }
    }

    pub fn offers(&self) -> Offers {
        if self.page { PLAIN_WITH_PAGE } else { PLAIN }
    }

    pub fn operation(&self, act: ListAct) -> Operation {
        Operation::Plain(OnList { list: self.name.clone(), act })
    }

    /// The page's form, where a body is one. A form without its field is a text like any other, as `curl -d milk`
    /// sends it.
    pub fn form(&self, headers: &HeaderMap, body: &[u8]) -> Result<Option<Pairs>, Problem> {
        let essence = body_text::essence(headers);
        match essence.as_str() {
            _ if !self.page => Ok(None),
            "multipart/form-data" => form_pairs::multipart(body_text::media(headers), body).map(Some),
            "application/x-www-form-urlencoded" if !body.is_empty() => {
                let Ok(text) = body_text::decoded(headers, body) else { return Ok(None) };
                let is_form = form_pairs::names(&text).any(|name| name == CONTROL);
                if is_form { form_pairs::urlencoded(&text, "the form").map(Some) } else { Ok(None) }
            }
            // Nothing at all is an empty form to whoever is shown one.
            _ if body.is_empty() && Accept::of(headers).prefers_html() => Ok(Some(Pairs::new())),
            _ => Ok(None),
        }
    }

    /// The key that a request came with.
    pub fn key(head: &Parts, body: &[u8]) -> Result<Option<Key>, Problem> {
        let target = format!("{} {} {}", head.method, head.uri, body_text::essence(&head.headers));
        idempotency::key(&head.headers, &target, body)
    }

    /// Carries out a write; `said` is how the confirmation begins.
    pub async fn write(
        &self,
        engine: &Engine,
        act: ListAct,
        said: String,
        key: Option<Key>,
    ) -> Result<Confirmed> {
        let answer = Box::new(Confirming { said, removed: String::new(), outcome: None });
        let request = trefoil_engine::Request { answer, key, atomic: false };
        match engine.run(vec![Ok(self.operation(act))], request).await? {
            Done::Answered(answer) => answer_as::<Confirming>(answer)?.finish(),
            Done::Replayed(bytes) => Confirmed::kept(&bytes),
        }
    }
}

/// Which methods there are at a list's path, or, with an index, at one of its values'.
pub fn allow(index: Option<&str>) -> &'static str {
    match index {
        None => "GET, HEAD, POST, OPTIONS",
        Some(_) => "PUT, DELETE, OPTIONS",
    }
}

/// The tag of a list at a version, as JSON.
pub fn tag(version: i64) -> String {
    format!("\"{version:x}\"")
}

/// Two forms of one version are different bytes, so they have different tags.
pub fn text_tag(version: i64) -> String {
    format!("\"{version:x}-text\"")
}

/// The version in a tag of either form, without its quotes.
fn version(tag: &str) -> Option<i64> {
    i64::from_str_radix(tag.strip_suffix("-text").unwrap_or(tag), 16).ok()
}

/// What `If-Match` and `If-None-Match` leave of the versions.
pub fn expected(headers: &HeaderMap) -> Expected {
    match etags::expected(headers, version) {
        None if !headers.contains_key(IF_NONE_MATCH) => None,
        // A list is there at any version.
        None => {
            Some(etags::unexpected(headers, version).map_or(Versions::Among(Vec::new()), Versions::Except))
        }
        Some(mut among) => {
            among.retain(|found| !etags::excludes(headers, *found, version));
            Some(Versions::Among(among))
        }
    }
}

/// A version means nothing to people.
pub fn refusal(error: Error) -> Problem {
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
pub fn shown(cell: Cell<'_>) -> &str {
    match cell {
        Cell::Text(text) => text,
        Cell::Null | Cell::Int(_) | Cell::Real(_) | Cell::Unreadable => "\u{fffd}",
    }
}

/// Says what was done: what is known of it beforehand, then the value that was removed, if any.
struct Confirming {
    said: String,
    removed: String,
    outcome: Option<Result<Outcome>>,
}

/// A write that happened.
pub struct Confirmed {
    pub version: i64,
    pub text: String,
    /// It happened before, under the same key.
    pub replayed: bool,
}

impl Confirmed {
    /// Says in the headers what they tell of a write.
    pub fn marked(&self, mut response: Response) -> Response {
        let tag = HeaderValue::from_str(&tag(self.version)).expect("hexadecimal digits in quotes");
        response.headers_mut().insert(http::header::ETAG, tag);
        if self.replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// What [`Answer::keep`] gave.
    fn kept(bytes: &[u8]) -> Result<Confirmed> {
        let parts = bytes.split_first_chunk().map(|(version, text)| (i64::from_be_bytes(*version), text));
        let (version, text) = parts.ok_or_else(|| Error::internal("a kept answer is cut off"))?;
        Ok(Confirmed { version, text: String::from_utf8_lossy(text).into_owned(), replayed: true })
    }
}

impl Confirming {
    fn finish(mut self) -> Result<Confirmed> {
        match self.outcome.take() {
            Some(Err(error)) => Err(error),
            Some(Ok(Outcome::Plain { version, .. })) => {
                Ok(Confirmed { version, text: self.said + &self.removed, replayed: false })
            }
            other => Err(Error::internal(format!("a write to a list ended as {other:?}"))),
        }
    }
}

impl Answer for Confirming {
    fn row(&mut self, _plan: usize, row: &dyn Row) {
        self.removed = format!("{}\n", shown(row.cell(0)));
    }

    fn done(&mut self, _plan: usize, outcome: Result<Outcome>) {
        self.outcome = Some(outcome);
    }

    /// Only a write that happened is kept.
    fn keep(&mut self) -> Option<Vec<u8>> {
        match &self.outcome {
            Some(Ok(Outcome::Plain { version, .. })) => {
                let mut bytes = version.to_be_bytes().to_vec();
                bytes.extend_from_slice(self.said.as_bytes());
                bytes.extend_from_slice(self.removed.as_bytes());
                Some(bytes)
            }
            Some(_) | None => None,
        }
    }

    fn reset(&mut self) {
        self.removed.clear();
        self.outcome = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_either_form_names_its_version() {
        for tag in [tag(1_760_000_000_000_123), text_tag(1_760_000_000_000_123)] {
            assert_eq!(version(tag.trim_matches('"')), Some(1_760_000_000_000_123), "{tag}");
        }
        assert_ne!(tag(5), text_tag(5));
        assert_eq!(version("xyz"), None);
    }
}
