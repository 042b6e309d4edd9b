//! Which form of an answer a request gets: the one place that weighs `Accept` against what an address can give.

use std::borrow::Cow;

use http::header::HeaderValue;
use http::{HeaderMap, StatusCode, Uri};

use crate::errors::problem::Problem;
use crate::form_pairs;
use crate::negotiation::accept::{AcceptHeader, Quality};

/// The forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFormat {
    /// HTML, for people.
    Html,
    Json,
    /// Texts, one a line.
    TextLines,
    /// Every record, one a line.
    Ndjson,
    /// Every record, as spreadsheets take them.
    Csv,
    /// The live stream of changes.
    EventStream,
}

const JSON: &str = "application/json";

/// What one address can give. The first is what `*/*` gets.
#[derive(Debug, Clone, Copy)]
pub struct OfferedFormats(pub &'static [ResponseFormat]);

/// The page everywhere …
pub const RECORD_FORMATS: OfferedFormats = OfferedFormats(&[ResponseFormat::Html, ResponseFormat::Json]);
pub const COLLECTION_FORMATS: OfferedFormats = OfferedFormats(&[
    ResponseFormat::Html,
    ResponseFormat::Json,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
]);
/// … but where plain clients see a list of texts.
pub const TEXT_COLLECTION_FORMATS: OfferedFormats = OfferedFormats(&[
    ResponseFormat::Json,
    ResponseFormat::TextLines,
    ResponseFormat::Html,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
]);
/// The same where the schema subscribes to changes.
pub const LIVE_COLLECTION_FORMATS: OfferedFormats = OfferedFormats(&[
    ResponseFormat::Html,
    ResponseFormat::Json,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
    ResponseFormat::EventStream,
]);
pub const LIVE_TEXT_COLLECTION_FORMATS: OfferedFormats = OfferedFormats(&[
    ResponseFormat::Json,
    ResponseFormat::TextLines,
    ResponseFormat::Html,
    ResponseFormat::Ndjson,
    ResponseFormat::Csv,
    ResponseFormat::EventStream,
]);
pub const PLAIN_LIST_FORMATS: OfferedFormats =
    OfferedFormats(&[ResponseFormat::Json, ResponseFormat::TextLines]);
pub const PLAIN_LIST_PAGE_FORMATS: OfferedFormats =
    OfferedFormats(&[ResponseFormat::Json, ResponseFormat::TextLines, ResponseFormat::Html]);
/// A form to fill in has no other face.
pub const PAGE_ONLY: OfferedFormats = OfferedFormats(&[ResponseFormat::Html]);

/// What makes the choice beside `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatChoice {
    /// `?format=` decides alone, so that a link can lead to any form.
    Named(ResponseFormat),
    /// `?fields=` asks for objects.
    Fields,
    Unspecified,
}

/// What can be asked for by `?format=`.
pub const FORMAT_NAMES: [(&str, ResponseFormat); 3] =
    [("csv", ResponseFormat::Csv), ("ndjson", ResponseFormat::Ndjson), ("json", ResponseFormat::Json)];

/// Whether the query of a request asks for fields; known before the query is understood.
pub fn chooses_fields(uri: &Uri) -> bool {
    given(uri, "fields").any(|value| !value.is_empty())
}

/// What the query of a list says of the form that it is wanted in; a format that there is not is told later.
pub fn chosen(uri: &Uri) -> FormatChoice {
    match given(uri, "format").find_map(|value| named_format(&value)) {
        Some(wanted) => FormatChoice::Named(wanted),
        None if chooses_fields(uri) => FormatChoice::Fields,
        None => FormatChoice::Unspecified,
    }
}

/// What a parameter is given; what cannot be decoded is told later too.
fn given<'u>(uri: &'u Uri, wanted: &'static str) -> impl Iterator<Item = Cow<'u, str>> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|part| part.split_once('='));
    let pairs =
        pairs.filter(move |(name, _)| form_pairs::percent_decode(name).is_some_and(|name| name == wanted));
    pairs.filter_map(|(_, value)| form_pairs::percent_decode(value))
}

pub fn named_format(name: &str) -> Option<ResponseFormat> {
    FORMAT_NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, wanted)| wanted)
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

    /// Whether only a request that spells it out can mean it.
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
    /// What is wanted of these, or nothing where none is acceptable.
    pub fn choose(self, accept: &AcceptHeader<'_>, chosen: FormatChoice) -> Option<ResponseFormat> {
        let best = self.best_match(accept);
        match (chosen, best) {
            (FormatChoice::Named(wanted), _) if self.0.contains(&wanted) => Some(wanted),
            (FormatChoice::Named(_) | FormatChoice::Unspecified, _)
            | (_, Some(ResponseFormat::Ndjson | ResponseFormat::Csv | ResponseFormat::EventStream)) => best,
            // "Unless a browser asks": one that spells HTML out.
            (FormatChoice::Fields, Some(ResponseFormat::Html)) if accept.names_type("text/html") => best,
            (
                FormatChoice::Fields,
                Some(ResponseFormat::Html | ResponseFormat::Json | ResponseFormat::TextLines) | None,
            ) => Some(ResponseFormat::Json),
        }
    }

    fn best_match(self, accept: &AcceptHeader<'_>) -> Option<ResponseFormat> {
        let mut best: Option<((Quality, bool, bool), ResponseFormat)> = None;
        for &offer in self.0 {
            let (quality, named) = self.weigh_format(accept, offer);
            // A tie goes to what is offered first; among what is spelled out, to anything before the page.
            let weight = (quality, named, !(named && offer == ResponseFormat::Html));
            if quality > 0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, offer));
            }
        }
        best.map(|(_, offer)| offer)
    }

    fn weigh_format(self, accept: &AcceptHeader<'_>, offer: ResponseFormat) -> (Quality, bool) {
        let named = accept.names_type(offer.media_type());
        // A wildcard beside JSON that is spelled out asks for nothing else.
        let overruled = offer != ResponseFormat::Json
            && self.0.contains(&ResponseFormat::Json)
            && accept.names_type(JSON);
        let counts = named || !(offer.is_explicit_only() || overruled);
        // Lines are given only where they are preferred: that they are spelled out and JSON is not breaks no tie. Beside
        // a page that is spelled out as well, a wildcard is no wish for JSON.
        let is_level = offer == ResponseFormat::Json
            && self.0.contains(&ResponseFormat::TextLines)
            && !(self.0.contains(&ResponseFormat::Html)
                && accept.names_type(ResponseFormat::Html.media_type()));
        let named = named || (is_level && accept.names_type(ResponseFormat::TextLines.media_type()));
        (if counts { accept.quality(offer.media_type()) } else { 0 }, named)
    }

    /// What is wanted, or the refusal that names what there is.
    pub fn negotiate(self, headers: &HeaderMap, chosen: FormatChoice) -> Result<ResponseFormat, Problem> {
        self.choose(&AcceptHeader::from_headers(headers), chosen).ok_or_else(|| self.not_acceptable())
    }

    fn not_acceptable(self) -> Problem {
        let names: Vec<&str> = self.0.iter().map(|offer| offer.media_type()).collect();
        let detail = format!("Accept allows none of what there is here: {}", names.join(", "));
        Problem::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", detail)
    }
}

/// Whether a deletion is answered with nothing but its success; else it leads back to the list.
pub fn wants_no_content(headers: &HeaderMap) -> bool {
    let accept = AcceptHeader::from_headers(headers);
    accept.names_type("application/json") && !accept.accepts_anything()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

    fn chosen(offers: OfferedFormats, line: &'static str, chosen: FormatChoice) -> Option<ResponseFormat> {
        let lines = (!line.is_empty()).then(|| (ACCEPT, HeaderValue::from_static(line)));
        offers.choose(&AcceptHeader::from_headers(&HeaderMap::from_iter(lines)), chosen)
    }

    #[test]
    fn the_table_of_faces() {
        use ResponseFormat::{Csv, Html, Json, Ndjson, TextLines};
        // What records, the list of users, samples and items give.
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
                offers.map(|offers| chosen(offers, line, FormatChoice::Unspecified)),
                *expected,
                "{line}"
            );
        }
    }

    #[test]
    fn fields_ask_for_objects_unless_a_browser_asks() {
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
            assert_eq!(chosen(TEXT_COLLECTION_FORMATS, line, FormatChoice::Fields), Some(expected), "{line}");
            assert_eq!(chosen(COLLECTION_FORMATS, line, FormatChoice::Fields), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_format_decides_alone_where_it_is_to_be_had() {
        for line in ["", BROWSER, "image/png", "text/event-stream"] {
            for (_, wanted) in FORMAT_NAMES {
                assert_eq!(
                    chosen(LIVE_TEXT_COLLECTION_FORMATS, line, FormatChoice::Named(wanted)),
                    Some(wanted),
                    "{line}"
                );
            }
        }
        assert_eq!(
            chosen(PAGE_ONLY, BROWSER, FormatChoice::Named(ResponseFormat::Csv)),
            Some(ResponseFormat::Html)
        );
    }

    #[test]
    fn a_stream_must_be_asked_for() {
        for offers in [LIVE_COLLECTION_FORMATS, LIVE_TEXT_COLLECTION_FORMATS] {
            assert_eq!(
                chosen(offers, "text/event-stream", FormatChoice::Unspecified),
                Some(ResponseFormat::EventStream)
            );
            assert_eq!(
                chosen(offers, "text/event-stream", FormatChoice::Fields),
                Some(ResponseFormat::EventStream)
            );
            assert_eq!(
                chosen(offers, "text/event-stream, application/json", FormatChoice::Unspecified),
                Some(ResponseFormat::Json)
            );
            assert_ne!(
                chosen(offers, "text/*", FormatChoice::Unspecified),
                Some(ResponseFormat::EventStream)
            );
        }
    }

    #[test]
    fn a_deletion_says_nothing_only_to_those_who_ask_for_json_alone() {
        for (line, nothing) in
            [("application/json", true), ("application/json, */*", false), ("*/*", false), (BROWSER, false)]
        {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(line))]);
            assert_eq!(wants_no_content(&headers), nothing, "{line}");
        }
    }
}
