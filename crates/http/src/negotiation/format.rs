//! Which form of an answer a request gets: the one place that weighs `Accept` against what an address can give.

use std::borrow::Cow;

use http::header::HeaderValue;
use http::{HeaderMap, StatusCode, Uri};

use crate::errors::problem::Problem;
use crate::form_pairs;
use crate::negotiation::accept::{Accept, Quality};

/// The forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// HTML, for people.
    Page,
    Json,
    /// Texts, one a line.
    Lines,
    /// Every record, one a line.
    Ndjson,
    /// Every record, as spreadsheets take them.
    Csv,
    /// The live stream of changes.
    Events,
}

const JSON: &str = "application/json";

/// What one address can give. The first is what `*/*` gets.
#[derive(Debug, Clone, Copy)]
pub struct Offers(pub &'static [Wanted]);

/// The page everywhere …
pub const RECORD: Offers = Offers(&[Wanted::Page, Wanted::Json]);
pub const COLLECTION: Offers = Offers(&[Wanted::Page, Wanted::Json, Wanted::Ndjson, Wanted::Csv]);
/// … but where plain clients see a list of texts.
pub const TEXTS: Offers = Offers(&[Wanted::Json, Wanted::Lines, Wanted::Page, Wanted::Ndjson, Wanted::Csv]);
/// The same where the schema subscribes to changes.
pub const LIVE_COLLECTION: Offers =
    Offers(&[Wanted::Page, Wanted::Json, Wanted::Ndjson, Wanted::Csv, Wanted::Events]);
pub const LIVE_TEXTS: Offers =
    Offers(&[Wanted::Json, Wanted::Lines, Wanted::Page, Wanted::Ndjson, Wanted::Csv, Wanted::Events]);
pub const PLAIN: Offers = Offers(&[Wanted::Json, Wanted::Lines]);
pub const PLAIN_WITH_PAGE: Offers = Offers(&[Wanted::Json, Wanted::Lines, Wanted::Page]);
/// A form to fill in has no other face.
pub const FORM: Offers = Offers(&[Wanted::Page]);

/// What makes the choice beside `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// `?format=` decides alone, so that a link can lead to any form.
    Format(Wanted),
    /// `?fields=` asks for objects.
    Fields,
    Nothing,
}

/// What can be asked for by `?format=`.
pub const FORMATS: [(&str, Wanted); 3] =
    [("csv", Wanted::Csv), ("ndjson", Wanted::Ndjson), ("json", Wanted::Json)];

/// Whether the query of a request asks for fields; known before the query is understood.
pub fn chooses_fields(uri: &Uri) -> bool {
    given(uri, "fields").any(|value| !value.is_empty())
}

/// What the query of a list says of the form that it is wanted in; a format that there is not is told later.
pub fn chosen(uri: &Uri) -> Chosen {
    match given(uri, "format").find_map(|value| named_format(&value)) {
        Some(wanted) => Chosen::Format(wanted),
        None if chooses_fields(uri) => Chosen::Fields,
        None => Chosen::Nothing,
    }
}

/// What a parameter is given; what cannot be decoded is told later too.
fn given<'u>(uri: &'u Uri, wanted: &'static str) -> impl Iterator<Item = Cow<'u, str>> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|part| part.split_once('='));
    let pairs = pairs.filter(move |(name, _)| form_pairs::decoded(name).is_some_and(|name| name == wanted));
    pairs.filter_map(|(_, value)| form_pairs::decoded(value))
}

pub fn named_format(name: &str) -> Option<Wanted> {
    FORMATS.into_iter().find(|(known, _)| *known == name).map(|(_, wanted)| wanted)
}

impl Wanted {
    fn media(self) -> &'static str {
        match self {
            Wanted::Page => "text/html",
            Wanted::Json => JSON,
            Wanted::Lines => "text/plain",
            Wanted::Ndjson => "application/x-ndjson",
            Wanted::Csv => "text/csv",
            Wanted::Events => "text/event-stream",
        }
    }

    /// Whether only a request that spells it out can mean it.
    fn must_be_named(self) -> bool {
        match self {
            Wanted::Ndjson | Wanted::Csv | Wanted::Events => true,
            Wanted::Page | Wanted::Json | Wanted::Lines => false,
        }
    }

    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Wanted::Page => "text/html; charset=utf-8",
            Wanted::Json => "application/json; charset=utf-8",
            Wanted::Lines => "text/plain; charset=utf-8",
            Wanted::Ndjson => "application/x-ndjson; charset=utf-8",
            Wanted::Csv => "text/csv; charset=utf-8",
            Wanted::Events => "text/event-stream; charset=utf-8",
        })
    }
}

impl Offers {
    /// What is wanted of these, or nothing where none is acceptable.
    pub fn choose(self, accept: &Accept<'_>, chosen: Chosen) -> Option<Wanted> {
        let best = self.best(accept);
        match (chosen, best) {
            (Chosen::Format(wanted), _) if self.0.contains(&wanted) => Some(wanted),
            (Chosen::Format(_) | Chosen::Nothing, _)
            | (_, Some(Wanted::Ndjson | Wanted::Csv | Wanted::Events)) => best,
            // "Unless a browser asks": one that spells HTML out.
            (Chosen::Fields, Some(Wanted::Page)) if accept.names("text/html") => best,
            (Chosen::Fields, Some(Wanted::Page | Wanted::Json | Wanted::Lines) | None) => Some(Wanted::Json),
        }
    }

    fn best(self, accept: &Accept<'_>) -> Option<Wanted> {
        let mut best: Option<((Quality, bool, bool), Wanted)> = None;
        for &offer in self.0 {
            let (quality, named) = self.weigh(accept, offer);
            // A tie goes to what is offered first; among what is spelled out, to anything before the page.
            let weight = (quality, named, !(named && offer == Wanted::Page));
            if quality > 0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, offer));
            }
        }
        best.map(|(_, offer)| offer)
    }

    fn weigh(self, accept: &Accept<'_>, offer: Wanted) -> (Quality, bool) {
        let named = accept.names(offer.media());
        // A wildcard beside JSON that is spelled out asks for nothing else.
        let overruled = offer != Wanted::Json && self.0.contains(&Wanted::Json) && accept.names(JSON);
        let counts = named || !(offer.must_be_named() || overruled);
        // Lines are given only where they are preferred: that they are spelled out and JSON is not breaks no tie. Beside
        // a page that is spelled out as well, a wildcard is no wish for JSON.
        let is_level = offer == Wanted::Json
            && self.0.contains(&Wanted::Lines)
            && !(self.0.contains(&Wanted::Page) && accept.names(Wanted::Page.media()));
        let named = named || (is_level && accept.names(Wanted::Lines.media()));
        (if counts { accept.quality(offer.media()) } else { 0 }, named)
    }

    /// What is wanted, or the refusal that names what there is.
    pub fn wanted(self, headers: &HeaderMap, chosen: Chosen) -> Result<Wanted, Problem> {
        self.choose(&Accept::of(headers), chosen).ok_or_else(|| self.none())
    }

    fn none(self) -> Problem {
        let names: Vec<&str> = self.0.iter().map(|offer| offer.media()).collect();
        let detail = format!("Accept allows none of what there is here: {}", names.join(", "));
        Problem::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", detail)
    }
}

/// Whether a deletion is answered with nothing but its success; else it leads back to the list.
pub fn wants_no_content(headers: &HeaderMap) -> bool {
    let accept = Accept::of(headers);
    accept.names("application/json") && !accept.takes_anything()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

    fn chosen(offers: Offers, line: &'static str, chosen: Chosen) -> Option<Wanted> {
        let lines = (!line.is_empty()).then(|| (ACCEPT, HeaderValue::from_static(line)));
        offers.choose(&Accept::of(&HeaderMap::from_iter(lines)), chosen)
    }

    #[test]
    fn the_table_of_faces() {
        use Wanted::{Csv, Json, Lines, Ndjson, Page};
        // What records, the list of users, samples and items give.
        let table: &[(&'static str, [Option<Wanted>; 4])] = &[
            ("", [Some(Page), Some(Json), Some(Json), Some(Json)]),
            ("*/*", [Some(Page), Some(Json), Some(Json), Some(Json)]),
            (BROWSER, [Some(Page), Some(Page), Some(Page), Some(Json)]),
            ("text/html", [Some(Page), Some(Page), Some(Page), None]),
            ("application/json", [Some(Json); 4]),
            ("application/json, text/plain, */*", [Some(Json); 4]),
            ("application/json;q=0.5, */*", [Some(Json); 4]),
            ("application/json, text/html", [Some(Json); 4]),
            ("application/json;q=0.9, text/html", [Some(Page), Some(Page), Some(Page), Some(Json)]),
            ("text/html;q=0.9, application/json", [Some(Json); 4]),
            ("text/plain", [None, Some(Lines), Some(Lines), Some(Lines)]),
            ("text/plain;q=0.5, */*", [Some(Page), Some(Json), Some(Json), Some(Json)]),
            ("text/plain, text/html;q=0.5", [Some(Page), Some(Lines), Some(Lines), Some(Lines)]),
            ("text/plain, */*", [Some(Page), Some(Json), Some(Json), Some(Json)]),
            ("text/html, text/plain, */*", [Some(Page), Some(Lines), Some(Lines), Some(Json)]),
            ("text/plain, text/html", [Some(Page), Some(Lines), Some(Lines), Some(Lines)]),
            ("application/*;q=0.5, text/plain;q=0.5", [Some(Json); 4]),
            ("application/*;q=0.4, text/plain;q=0.5", [Some(Json), Some(Lines), Some(Lines), Some(Lines)]),
            ("text/*", [Some(Page), Some(Lines), Some(Lines), Some(Lines)]),
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
            let offers = [COLLECTION, TEXTS, PLAIN_WITH_PAGE, PLAIN];
            assert_eq!(offers.map(|offers| chosen(offers, line, Chosen::Nothing)), *expected, "{line}");
        }
    }

    #[test]
    fn fields_ask_for_objects_unless_a_browser_asks() {
        let table = [
            ("", Wanted::Json),
            ("*/*", Wanted::Json),
            ("text/plain", Wanted::Json),
            ("application/json", Wanted::Json),
            (BROWSER, Wanted::Page),
            ("application/x-ndjson", Wanted::Ndjson),
            ("text/csv", Wanted::Csv),
        ];
        for (line, expected) in table {
            assert_eq!(chosen(TEXTS, line, Chosen::Fields), Some(expected), "{line}");
            assert_eq!(chosen(COLLECTION, line, Chosen::Fields), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_format_decides_alone_where_it_is_to_be_had() {
        for line in ["", BROWSER, "image/png", "text/event-stream"] {
            for (_, wanted) in FORMATS {
                assert_eq!(chosen(LIVE_TEXTS, line, Chosen::Format(wanted)), Some(wanted), "{line}");
            }
        }
        assert_eq!(chosen(FORM, BROWSER, Chosen::Format(Wanted::Csv)), Some(Wanted::Page));
    }

    #[test]
    fn a_stream_must_be_asked_for() {
        for offers in [LIVE_COLLECTION, LIVE_TEXTS] {
            assert_eq!(chosen(offers, "text/event-stream", Chosen::Nothing), Some(Wanted::Events));
            assert_eq!(chosen(offers, "text/event-stream", Chosen::Fields), Some(Wanted::Events));
            assert_eq!(
                chosen(offers, "text/event-stream, application/json", Chosen::Nothing),
                Some(Wanted::Json)
            );
            assert_ne!(chosen(offers, "text/*", Chosen::Nothing), Some(Wanted::Events));
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
