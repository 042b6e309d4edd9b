//! [`AccountCall`]: one request about an account, and what its handlers share.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;

use trefoil_credentials::{AccountRefusal, OpenedSession, SignInOrigin};
use trefoil_engine::ActorIdentity;
use trefoil_http::authentication::{no_session_cookie, session_cookie};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::cross_origin;
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_model::RecordId;
use trefoil_pages::Pages;
use trefoil_resources::{ServedResources, body_text};

use crate::accounts::application_accounts::ApplicationAccounts;
use crate::routes::ResourceState;

/// One request about an account.
pub struct AccountCall {
    pub state: Arc<ResourceState>,
    pub accounts: Arc<ApplicationAccounts>,
    /// On behalf of whoever asks.
    pub resources: ServedResources,
    pub pages: Pages,
    pub head: Parts,
    pub body: Bytes,
    pub client: ClientInfo,
}

/// What was sent, by name.
pub struct SentFields(FormPairs);

impl SentFields {
    /// The last value of the name; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().rev().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }

    pub fn pairs(&self) -> &FormPairs {
        &self.0
    }
}

impl AccountCall {
    /// Whether a program asks, which gets JSON.
    pub fn is_json(&self) -> bool {
        body_text::media_type(&self.head.headers) == "application/json"
    }

    /// Whether a page sent a form.
    pub fn is_form_of_page(&self) -> bool {
        !self.is_json() && AcceptHeader::from_headers(&self.head.headers).prefers_html()
    }

    /// The fields of the form or of the JSON object.
    pub fn sent_fields(&self) -> Result<SentFields, Problem> {
        let headers = &self.head.headers;
        if self.is_json() {
            return self.json_fields();
        }
        if body_text::media_type(headers) == "multipart/form-data" {
            return form_pairs::parse_multipart(body_text::content_type(headers), &self.body).map(SentFields);
        }
        let text = body_text::decode_body(headers, &self.body)?;
        form_pairs::parse_urlencoded(&text, "the form").map(SentFields)
    }

    fn json_fields(&self) -> Result<SentFields, Problem> {
        let wrong = |why: &str| Problem::bad_request("MALFORMED_BODY", format!("the body {why}"));
        let value: serde_json::Value =
            serde_json::from_slice(&self.body).map_err(|_| wrong("is not valid JSON"))?;
        let members = value.as_object().ok_or_else(|| wrong("is not a JSON object"))?;
        let member = |(name, value): (&String, &serde_json::Value)| {
            let text = value.as_str().ok_or_else(|| wrong(&format!("has a `{name}` that is no text")))?;
            Ok((name.clone(), text.to_owned()))
        };
        members.iter().map(member).collect::<Result<_, Problem>>().map(SentFields)
    }

    /// A parameter of the query; empty if there is none.
    pub fn parameter(&self, name: &str) -> String {
        let pairs = form_pairs::parse_urlencoded(self.head.uri.query().unwrap_or_default(), "the query");
        let pairs = SentFields(pairs.unwrap_or_default());
        pairs.get(name).to_owned()
    }

    /// The part of the path after `before`, up to the next slash.
    pub fn path_part(&self, before: &str) -> String {
        let rest = self.head.uri.path().strip_prefix(before).unwrap_or_default();
        let part = rest.split('/').next().unwrap_or_default();
        form_pairs::percent_decode(&part.replace('+', "%2B")).unwrap_or_default().into_owned()
    }

    /// A password or a cookie must not be on the way in the open, and no other site may send the form.
    pub fn refuse_unsafe(&self) -> Result<(), Problem> {
        cross_origin::refuse_other_sites(&self.head.headers)?;
        self.refuse_open()
    }

    /// Whether a page of another site loads this, as an image for example, instead of leading here.
    pub fn is_loaded_by_others(&self) -> bool {
        cross_origin::is_foreign(&self.head.headers) && !cross_origin::is_navigation(&self.head.headers)
    }

    /// Refuses where a password would be on the way in the open, also the form for it: nobody types one in vain.
    pub fn refuse_open(&self) -> Result<(), Problem> {
        let is_safe =
            self.client.secure || self.client.is_local(&self.head.headers) || self.accounts.settings.insecure;
        if is_safe {
            return Ok(());
        }
        let detail = "people sign in over https only: serve https, or put a proxy with https in front and name it in trusted-proxies; auth.insecure takes passwords and cookies over http, where others can read them";
        Err(Problem::new(StatusCode::FORBIDDEN, "INSECURE", detail))
    }

    /// Who asks, for the session that begins.
    pub fn origin(&self) -> SignInOrigin {
        let browser = self.head.headers.get(USER_AGENT).and_then(|name| name.to_str().ok());
        SignInOrigin { address: self.client.address, browser: browser.map(str::to_owned) }
    }

    /// The token of the session that was presented.
    pub fn presented(&self) -> Option<&str> {
        self.client.session.as_ref().map(|session| &*session.token)
    }

    /// The account that asks.
    pub fn account(&self) -> Result<(RecordId, Arc<ActorIdentity>), Problem> {
        let Some(identity) = self.client.identity.clone() else {
            let detail = "this is for people who are signed in: sign in at /_/sign-in";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", detail));
        };
        match identity.account.as_ref().map(|account| account.id.clone()) {
            Some(id) => Ok((id, identity)),
            None => {
                let detail = "this is for accounts, and the credential has none";
                Err(Problem::new(StatusCode::FORBIDDEN, "FORBIDDEN", detail))
            }
        }
    }

    /// Leads to a page, as a browser that sent a form expects.
    pub fn see_other(&self, location: &str) -> Response {
        let location = HeaderValue::try_from(location).unwrap_or(HeaderValue::from_static("/"));
        let no_store = HeaderValue::from_static("no-store");
        (StatusCode::SEE_OTHER, [(LOCATION, location), (CACHE_CONTROL, no_store)]).into_response()
    }

    /// Leads to a page with a session.
    pub fn signed_in(&self, location: &str, session: &OpenedSession) -> Response {
        self.with_cookie(self.see_other(location), session)
    }

    /// The answer with the cookie of a session.
    pub fn with_cookie(&self, mut response: Response, session: &OpenedSession) -> Response {
        let seconds = session.expires.as_second().saturating_sub(Timestamp::now().as_second());
        let cookie = session_cookie(session.token.reveal(), seconds, self.client.secure);
        response.headers_mut().append(SET_COOKIE, cookie);
        response
    }

    pub fn without_cookie(&self, mut response: Response) -> Response {
        response.headers_mut().append(SET_COOKIE, no_session_cookie(self.client.secure));
        response
    }

    /// Where to go after signing in: a path of this server, or the start page.
    pub fn next(&self, asked: &str) -> String {
        own_path(asked).unwrap_or("/").to_owned()
    }

    /// A program that sends JSON gets its errors as JSON.
    pub fn problem(&self, problem: Problem) -> Problem {
        if self.is_json() { problem.with_format(ErrorFormat::Json) } else { problem }
    }
}

/// A path of this server, to which a browser may be led: nothing that it could take for the address of another one.
fn own_path(text: &str) -> Option<&str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_own = text.starts_with('/') && !text.starts_with("//") && text.len() <= 2_000;
    (is_plain && is_own).then_some(text)
}

/// What a refusal is to a client: status, code, and a sentence for people.
pub fn refusal_problem(refusal: AccountRefusal) -> Problem {
    match refusal {
        AccountRefusal::Wrong => {
            Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", "login or password is wrong")
        }
        AccountRefusal::Later { retry_after } => {
            let detail = format!("too many tries; try again in {}", waiting_time(retry_after));
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail).with_retry_after(retry_after)
        }
        AccountRefusal::Busy { retry_after } => {
            Problem::unavailable("too many people sign in at once; try again in a moment", retry_after)
        }
        AccountRefusal::Mistake(mistake) => Problem::bad_request("INVALID", mistake.to_string()),
        AccountRefusal::Failed(error) => error.into(),
    }
}

fn waiting_time(wait: Duration) -> String {
    match wait.as_secs() {
        0 | 1 => "a second".to_owned(),
        seconds @ 2..=90 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

/// The status and the sentence of a refusal that a page with the form shows; what is no refusal of the person is a problem.
pub fn shown_refusal(refusal: AccountRefusal) -> Result<(Problem, String), Problem> {
    let is_shown = !matches!(refusal, AccountRefusal::Failed(_));
    let problem = refusal_problem(refusal);
    if !is_shown {
        return Err(problem);
    }
    let mut letters = problem.detail.chars();
    let sentence: String =
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
    Ok((problem, sentence))
}

/// Adds the headers of a refusal to the page that shows it.
pub fn with_headers_of(problem: &Problem, mut response: Response) -> Response {
    for (name, value) in &problem.headers {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_paths_are_led_to() {
        for own in ["/", "/posts", "/posts?q=a&page=2", "/posts/1#end", "/@x"] {
            assert_eq!(own_path(own), Some(own));
        }
        for other in [
            "",
            "posts",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/a\tb",
            "/a\r\nSet-Cookie: a=b",
            "/\u{e9}",
            "javascript:alert(1)",
            " /posts",
        ] {
            assert_eq!(own_path(other), None, "{other:?}");
        }
    }
}
