//! The choice of a response format from `Accept`, `?format=` and the formats that a path offers.

use std::borrow::Cow;

use http::header::HeaderValue;
use http::{HeaderMap, StatusCode, Uri};

use crate::errors::problem::Problem;
use crate::form_pairs;
use crate::negotiation::accept::{AcceptHeader, Quality};

/// The formats of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFormat {
    /// An HTML page.
    Html,
    Json,
    /// Plain text, one value per line.
    TextLines,
    /// Every record, one per line.
    Ndjson,
    /// Every record, for spreadsheets.
    Csv,
    /// The live stream of changes.
    EventStream,
}

const JSON: &str = "application/json";

/// The formats that a path offers.
#[derive(Debug, Clone, Copy)]
pub struct OfferedFormats {
    formats: &'static [ResponseFormat],
    /// The format for `*/*` and for requests without `Accept`.
    default: ResponseFormat,
}

pub const RECORD_FORMATS: OfferedFormats = OfferedFormats::new(&[ResponseFormat::Html, ResponseFormat::Json]);
pub const COLLECTION_FORMATS: OfferedFormats = OfferedFormats::new(&[
    ResponseFormat::Html,
    ResponseFormat::Json,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
]);
/// Plain clients expect a list of texts.
pub const TEXT_COLLECTION_FORMATS: OfferedFormats = OfferedFormats::new(&[
    ResponseFormat::Json,
    ResponseFormat::TextLines,
    ResponseFormat::Html,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
]);
/// The same where the schema has a subscription to changes.
pub const LIVE_COLLECTION_FORMATS: OfferedFormats = OfferedFormats::new(&[
    ResponseFormat::Html,
    ResponseFormat::Json,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
    ResponseFormat::EventStream,
]);
pub const LIVE_TEXT_COLLECTION_FORMATS: OfferedFormats = OfferedFormats::new(&[
    ResponseFormat::Json,
    ResponseFormat::TextLines,
    ResponseFormat::Html,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
    ResponseFormat::EventStream,
]);
pub const PLAIN_LIST_FORMATS: OfferedFormats =
    OfferedFormats::new(&[ResponseFormat::Json, ResponseFormat::TextLines]);
pub const PLAIN_LIST_PAGE_FORMATS: OfferedFormats =
    OfferedFormats::new(&[ResponseFormat::Json, ResponseFormat::TextLines, ResponseFormat::Html]);
/// An HTML form has no other format.
pub const PAGE_ONLY: OfferedFormats = OfferedFormats::new(&[ResponseFormat::Html]);

/// The choice of format in the query, which counts beside `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatChoice {
    /// `?format=` overrides `Accept`, so that a link can lead to any format.
    Named(ResponseFormat),
    /// `?fields=` and `?include=` ask for objects, `?aggregate=` for groups.
    Fields,
    Unspecified,
}

/// The values of `?format=`.
pub const FORMAT_NAMES: [(&str, ResponseFormat); 3] =
    [("csv", ResponseFormat::Csv), ("ndjson", ResponseFormat::Ndjson), ("json", ResponseFormat::Json)];

/// Whether the query selects fields or includes related records; works before the query is validated.
pub fn chooses_fields(uri: &Uri) -> bool {
    ["fields", "include"].into_iter().any(|name| query_values(uri, name).any(|value| !value.is_empty()))
}

/// The choice of format in the query of a list. An unknown format is ignored here and reported later.
pub fn chosen(uri: &Uri) -> FormatChoice {
    match query_values(uri, "format").find_map(|value| named_format(&value)) {
        Some(format) => FormatChoice::Named(format),
        None if chooses_fields(uri) || query_values(uri, "aggregate").any(|value| !value.is_empty()) => {
            FormatChoice::Fields
        }
        None => FormatChoice::Unspecified,
    }
}

/// The values of a query parameter. Values that cannot be decoded are skipped here and reported later.
fn query_values<'u>(uri: &'u Uri, parameter: &'static str) -> impl Iterator<Item = Cow<'u, str>> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|part| part.split_once('='));
    let pairs =
        pairs.filter(move |(name, _)| form_pairs::percent_decode(name).is_some_and(|name| name == parameter));
    pairs.filter_map(|(_, value)| form_pairs::percent_decode(value))
}

pub fn named_format(name: &str) -> Option<ResponseFormat> {
    FORMAT_NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, format)| format)
}

impl ResponseFormat {
    fn media_type(self) -> &'static str {
        match self {
            ResponseFormat::Html => "text/html",
            ResponseFormat::Json => JSON,
            ResponseFormat::TextLines => "text/plain",
            ResponseFormat::Ndjson => "application/x-ndjson",
            ResponseFormat::Csv => "text/csv",
            ResponseFormat::EventStream => "text/event-stream",
        }
    }

    /// Whether the format is used only if the request names it, never for a wildcard.
    fn is_explicit_only(self) -> bool {
        match self {
            ResponseFormat::Ndjson | ResponseFormat::Csv | ResponseFormat::EventStream => true,
            ResponseFormat::Html | ResponseFormat::Json | ResponseFormat::TextLines => false,
        }
    }

    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            ResponseFormat::Html => "text/html; charset=utf-8",
            ResponseFormat::Json => "application/json; charset=utf-8",
            ResponseFormat::TextLines => "text/plain; charset=utf-8",
            ResponseFormat::Ndjson => "application/x-ndjson; charset=utf-8",
            ResponseFormat::Csv => "text/csv; charset=utf-8",
            ResponseFormat::EventStream => "text/event-stream; charset=utf-8",
        })
    }
}

impl OfferedFormats {
    /// The first is the default.
    const fn new(formats: &'static [ResponseFormat]) -> OfferedFormats {
        OfferedFormats { formats, default: formats[0] }
    }

    pub const fn with_default(self, default: ResponseFormat) -> OfferedFormats {
        OfferedFormats { default, ..self }
    }

    /// The best of these formats, or `None` if none is acceptable.
    pub fn choose(self, accept: &AcceptHeader<'_>, choice: FormatChoice) -> Option<ResponseFormat> {
        let best = self.best_match(accept);
        match (choice, best) {
            (FormatChoice::Named(format), _) if self.formats.contains(&format) => Some(format),
            (FormatChoice::Named(_) | FormatChoice::Unspecified, _)
            | (_, Some(ResponseFormat::Ndjson | ResponseFormat::Csv | ResponseFormat::EventStream)) => best,
            // Only a client that names HTML counts as a browser.
            (FormatChoice::Fields, Some(ResponseFormat::Html)) if accept.names_type("text/html") => best,
            (
                FormatChoice::Fields,
                Some(ResponseFormat::Html | ResponseFormat::Json | ResponseFormat::TextLines) | None,
            ) => Some(ResponseFormat::Json),
        }
    }

    fn best_match(self, accept: &AcceptHeader<'_>) -> Option<ResponseFormat> {
        let mut best: Option<((Quality, bool, bool, bool), ResponseFormat)> = None;
        for &offer in self.formats {
            let (quality, named) = self.weigh_format(accept, offer);
            // Ties go to the default, then to the first offer; among named types, to any other than HTML.
            let is_default = offer == self.default;
            let weight = (quality, named, !(named && offer == ResponseFormat::Html), is_default);
            if quality > 0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, offer));
            }
        }
        best.map(|(_, offer)| offer)
    }

    fn weigh_format(self, accept: &AcceptHeader<'_>, offer: ResponseFormat) -> (Quality, bool) {
        let named = accept.names_type(offer.media_type());
        // If JSON is named, a wildcard beside it does not select another format.
        let overruled = offer != ResponseFormat::Json
            && self.formats.contains(&ResponseFormat::Json)
            && accept.names_type(JSON);
        let counts = named || !(offer.is_explicit_only() || overruled);
        // At equal quality JSON beats text/plain even if only text/plain is named, unless HTML is named too.
        let ties_with_text = offer == ResponseFormat::Json
            && self.formats.contains(&ResponseFormat::TextLines)
            && !(self.formats.contains(&ResponseFormat::Html)
                && accept.names_type(ResponseFormat::Html.media_type()));
        let named = named || (ties_with_text && accept.names_type(ResponseFormat::TextLines.media_type()));
        (if counts { accept.quality(offer.media_type()) } else { 0 }, named)
    }

    /// The best of these formats, or an error that lists them.
    pub fn negotiate(self, headers: &HeaderMap, choice: FormatChoice) -> Result<ResponseFormat, Problem> {
        self.choose(&AcceptHeader::from_headers(headers), choice).ok_or_else(|| self.not_acceptable())
    }

    fn not_acceptable(self) -> Problem {
        let names: Vec<&str> = self.formats.iter().map(|offer| offer.media_type()).collect();
        let detail =
            format!("no available format matches the Accept header; available: {}", names.join(", "));
        Problem::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", detail)
    }
}

/// Whether a deletion is answered with 204; otherwise it redirects to the list.
pub fn wants_no_content(headers: &HeaderMap, default: ResponseFormat) -> bool {
    let accept = AcceptHeader::from_headers(headers);
    if default == ResponseFormat::Html {
        accept.names_type(JSON) && !accept.accepts_anything()
    } else {
        !accept.prefers_html()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

    fn negotiated(
        offers: OfferedFormats,
        line: &'static str,
        choice: FormatChoice,
    ) -> Option<ResponseFormat> {
        let lines = (!line.is_empty()).then(|| (ACCEPT, HeaderValue::from_static(line)));
        offers.choose(&AcceptHeader::from_headers(&HeaderMap::from_iter(lines)), choice)
    }

    #[test]
    fn accept_decides_the_format() {
        use ResponseFormat::{Csv, Html, Json, Ndjson, TextLines};
        // The formats of a collection, a text collection, a plain list with a page, and a plain list.
        let table: &[(&'static str, [Option<ResponseFormat>; 4])] = &[
            ("", [Some(Html), Some(Json), Some(Json), Some(Json)]),
            ("*/*", [Some(Html), Some(Json), Some(Json), Some(Json)]),
            (BROWSER, [Some(Html), Some(Html), Some(Html), Some(Json)]),
            ("text/html", [Some(Html), Some(Html), Some(Html), None]),
            ("application/json", [Some(Json); 4]),
            ("application/json, text/plain, */*", [Some(Json); 4]),
            ("application/json;q=0.5, */*", [Some(Json); 4]),
            ("application/json, text/html", [Some(Json); 4]),
            ("application/json;q=0.9, text/html", [Some(Html), Some(Html), Some(Html), Some(Json)]),
            ("text/html;q=0.9, application/json", [Some(Json); 4]),
            ("text/plain", [None, Some(TextLines), Some(TextLines), Some(TextLines)]),
            ("text/plain;q=0.5, */*", [Some(Html), Some(Json), Some(Json), Some(Json)]),
            ("text/plain, text/html;q=0.5", [Some(Html), Some(TextLines), Some(TextLines), Some(TextLines)]),
            ("text/plain, */*", [Some(Html), Some(Json), Some(Json), Some(Json)]),
            ("text/html, text/plain, */*", [Some(Html), Some(TextLines), Some(TextLines), Some(Json)]),
            ("text/plain, text/html", [Some(Html), Some(TextLines), Some(TextLines), Some(TextLines)]),
            ("application/*;q=0.5, text/plain;q=0.5", [Some(Json); 4]),
            (
                "application/*;q=0.4, text/plain;q=0.5",
                [Some(Json), Some(TextLines), Some(TextLines), Some(TextLines)],
            ),
            ("text/*", [Some(Html), Some(TextLines), Some(TextLines), Some(TextLines)]),
            ("application/*", [Some(Json); 4]),
            ("text/html;q=0, */*", [Some(Json); 4]),
            ("application/x-ndjson", [Some(Ndjson), Some(Ndjson), None, None]),
            ("application/x-ndjson, */*;q=0.1", [Some(Ndjson), Some(Ndjson), Some(Json), Some(Json)]),
            ("text/csv", [Some(Csv), Some(Csv), None, None]),
            ("text/csv, application/json;q=0.5", [Some(Csv), Some(Csv), Some(Json), Some(Json)]),
            ("text/event-stream", [None; 4]),
            ("image/png", [None; 4]),
            ("*/*;q=0", [None; 4]),
        ];
        for (line, expected) in table {
            let offers =
                [COLLECTION_FORMATS, TEXT_COLLECTION_FORMATS, PLAIN_LIST_PAGE_FORMATS, PLAIN_LIST_FORMATS];
            assert_eq!(
                offers.map(|offers| negotiated(offers, line, FormatChoice::Unspecified)),
                *expected,
                "{line}"
            );
        }
    }

    #[test]
    fn wildcards_get_the_default() {
        use ResponseFormat::{Csv, Html, Json, Ndjson};
        let table: &[(&'static str, Option<ResponseFormat>)] = &[
            ("", Some(Json)),
            ("*/*", Some(Json)),
            ("text/plain;q=0.5, */*", Some(Json)),
            ("application/json, text/plain, */*", Some(Json)),
            (BROWSER, Some(Html)),
            ("text/html", Some(Html)),
            ("text/html, */*", Some(Html)),
            ("text/*", Some(Html)),
            ("application/json, text/html", Some(Json)),
            ("application/x-ndjson, */*;q=0.1", Some(Ndjson)),
            ("text/csv", Some(Csv)),
            ("application/json;q=0, */*", Some(Html)),
            ("text/plain", None),
        ];
        for (line, expected) in table {
            let offers = COLLECTION_FORMATS.with_default(Json);
            assert_eq!(negotiated(offers, line, FormatChoice::Unspecified), *expected, "{line}");
        }
    }

    #[test]
    fn fields_select_json_except_for_browsers() {
        let table = [
            ("", ResponseFormat::Json),
            ("*/*", ResponseFormat::Json),
            ("text/plain", ResponseFormat::Json),
            ("application/json", ResponseFormat::Json),
            (BROWSER, ResponseFormat::Html),
            ("application/x-ndjson", ResponseFormat::Ndjson),
            ("text/csv", ResponseFormat::Csv),
        ];
        for (line, expected) in table {
            assert_eq!(
                negotiated(TEXT_COLLECTION_FORMATS, line, FormatChoice::Fields),
                Some(expected),
                "{line}"
            );
            assert_eq!(negotiated(COLLECTION_FORMATS, line, FormatChoice::Fields), Some(expected), "{line}");
        }
    }

    #[test]
    fn format_parameter_overrides_accept() {
        for line in ["", BROWSER, "image/png", "text/event-stream"] {
            for (_, format) in FORMAT_NAMES {
                assert_eq!(
                    negotiated(LIVE_TEXT_COLLECTION_FORMATS, line, FormatChoice::Named(format)),
                    Some(format),
                    "{line}"
                );
            }
        }
        assert_eq!(
            negotiated(PAGE_ONLY, BROWSER, FormatChoice::Named(ResponseFormat::Csv)),
            Some(ResponseFormat::Html)
        );
    }

    #[test]
    fn event_stream_must_be_named() {
        for offers in [LIVE_COLLECTION_FORMATS, LIVE_TEXT_COLLECTION_FORMATS] {
            assert_eq!(
                negotiated(offers, "text/event-stream", FormatChoice::Unspecified),
                Some(ResponseFormat::EventStream)
            );
            assert_eq!(
                negotiated(offers, "text/event-stream", FormatChoice::Fields),
                Some(ResponseFormat::EventStream)
            );
            assert_eq!(
                negotiated(offers, "text/event-stream, application/json", FormatChoice::Unspecified),
                Some(ResponseFormat::Json)
            );
            assert_ne!(
                negotiated(offers, "text/*", FormatChoice::Unspecified),
                Some(ResponseFormat::EventStream)
            );
        }
    }

    #[test]
    fn no_content_where_json_is_wanted() {
        // Where pages are the default, and where JSON is.
        let table = [
            ("application/json", [true, true]),
            ("application/json, */*", [false, true]),
            ("*/*", [false, true]),
            ("text/plain", [false, true]),
            ("text/html", [false, false]),
            (BROWSER, [false, false]),
        ];
        for (line, expected) in table {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(line))]);
            let defaults = [ResponseFormat::Html, ResponseFormat::Json];
            assert_eq!(defaults.map(|default| wants_no_content(&headers, default)), expected, "{line}");
        }
        assert!(wants_no_content(&HeaderMap::new(), ResponseFormat::Json));
        assert!(!wants_no_content(&HeaderMap::new(), ResponseFormat::Html));
    }
}
