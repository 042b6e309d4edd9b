//! Entity tags as requests name them: what a client already has (`If-None-Match`) and what it means to change (`If-Match`).

use http::header::{CONTENT_ENCODING, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::problem::Problem;

/// One tag must not stand for two sequences of bytes: what was packed on its way says so in its tag, which stays
/// strong, so that whoever asked for packed bytes can still write with `If-Match`.
pub fn mark_encoding(headers: &mut HeaderMap) {
    let Some(encoding) = headers.get(CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok()) else {
        return;
    };
    if let Some(tag) = headers.get(ETAG).and_then(|tag| tag.to_str().ok())
        && let Some(open) = tag.strip_suffix('"')
        && let Ok(marked) = HeaderValue::from_str(&format!("{open}.{encoding}\""))
    {
        headers.insert(ETAG, marked);
    }
}

/// What stands between the quotes of a tag, but for the mark of its encoding.
fn inside(tag: &str) -> Option<&str> {
    let inside = tag.strip_prefix('"')?.strip_suffix('"')?;
    Some([".gzip", ".br"].iter().find_map(|mark| inside.strip_suffix(mark)).unwrap_or(inside))
}

/// Whether the client has this version; a tag weakened on the way counts too.
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let is_same = |known: &str| inside(known).is_some_and(|known| Some(known) == inside(tag));
    listed(headers, &IF_NONE_MATCH)
        .any(|known| known == "*" || is_same(known.strip_prefix("W/").unwrap_or(known)))
}

/// Refuses a reading that is only wanted as it was: `If-Match` must name the tag of what there is. What has none is
/// named by `*` alone.
pub fn allow(headers: &HeaderMap, tag: Option<&str>) -> Result<(), Problem> {
    let tag = tag.and_then(inside);
    let is_named = |named: &str| named == "*" || (tag.is_some() && inside(named) == tag);
    if !headers.contains_key(IF_MATCH) || listed(headers, &IF_MATCH).any(is_named) {
        return Ok(());
    }
    let detail = "what is here is not what If-Match names; read it again without";
    Err(Problem::new(StatusCode::PRECONDITION_FAILED, "STALE", detail))
}

/// The versions that a write may meet, or nothing where it may meet any; `version` reads one of our own tags.
/// A weak tag does not name a version exactly and so none at all.
pub fn expected(headers: &HeaderMap, version: impl Fn(&str) -> Option<i64>) -> Option<Vec<i64>> {
    if !headers.contains_key(IF_MATCH) || listed(headers, &IF_MATCH).any(|tag| tag == "*") {
        return None;
    }
    Some(listed(headers, &IF_MATCH).filter_map(|tag| version(inside(tag)?)).collect())
}

/// Whether a write is only for a record that is not at this version: `If-None-Match` names it, or all with `*`.
pub fn excludes(headers: &HeaderMap, version: i64, read: impl Fn(&str) -> Option<i64>) -> bool {
    listed(headers, &IF_NONE_MATCH).any(|tag| {
        let named = inside(tag.strip_prefix("W/").unwrap_or(tag)).and_then(&read);
        tag == "*" || named == Some(version)
    })
}

/// A comma inside of quotes separates nothing: `"a,*,b"` is one tag, and no `*`.
fn listed<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
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
    fn a_client_knows_what_it_lists() {
        for known in
            [&["\"a\""][..], &["*"], &["W/\"a\""], &["\"b\", \"a\""], &["\"b\"", "\"a\""], &["\"a.gzip\""]]
        {
            assert!(is_known(&headers(IF_NONE_MATCH, known), "\"a\""), "{known:?}");
        }
        for unknown in [&[][..], &["\"b\""], &["a"], &["\"A\""]] {
            assert!(!is_known(&headers(IF_NONE_MATCH, unknown), "\"a\""), "{unknown:?}");
        }
    }

    #[test]
    fn a_reading_can_be_held_to_a_tag() {
        let holds = |lines: &[&'static str], tag| allow(&headers(IF_MATCH, lines), tag).is_ok();
        for named in [&[][..], &["*"], &["\"a\""], &["\"b\", \"a\""], &["\"b\"", "\"a\""], &["\"a.gzip\""]] {
            assert!(holds(named, Some("\"a\"")), "{named:?}");
        }
        for other in [&["\"b\""][..], &["W/\"a\""], &["a"], &[""]] {
            assert!(!holds(other, Some("\"a\"")), "{other:?}");
        }
        assert!(holds(&["*"], None) && holds(&[], None) && !holds(&["\"a\""], None) && !holds(&["a"], None));
    }

    #[test]
    fn a_write_expects_what_it_names() {
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
            let found = expected(&headers(IF_MATCH, lines), |tag| tag.parse().ok());
            assert_eq!(found.as_deref(), *versions, "{lines:?}");
        }
    }
}
