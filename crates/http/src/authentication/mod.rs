//! Who makes a request: its credential, read from the headers, and the errors for one that is not good.

mod client_authenticator;
mod credential_watch;
mod repeatable_request;
mod session_cookie;
mod watched_body;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{AUTHORIZATION, COOKIE, UPGRADE};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method};

use trefoil_engine::PresumedIdentity;

use crate::client_info::{ClientInfo, PresentedSession};
use crate::cross_origin;
use crate::errors::problem::Problem;

use crate::authentication::client_authenticator::is_token;

pub use crate::authentication::client_authenticator::{
    ClientAuthenticator, IdentityFailure, OpenAuthenticator, PresentedCredential, SharedAuthenticator,
};
pub use crate::authentication::credential_watch::{CredentialWatch, WatchFailure};
pub(crate) use crate::authentication::repeatable_request::RepeatableRequest;
pub(crate) use crate::authentication::session_cookie::remove_stale;
pub use crate::authentication::session_cookie::{
    find_pending_sign_in, no_session_cookie, pending_cookie, session_cookie,
};
pub(crate) use crate::authentication::watched_body::WatchedBody;

/// Takes credentials from requests.
pub struct RequestAuthenticator {
    authenticator: SharedAuthenticator,
    has_warned_of_http: AtomicBool,
}

impl RequestAuthenticator {
    pub fn new(authenticator: Arc<dyn ClientAuthenticator>) -> RequestAuthenticator {
        RequestAuthenticator {
            authenticator: SharedAuthenticator(authenticator),
            has_warned_of_http: AtomicBool::new(false),
        }
    }

    pub fn is_protected(&self) -> bool {
        self.authenticator.0.is_protected()
    }

    pub fn has_accounts(&self) -> bool {
        self.authenticator.0.has_accounts()
    }

    /// Whether a request with these headers brings a credential, or may bring one later.
    pub fn is_concerned(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(AUTHORIZATION)
            || headers.contains_key(UPGRADE)
            || headers.contains_key(COOKIE)
            || self.authenticator.0.token_headers().iter().any(|name| headers.contains_key(name))
    }

    /// Sets the identity of the client. An upgrade gets the authenticator itself, for what its first message brings.
    /// Whoever answers for long watches the credential.
    pub async fn authenticate(
        &self,
        method: &Method,
        headers: &HeaderMap,
        extensions: &mut Extensions,
        client: &mut ClientInfo,
    ) -> Result<Option<CredentialWatch>, Problem> {
        // Whom the client was taken for before counts for nothing, whatever comes out.
        (client.identity, client.check, client.data_version) = (None, None, None);
        (client.session, client.has_stale_cookie) = (None, false);
        if headers.contains_key(UPGRADE) {
            extensions.insert(self.authenticator.clone());
        }
        let Some(credential) = self.presented(method, headers, client)? else { return Ok(None) };
        self.warn_of_http(client);
        let watch = CredentialWatch::begin(self.authenticator.clone(), credential, client.address).await;
        let Some(watch) = self.or_stale(watch, client)? else { return Ok(None) };
        client.identity = Some(watch.identity.clone());
        if headers.contains_key(UPGRADE) {
            extensions.insert(watch.clone());
        }
        Ok(Some(watch))
    }

    /// Whether a request is answered as if its credential proved what it proved before, until that is known. Connections that
    /// are taken over cannot be answered twice.
    pub fn may_presume(&self, headers: &HeaderMap) -> bool {
        !headers.contains_key(UPGRADE)
    }

    /// The same as [`RequestAuthenticator::authenticate`], but the client's identity may be one that is still checked.
    pub async fn presume(
        &self,
        method: &Method,
        headers: &HeaderMap,
        client: &mut ClientInfo,
    ) -> Result<Option<CredentialWatch>, Problem> {
        let Some(credential) = self.presented(method, headers, client)? else { return Ok(None) };
        self.warn_of_http(client);
        let presumed = CredentialWatch::presume(self.authenticator.clone(), credential, client.address).await;
        let Some((watch, presumed)) = self.or_stale(presumed, client)? else { return Ok(None) };
        let PresumedIdentity { identity, check, data_version } = presumed;
        (client.identity, client.check, client.data_version) = (Some(identity), check, data_version);
        Ok(Some(watch))
    }

    /// What was found; nothing for a cookie that is not good, which counts as none.
    fn or_stale<T>(
        &self,
        found: Result<T, IdentityFailure>,
        client: &mut ClientInfo,
    ) -> Result<Option<T>, Problem> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(IdentityFailure::Bad) if client.session.as_ref().is_some_and(|session| session.is_cookie) => {
                (client.session, client.has_stale_cookie) = (None, true);
                Ok(None)
            }
            Err(failure) => Err(self.authenticator.problem(failure)),
        }
    }

    /// The credential of a request; `None` if it has none that counts.
    fn presented(
        &self,
        method: &Method,
        headers: &HeaderMap,
        client: &mut ClientInfo,
    ) -> Result<Option<PresentedCredential>, Problem> {
        if let Some(value) = only_value(headers, &AUTHORIZATION)? {
            // What is no ASCII is no credential either.
            let text = std::str::from_utf8(value.as_bytes()).ok();
            let parsed = text.and_then(PresentedCredential::parse);
            let parsed = parsed.ok_or_else(|| self.authenticator.problem(IdentityFailure::Bad))?;
            if let PresentedCredential::Session(token) = &parsed {
                client.session = Some(PresentedSession { token: token.clone(), is_cookie: false });
            }
            return Ok(Some(parsed));
        }
        for name in self.authenticator.0.token_headers().iter() {
            let Some(value) = only_value(headers, name)? else { continue };
            if !is_sent_by_own_site(method, headers)? {
                return Ok(None);
            }
            let text = value.to_str().ok().map(str::trim).filter(|text| is_token(text));
            let text = text.ok_or_else(|| self.authenticator.problem(IdentityFailure::Bad))?;
            return Ok(Some(PresentedCredential::Token { text: text.into(), header: Some(name.clone()) }));
        }
        let Some(token) = self.cookie_token(headers, client) else { return Ok(None) };
        if !is_sent_by_own_site(method, headers)? {
            return Ok(None);
        }
        let token: Arc<str> = token.into();
        client.session = Some(PresentedSession { token: token.clone(), is_cookie: true });
        Ok(Some(PresentedCredential::Session(token)))
    }

    /// The token in the session's cookie, where one is taken.
    fn cookie_token<'h>(&self, headers: &'h HeaderMap, client: &ClientInfo) -> Option<&'h str> {
        let token = session_cookie::find_token(headers, client.secure)?;
        let is_taken = client.secure || client.is_local(headers) || self.authenticator.0.takes_plain_http();
        is_taken.then_some(token)
    }

    fn warn_of_http(&self, client: &ClientInfo) {
        let is_local = client.address.is_none_or(|address| address.is_loopback());
        if !client.secure && !is_local && !self.has_warned_of_http.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a credential came over plain http: whoever is on the way can read it; put a proxy with https in front and name it in trusted-proxies"
            );
        }
    }
}

/// The value of a header that may be there once.
fn only_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, Problem> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        let detail = format!("the header {name} is there twice; send one credential");
        return Err(Problem::bad_request("MALFORMED_CREDENTIAL", detail));
    }
    Ok(first)
}

/// Whether a browser adds what it has for this server because of a page of this server, or of a link that was followed. A
/// write that another site made it send is refused; a read counts as anonymous.
fn is_sent_by_own_site(method: &Method, headers: &HeaderMap) -> Result<bool, Problem> {
    if !cross_origin::is_foreign(headers) || method == Method::GET && cross_origin::is_navigation(headers) {
        return Ok(true);
    }
    if method.is_safe() { Ok(false) } else { Err(cross_origin::cross_site_problem()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::time::Duration;

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use futures_util::future::BoxFuture;
    use http::header::WWW_AUTHENTICATE;

    use trefoil_engine::{ActorIdentity, CredentialUse, IdentityCheck};

    /// Knows the key `tfk_good` and the token `a.b.c`.
    struct FakeAuthenticator;

    impl ClientAuthenticator for FakeAuthenticator {
        fn is_protected(&self) -> bool {
            true
        }

        fn token_headers(&self) -> Arc<[HeaderName]> {
            Arc::from([HeaderName::from_static("x-token")])
        }

        fn realm(&self) -> String {
            "A \"shop\"\u{e9}".to_owned()
        }

        fn identify(
            &self,
            credential: PresentedCredential,
            _: Option<IpAddr>,
            _: CredentialUse,
        ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>> {
            let name = match credential {
                PresentedCredential::ApiKey(key) if &*key == "tfk_good" => Ok("key".to_owned()),
                PresentedCredential::Token { text, header } if &*text == "a.b.c" => {
                    Ok(header.map_or("token".to_owned(), |header| format!("token in {header}")))
                }
                PresentedCredential::Token { text, .. } if &*text == "later.b.c" => {
                    Err(IdentityFailure::NotYet { retry_after: Duration::from_secs(5) })
                }
                PresentedCredential::Session(token) if &*token == "tfs_good" => Ok("session".to_owned()),
                PresentedCredential::ApiKey(_)
                | PresentedCredential::Session(_)
                | PresentedCredential::Token { .. } => Err(IdentityFailure::Bad),
            };
            Box::pin(async {
                name.map(|name| {
                    let claims = trefoil_model::Value::Null;
                    Arc::new(ActorIdentity { name, roles: Vec::new(), account: None, claims, expires: None })
                })
            })
        }

        fn last_known_change(&self) -> i64 {
            -1
        }

        fn is_unchanged<'a>(&'a self, _: &'a ActorIdentity, _: i64, _: i64) -> BoxFuture<'a, bool> {
            Box::pin(async { true })
        }

        fn known_unchanged(&self, _: &ActorIdentity, since: i64) -> Option<i64> {
            Some(since)
        }
    }

    /// Who a request is from: a name, `-` for nobody, or status and code.
    async fn who(method: Method, lines: &[(&'static str, &str)]) -> String {
        who_over(false, method, lines).await
    }

    async fn who_over(secure: bool, method: Method, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let authenticator = RequestAuthenticator::new(Arc::new(FakeAuthenticator));
        let mut client = ClientInfo::default();
        client.secure = secure;
        match authenticator.authenticate(&method, &headers, &mut Extensions::new(), &mut client).await {
            Ok(_) if client.has_stale_cookie => "- stale".to_owned(),
            Ok(_) => client.identity.map_or("-".to_owned(), |identity| identity.name.clone()),
            Err(problem) => format!("{} {}", problem.status.as_u16(), problem.code),
        }
    }

    #[tokio::test]
    async fn credentials_are_read_from_headers() {
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        let long = format!("Bearer {}", "tfk_".repeat(3_000));
        for (value, expected) in [
            ("Bearer tfk_good", "key"),
            ("bearer  tfk_good ", "key"),
            ("Bearer a.b.c", "token"),
            (&basic(":tfk_good"), "key"),
            (&basic("ada:tfk_good"), "key"),
            ("Bearer later.b.c", "503 UNAVAILABLE"),
            ("Bearer tfk_bad", "401 UNAUTHENTICATED"),
            ("Bearer x.b.c", "401 UNAUTHENTICATED"),
            ("Bearer a.b.c.d.e", "401 UNAUTHENTICATED"),
            ("Bearer a.b.c, Bearer a.b.c", "401 UNAUTHENTICATED"),
            ("Bearer", "401 UNAUTHENTICATED"),
            ("", "401 UNAUTHENTICATED"),
            ("tfk_good", "401 UNAUTHENTICATED"),
            ("Bearer tfs_session", "401 UNAUTHENTICATED"),
            ("Digest tfk_good", "401 UNAUTHENTICATED"),
            (&basic("tfk_good:"), "401 UNAUTHENTICATED"),
            (&basic("ada:secret"), "401 UNAUTHENTICATED"),
            ("Basic ???", "401 UNAUTHENTICATED"),
            (&long, "401 UNAUTHENTICATED"),
        ] {
            assert_eq!(who(Method::GET, &[("authorization", value)]).await, expected, "{value:.60}");
        }
        assert_eq!(who(Method::GET, &[]).await, "-");
        let twice = [("authorization", "Bearer tfk_good"), ("authorization", "Bearer tfk_good")];
        assert_eq!(who(Method::GET, &twice).await, "400 MALFORMED_CREDENTIAL");
    }

    #[tokio::test]
    async fn nobody_stays_who_they_were_taken_for() {
        let authenticator = RequestAuthenticator::new(Arc::new(FakeAuthenticator));
        for value in [None, Some("Bearer tfk_bad"), Some("Bearer later.b.c"), Some("Bearer tfk_good")] {
            let claims = trefoil_model::Value::Null;
            let presumed = ActorIdentity {
                name: "old".to_owned(),
                roles: Vec::new(),
                account: None,
                claims,
                expires: None,
            };
            let check = IdentityCheck::new(std::future::ready(true));
            let mut client = ClientInfo::default();
            (client.identity, client.check) = (Some(Arc::new(presumed)), Some(check));
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            }
            let authenticated =
                authenticator.authenticate(&Method::GET, &headers, &mut Extensions::new(), &mut client).await;
            let expected = matches!(authenticated, Ok(Some(_))).then_some("key");
            let name = client.identity.as_ref().map(|identity| identity.name.as_str());
            assert_eq!(name, expected, "{value:?}");
            assert!(client.check.is_none());
        }
    }

    #[tokio::test]
    async fn tokens_that_proxies_add_are_not_lent_to_other_sites() {
        let token = ("x-token", "a.b.c");
        let mine = "token in x-token";
        assert_eq!(who(Method::GET, &[token]).await, mine);
        assert_eq!(who(Method::GET, &[token, ("authorization", "Bearer tfk_good")]).await, "key");
        assert_eq!(who(Method::GET, &[("x-token", "nonsense")]).await, "401 UNAUTHENTICATED");
        assert_eq!(who(Method::GET, &[token, token]).await, "400 MALFORMED_CREDENTIAL");
        let site = |site| ("sec-fetch-site", site);
        let navigate = ("sec-fetch-mode", "navigate");
        let (own, other) = (("origin", "http://a.example"), ("origin", "http://b.example"));
        let host = ("host", "a.example");
        for (method, lines, expected) in [
            (Method::POST, vec![token, site("same-origin")], mine),
            (Method::GET, vec![token, site("none")], mine),
            (Method::POST, vec![token, own, host], mine),
            (Method::GET, vec![token, site("cross-site"), navigate], mine),
            (Method::GET, vec![token, site("cross-site")], "-"),
            (Method::GET, vec![token, site("same-site")], "-"),
            (Method::HEAD, vec![token, site("cross-site"), navigate], "-"),
            (Method::GET, vec![token, other, host], "-"),
            (Method::POST, vec![token, site("cross-site"), navigate], "403 CROSS_SITE"),
            (Method::POST, vec![token, other, host], "403 CROSS_SITE"),
            (Method::DELETE, vec![token, site("same-site")], "403 CROSS_SITE"),
        ] {
            assert_eq!(who(method.clone(), &lines).await, expected, "{method} {lines:?}");
        }
        // A header that scripts must set themselves is no loan.
        let key = ("authorization", "Bearer tfk_good");
        assert_eq!(who(Method::POST, &[key, site("cross-site")]).await, "key");
    }

    #[tokio::test]
    async fn sessions_in_cookies_are_not_lent_to_other_sites() {
        let (good, host) = (("cookie", "a=b; __Host-trefoil=tfs_good"), ("host", "a.example"));
        let site = |site| ("sec-fetch-site", site);
        let navigate = ("sec-fetch-mode", "navigate");
        let (own, other) = (("origin", "https://a.example"), ("origin", "https://b.example"));
        for (method, lines, expected) in [
            (Method::GET, vec![good], "session"),
            (Method::GET, vec![("authorization", "Bearer tfs_good")], "session"),
            (Method::GET, vec![good, ("authorization", "Bearer tfk_good")], "key"),
            (Method::GET, vec![good, ("authorization", "Bearer tfs_bad")], "401 UNAUTHENTICATED"),
            (Method::GET, vec![("cookie", "__Host-trefoil=tfs_bad")], "- stale"),
            (Method::POST, vec![("cookie", "__Host-trefoil=tfs_bad"), site("same-origin")], "- stale"),
            (Method::GET, vec![("cookie", "trefoil=tfs_good")], "-"),
            (Method::POST, vec![good, site("same-origin")], "session"),
            (Method::GET, vec![good, site("none")], "session"),
            (Method::POST, vec![good, own, host], "session"),
            (Method::GET, vec![good, site("cross-site"), navigate], "session"),
            (Method::GET, vec![good, site("cross-site")], "-"),
            (Method::GET, vec![good, site("same-site")], "-"),
            (Method::GET, vec![good, other, host], "-"),
            (Method::HEAD, vec![good, site("cross-site"), navigate], "-"),
            (Method::POST, vec![good, site("cross-site"), navigate], "403 CROSS_SITE"),
            (Method::POST, vec![good, site("same-site")], "403 CROSS_SITE"),
            (Method::PUT, vec![good, other, host], "403 CROSS_SITE"),
        ] {
            assert_eq!(who_over(true, method.clone(), &lines).await, expected, "{method} {lines:?}");
        }
        // Over plain HTTP only from this machine, of which nothing is known here.
        let plain = [("cookie", "trefoil=tfs_good")];
        assert_eq!(who_over(false, Method::GET, &plain).await, "-");
    }

    #[test]
    fn bad_credentials_are_told_apart_from_none() {
        let authenticator = RequestAuthenticator::new(Arc::new(FakeAuthenticator));
        let problem = authenticator.authenticator.problem(IdentityFailure::Bad);
        let challenge = "Bearer realm=\"A ?shop??\", error=\"invalid_token\"";
        assert_eq!(problem.headers, [(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))]);
    }
}
