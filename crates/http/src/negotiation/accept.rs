//! The `Accept` and `Accept-Encoding` headers: media ranges and codings with their qualities.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

/// A quality in thousandths, so that comparison is exact.
pub type Quality = u16;

const MAX_QUALITY: Quality = 1000;

/// The ranges of all `Accept` lines. Ranges that cannot be parsed are ignored, as browsers and servers do.
pub struct AcceptHeader<'a> {
    ranges: Vec<MediaRange<'a>>,
}

struct MediaRange<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: Quality,
    /// Parameters other than `q`.
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> AcceptHeader<'a> {
    pub fn from_headers(headers: &'a HeaderMap) -> Self {
        AcceptHeader::from_lines(headers.get_all(ACCEPT))
    }

    pub fn from_lines(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Self {
        let lines = lines.into_iter().filter_map(|value| value.to_str().ok());
        AcceptHeader {
            ranges: lines.flat_map(|line| split_unquoted(line, b',')).filter_map(parse_range).collect(),
        }
    }

    /// Whether no `Accept` was sent, or no range in it could be parsed.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The quality of `media`: that of the most specific range that covers it, even if a wider one has a higher quality.
    pub fn quality(&self, media: &str) -> Quality {
        if self.is_empty() {
            return MAX_QUALITY;
        }
        let (kind, subtype) = media.split_once('/').unwrap_or((media, ""));
        let covering = self
            .ranges
            .iter()
            .filter_map(|range| Some((range.specificity_for(kind, subtype)?, range.quality)));
        covering.max().map_or(0, |(_, quality)| quality)
    }

    /// The offer with the highest quality; ties go to the first, and without `Accept` anything is accepted.
    pub fn best<'o>(&self, offers: &[&'o str]) -> Option<&'o str> {
        let mut best: Option<(Quality, &'o str)> = None;
        for offer in offers {
            let quality = self.quality(offer);
            if quality > best.map_or(0, |(quality, _)| quality) {
                best = Some((quality, offer));
            }
        }
        best.map(|(_, offer)| offer)
    }

    /// Whether `Accept` names this media type, not just a wildcard, with a quality above 0.
    pub fn names_type(&self, media: &str) -> bool {
        let (kind, subtype) = media.split_once('/').unwrap_or((media, ""));
        self.ranges.iter().any(|range| range.quality > 0 && range.specificity_for(kind, subtype) == Some(2))
    }

    /// Whether `*/*` is accepted.
    pub fn accepts_anything(&self) -> bool {
        self.ranges.iter().any(|range| range.quality > 0 && range.specificity_for("", "") == Some(0))
    }

    /// The quality of this media type where `Accept` names it with this parameter, else 0.
    pub fn quality_with(&self, media: &str, name: &str, value: &str) -> Quality {
        let (kind, subtype) = media.split_once('/').unwrap_or((media, ""));
        let matches = |(own, actual): &(&str, &str)| own.eq_ignore_ascii_case(name) && *actual == value;
        let named = self.ranges.iter().filter(|range| range.specificity_for(kind, subtype) == Some(2));
        let named = named.filter(|range| range.parameters.iter().any(matches));
        named.map(|range| range.quality).max().unwrap_or(0)
    }

    /// Whether HTML is named and has a higher quality than JSON.
    pub fn prefers_html(&self) -> bool {
        self.names_type("text/html") && self.quality("text/html") > self.quality("application/json")
    }
}

impl MediaRange<'_> {
    /// 2 is exact, 1 is `type/*`, 0 is `*/*`; `None` if the range does not cover the type.
    fn specificity_for(&self, kind: &str, subtype: &str) -> Option<u8> {
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, sub) if own.eq_ignore_ascii_case(kind) && sub.eq_ignore_ascii_case(subtype) => Some(2),
            (_, _) => None,
        }
    }
}

fn parse_range(text: &str) -> Option<MediaRange<'_>> {
    let mut parts = split_unquoted(text, b';');
    let (kind, subtype) = parts.next()?.trim().split_once('/')?;
    let (mut quality, mut parameters) = (MAX_QUALITY, Vec::new());
    for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
        if name.trim().eq_ignore_ascii_case("q") {
            quality = parse_quality(value.trim());
        } else {
            parameters.push((name.trim(), value.trim().trim_matches('"')));
        }
    }
    Some(MediaRange { kind, subtype, quality, parameters })
}

/// The codings in `Accept-Encoding`, each with its quality.
pub fn parse_encodings<'a>(
    lines: impl IntoIterator<Item = &'a HeaderValue>,
) -> impl Iterator<Item = (&'a str, Quality)> {
    let lines = lines.into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| split_unquoted(line, b',')).map(|entry| {
        let mut parts = split_unquoted(entry, b';');
        let name = parts.next().unwrap_or_default();
        let mut parameters = parts.filter_map(|parameter| parameter.split_once('='));
        let quality = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        (name, quality.map_or(MAX_QUALITY, |(_, value)| parse_quality(value.trim())))
    })
}

/// Parses `0`, `1`, `0.5`, `0.125`, `1.000`, and leniently `.5`, too many digits, or quotes. An invalid quality counts
/// as 1: a client that names a format and gets a number wrong still wants that format.
fn parse_quality(text: &str) -> Quality {
    let text = text.trim_matches('"');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_below_one = whole == "0" || (whole.is_empty() && !fraction.is_empty());
    if !is_below_one || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return MAX_QUALITY;
    }
    let thousandths =
        fraction.bytes().chain(*b"000").take(3).fold(0, |sum, b| sum * 10 + Quality::from(b - b'0'));
    // A tiny quality is still above 0.
    thousandths.max(Quality::from(fraction.bytes().any(|b| b != b'0')))
}

/// Splits outside of quoted strings: `a/b;c="x,y", d/e` are two ranges.
fn split_unquoted(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = text.bytes().position(|b| {
            let is_separator = b == separator && !quoted;
            quoted ^= b == b'"' && !escaped;
            escaped = quoted && b == b'\\' && !escaped;
            is_separator
        });
        rest = end.map(|end| &text[end + 1..]);
        Some(text[..end.unwrap_or(text.len())].trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (ACCEPT, HeaderValue::from_static(line))).collect()
    }

    #[test]
    fn best_offer_wins() {
        let both = &["application/json", "text/plain"][..];
        let table: &[(&[&'static str], &[&str], Option<&str>)] = &[
            (&[], both, Some("application/json")),
            (&["*/*"], both, Some("application/json")),
            (&["text/plain"], both, Some("text/plain")),
            (&["text/plain, application/json"], both, Some("application/json")),
            (&["text/plain;q=1.0, application/json;q=0.999"], both, Some("text/plain")),
            (&["text/*, */*;q=0.1"], both, Some("text/plain")),
            (&["text/*;q=0.1, text/plain"], both, Some("text/plain")),
            (&["*/*, application/json;q=0"], both, Some("text/plain")),
            (&["image/png"], both, None),
            (&["*/*;q=0"], both, None),
            (&["image/png", "text/plain"], both, Some("text/plain")),
            (&["TEXT/PLAIN; Q=0.5"], both, Some("text/plain")),
            (&["text/plain;x=\"a,b;q=0\";q=0.3"], both, Some("text/plain")),
            (&["rubbish, text/plain"], both, Some("text/plain")),
            (&["text/plain;q=2, application/json;q=0.1"], both, Some("text/plain")),
            (&["text/plain;q=1.0000, application/json;q=0.9"], both, Some("text/plain")),
            (&["text/plain;q=.5, application/json;q=.4"], both, Some("text/plain")),
            (&["text/plain;q=\"0.5\", application/json;q=0.4"], both, Some("text/plain")),
            (&["text/plain;q=0.00001"], both, Some("text/plain")),
            (&["text/plain;q=0.0000"], both, None),
            (&[",, text/plain ,"], both, Some("text/plain")),
        ];
        for (lines, offers, expected) in table {
            assert_eq!(AcceptHeader::from_headers(&headers(lines)).best(offers), *expected, "{lines:?}");
        }
    }

    #[test]
    fn prefers_html_for_browsers_but_not_wildcards() {
        let table: &[(&'static str, bool)] = &[
            ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true),
            ("text/html", true),
            ("*/*", false),
            ("text/*", false),
            ("text/html, application/json", false),
            ("text/html;q=0.9, application/json", false),
            ("text/html;q=0", false),
        ];
        for (line, expected) in table {
            assert_eq!(AcceptHeader::from_headers(&headers(&[line])).prefers_html(), *expected, "{line}");
        }
    }

    #[test]
    fn quality_with_requires_the_parameter() {
        let table: &[(&'static str, Quality)] = &[
            ("multipart/mixed;subscriptionSpec=1.0", 1000),
            ("multipart/mixed; boundary=\"graphql\"; SubscriptionSpec=\"1.0\"; q=0.5, application/json", 500),
            ("multipart/mixed;subscriptionSpec=2.0", 0),
            ("multipart/mixed;deferSpec=20220824, multipart/mixed;subscriptionSpec=1.0;q=0.1", 100),
            ("multipart/mixed, */*", 0),
        ];
        for (line, expected) in table {
            let headers = headers(&[line]);
            let found = AcceptHeader::from_headers(&headers).quality_with(
                "multipart/mixed",
                "subscriptionSpec",
                "1.0",
            );
            assert_eq!(found, *expected, "{line}");
        }
    }

    #[test]
    fn wildcards_do_not_name_types() {
        assert!(
            AcceptHeader::from_headers(&headers(&["a/b, application/json;q=0.1"]))
                .names_type("application/json")
        );
        assert!(
            !AcceptHeader::from_headers(&headers(&["*/*, application/*"])).names_type("application/json")
        );
        assert!(
            !AcceptHeader::from_headers(&headers(&["application/json;q=0"])).names_type("application/json")
        );
    }
}
