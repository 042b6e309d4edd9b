//! Entity tags in requests and responses: `If-None-Match`, `If-Match` and tags of compressed bodies.

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::compression;
use crate::errors::problem::Problem;

/// Adds the encoding to the tag of a compressed response, since one tag must not name two byte sequences. The tag stays
/// strong, so that clients that received compressed bytes can still write with `If-Match`.
pub fn mark_encoded_tag(headers: &mut HeaderMap) {
    let Some(encoding) = headers.get(CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok()) else {
        return;
    };
    if let Some(marked) = headers.get(ETAG).and_then(|tag| with_encoding(tag, encoding)) {
        headers.insert(ETAG, marked);
    }
}

fn with_encoding(tag: &HeaderValue, encoding: &str) -> Option<HeaderValue> {
    let open = tag.to_str().ok()?.strip_suffix('"')?;
    HeaderValue::from_str(&format!("{open}.{encoding}\"")).ok()
}

/// The text between the quotes of a tag, without the suffix of its encoding.
fn tag_value(tag: &str) -> Option<&str> {
    let inside = tag.strip_prefix('"')?.strip_suffix('"')?;
    Some([".gzip", ".br"].iter().find_map(|mark| inside.strip_suffix(mark)).unwrap_or(inside))
}

/// Turns the response to a read into 304 if the client already has it. The 304 carries the tag and `Vary` that the full
/// response would have (RFC 9110, 15.4.5): those of the compressed body if it would be compressed.
pub fn not_modified_if_known(request_headers: &HeaderMap, mut response: Response) -> Response {
    if !request_headers.contains_key(IF_NONE_MATCH) {
        return response;
    }
    let is_compressible = compression::is_compressible(&response);
    let is_compressed =
        is_compressible && compression::AcceptedEncodings::from_headers(request_headers).accepts_gzip();
    let tag = response.headers().get(ETAG);
    let tag = if is_compressed { tag.and_then(|tag| with_encoding(tag, "gzip")) } else { tag.cloned() };
    let Some(tag) = tag.filter(|tag| client_has_tag(request_headers, tag)) else { return response };
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    *response.body_mut() = Body::empty();
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(ETAG, tag);
    if is_compressible {
        headers.append(VARY, ACCEPT_ENCODING.into());
    }
    response
}

/// Whether `If-None-Match` names this tag; weak tags match too.
fn client_has_tag(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    header_tags(headers, &IF_NONE_MATCH)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known).as_bytes() == tag.as_bytes())
}

/// Refuses a read whose `If-Match` does not name the current tag. A response without a tag matches `*` only.
pub fn check_if_match(headers: &HeaderMap, tag: Option<&str>) -> Result<(), Problem> {
    let tag = tag.and_then(tag_value);
    let is_named = |named: &str| named == "*" || (tag.is_some() && tag_value(named) == tag);
    if !headers.contains_key(IF_MATCH) || header_tags(headers, &IF_MATCH).any(is_named) {
        return Ok(());
    }
    let detail = "the resource does not match If-Match; read it again without If-Match";
    Err(Problem::new(StatusCode::PRECONDITION_FAILED, "STALE", detail))
}

/// The versions of a record that a write accepts, or `None` if it accepts any; `version` parses one of our own tags.
/// Weak tags do not name an exact version and are left out.
pub fn expected_versions(headers: &HeaderMap, version: impl Fn(&str) -> Option<i64>) -> Option<Vec<i64>> {
    if !headers.contains_key(IF_MATCH) || header_tags(headers, &IF_MATCH).any(|tag| tag == "*") {
        return None;
    }
    Some(header_tags(headers, &IF_MATCH).filter_map(|tag| version(tag_value(tag)?)).collect())
}

/// Whether `If-None-Match` excludes this version, by name or with `*`.
pub fn excludes_version(headers: &HeaderMap, version: i64, read: impl Fn(&str) -> Option<i64>) -> bool {
    excluded_versions(headers, read).is_none_or(|versions| versions.contains(&version))
}

/// The versions of a record that a write must not replace, or `None` if it must not replace any.
pub fn excluded_versions(headers: &HeaderMap, version: impl Fn(&str) -> Option<i64>) -> Option<Vec<i64>> {
    if header_tags(headers, &IF_NONE_MATCH).any(|tag| tag == "*") {
        return None;
    }
    let tags = header_tags(headers, &IF_NONE_MATCH).map(|tag| tag.strip_prefix("W/").unwrap_or(tag));
    Some(tags.filter_map(|tag| version(tag_value(tag)?)).collect())
}

/// The tags of a header. Commas inside quotes do not separate: `"a,*,b"` is one tag, not a `*`.
fn header_tags<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let tags = lines.flat_map(|line| {
        let mut quoted = false;
        line.split(move |c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
    });
    tags.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), http::HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn if_none_match_compares_tags() {
        let tag = HeaderValue::from_static("\"a\"");
        for known in [&["\"a\""][..], &["*"], &["W/\"a\""], &["\"b\", \"a\""], &["\"b\"", "\"a\""]] {
            assert!(client_has_tag(&headers(IF_NONE_MATCH, known), &tag), "{known:?}");
        }
        for unknown in [&[][..], &["\"b\""], &["a"], &["\"A\""], &["\"a.gzip\""]] {
            assert!(!client_has_tag(&headers(IF_NONE_MATCH, unknown), &tag), "{unknown:?}");
        }
    }

    #[test]
    fn not_modified_has_tag_and_vary_of_full_response() {
        let table = [
            // Body length, Accept-Encoding, If-None-Match, and the tag and Vary of the 304.
            (10, "gzip", "\"a\"", Some(("\"a\"", false))),
            (10, "gzip", "\"a.gzip\"", None),
            (5_000, "gzip", "\"a.gzip\"", Some(("\"a.gzip\"", true))),
            (5_000, "gzip", "*", Some(("\"a.gzip\"", true))),
            (5_000, "gzip", "\"a\"", None),
            (5_000, "br", "\"a\"", Some(("\"a\"", true))),
            (5_000, "br", "\"a.gzip\"", None),
        ];
        for (length, accepted, known, expected) in table {
            let mut request_headers = headers(IF_NONE_MATCH, &[known]);
            request_headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            let mut response = Response::new(Body::from(vec![b'x'; length]));
            response.headers_mut().insert(ETAG, HeaderValue::from_static("\"a\""));
            let response = not_modified_if_known(&request_headers, response);
            let tag = response.headers()[ETAG].to_str().expect("ASCII");
            let not_modified = (response.status() == StatusCode::NOT_MODIFIED)
                .then(|| (tag, response.headers().contains_key(VARY)));
            assert_eq!(not_modified, expected, "{length} {accepted} {known}");
        }
    }

    #[test]
    fn if_match_on_reads() {
        let holds = |lines: &[&'static str], tag| check_if_match(&headers(IF_MATCH, lines), tag).is_ok();
        for named in [&[][..], &["*"], &["\"a\""], &["\"b\", \"a\""], &["\"b\"", "\"a\""], &["\"a.gzip\""]] {
            assert!(holds(named, Some("\"a\"")), "{named:?}");
        }
        for other in [&["\"b\""][..], &["W/\"a\""], &["a"], &[""]] {
            assert!(!holds(other, Some("\"a\"")), "{other:?}");
        }
        assert!(holds(&["*"], None) && holds(&[], None) && !holds(&["\"a\""], None) && !holds(&["a"], None));
    }

    #[test]
    fn if_match_gives_expected_versions() {
        let table: &[(&[&'static str], Option<&[i64]>)] = &[
            (&[], None),
            (&["*"], None),
            (&["\"7\""], Some(&[7])),
            (&["\"7\", \"8\"", "\"9\""], Some(&[7, 8, 9])),
            (&["\"7.gzip\""], Some(&[7])),
            (&["W/\"7\""], Some(&[])),
            (&["7, \"other\""], Some(&[])),
            (&[""], Some(&[])),
            (&["\"a,*,b\""], Some(&[])),
            (&["\"a,b\", \"7\""], Some(&[7])),
        ];
        for (lines, versions) in table {
            let found = expected_versions(&headers(IF_MATCH, lines), |tag| tag.parse().ok());
            assert_eq!(found.as_deref(), *versions, "{lines:?}");
        }
    }
}
