//! [`ProtectedMode`]: whether the served application has rules, and the headers that its responses then have.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use http::header::{CACHE_CONTROL, HeaderName, VARY, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};

use trefoil_engine::Engine;

use crate::response_headers;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

const VARIES_BY_ACTOR: &str = "Authorization, Cookie";

/// Set by whoever loads the application. Without rules it adds nothing.
#[derive(Debug, Clone, Default)]
pub struct ProtectedMode(Arc<ArcSwapOption<HeaderValue>>);

impl ProtectedMode {
    /// For the application that is served from now on: its name if it has rules.
    pub fn set(&self, name: Option<&str>) {
        self.0.store(name.map(|name| Arc::new(challenge(name))));
    }

    pub fn is_on(&self) -> bool {
        self.0.load().is_some()
    }

    /// Adds the headers of a protected application.
    pub fn complete_headers(&self, headers: &mut HeaderMap, status: StatusCode, is_anonymous: bool) {
        if let Some(challenge) = &*self.0.load() {
            add_headers(headers, status, is_anonymous, challenge);
        }
    }
}

/// [`response_headers::with_defaults`] for the application of an engine.
pub fn defaults_for(engine: &Engine, own: HeaderMap) -> HeaderMap {
    if engine.access_view().is_some() { with_protection(own) } else { response_headers::with_defaults(own) }
}

/// [`response_headers::with_defaults`] with what all responses of a protected application have: a clone has no room for more.
pub fn with_protection(own: HeaderMap) -> HeaderMap {
    let mut headers = response_headers::with_defaults(own);
    protect(&mut headers);
    headers.clone()
}

fn protect(headers: &mut HeaderMap) {
    if headers.get_all(VARY).iter().any(|value| value == VARIES_BY_ACTOR) {
        return;
    }
    headers.append(VARY, HeaderValue::from_static(VARIES_BY_ACTOR));
    if !headers.contains_key(CROSS_ORIGIN_RESOURCE_POLICY) {
        headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    }
}

/// How a client proves who it is. Never `Basic`, for which browsers ask people themselves.
pub(crate) fn challenge(name: &str) -> HeaderValue {
    let is_plain =
        |letter: char| letter == ' ' || letter.is_ascii_graphic() && !['"', '\\'].contains(&letter);
    let realm: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '?' }).collect();
    HeaderValue::try_from(format!("Bearer realm=\"{realm}\"")).expect("visible ASCII")
}

fn add_headers(headers: &mut HeaderMap, status: StatusCode, is_anonymous: bool, challenge: &HeaderValue) {
    protect(headers);
    if status == StatusCode::UNAUTHORIZED && !headers.contains_key(WWW_AUTHENTICATE) {
        headers.insert(WWW_AUTHENTICATE, challenge.clone());
    }
    if is_anonymous {
        return;
    }
    let private = HeaderValue::from_static("private, no-cache");
    match headers.get_mut(CACHE_CONTROL) {
        // Files of the server itself are the same for everybody.
        Some(caching) if caching == "no-store" || caching.as_bytes().ends_with(b"immutable") => {}
        Some(caching) => *caching = private,
        None => drop(headers.insert(CACHE_CONTROL, private)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(name: Option<&str>, status: u16, is_anonymous: bool, caching: &'static str) -> HeaderMap {
        let mode = ProtectedMode::default();
        mode.set(name);
        let mut headers = HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_static(caching))]);
        let status = StatusCode::from_u16(status).expect("a status");
        mode.complete_headers(&mut headers, status, is_anonymous);
        headers
    }

    #[test]
    fn open_applications_keep_their_headers() {
        assert_eq!(completed(None, 401, false, "max-age=60").len(), 1);
    }

    #[test]
    fn only_answers_to_known_actors_are_private() {
        for (is_anonymous, caching, expected) in [
            (true, "max-age=60", "max-age=60"),
            (false, "max-age=60", "private, no-cache"),
            (false, "no-cache", "private, no-cache"),
            (false, "no-store", "no-store"),
            (false, "public, max-age=31536000, immutable", "public, max-age=31536000, immutable"),
        ] {
            let headers = completed(Some("Shop"), 200, is_anonymous, caching);
            assert_eq!(headers[CACHE_CONTROL], expected);
            assert_eq!(headers[VARY], "Authorization, Cookie");
            assert_eq!(headers[CROSS_ORIGIN_RESOURCE_POLICY], "same-origin");
            assert!(!headers.contains_key(WWW_AUTHENTICATE));
        }
    }

    #[test]
    fn prepared_headers_are_those_that_are_completed() {
        let mode = ProtectedMode::default();
        mode.set(Some("Shop"));
        let own = HeaderMap::from_iter([(VARY, HeaderValue::from_static("accept"))]);
        let [mut prepared, mut completed] =
            [with_protection(own.clone()), response_headers::with_defaults(own)];
        for headers in [&mut prepared, &mut completed] {
            mode.complete_headers(headers, StatusCode::OK, false);
        }
        assert_eq!(prepared, completed);
        assert_eq!(prepared.get_all(VARY).iter().count(), 2);
    }

    #[test]
    fn the_challenge_names_the_application() {
        let headers = completed(Some("J\"s M\u{fc}hle"), 401, true, "no-store");
        assert_eq!(headers[WWW_AUTHENTICATE], "Bearer realm=\"J?s M?hle\"");
    }
}
