//! Who makes a request: its credential, read from the headers, and the errors for one that is not good.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, UPGRADE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body::Frame;

use trefoil_engine::ActorIdentity;
use trefoil_model::error::Error;

use crate::client_info::ClientInfo;
use crate::errors::problem::Problem;
use crate::{cross_origin, protected_mode};

/// What API keys begin with.
const KEY_PREFIX: &str = "tfk_";

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Decides whose a credential is.
pub trait ClientAuthenticator: Send + Sync {
    /// False for an open application, which looks at no credential.
    fn is_protected(&self) -> bool;

    /// The headers beside `Authorization` that tokens come in.
    fn token_headers(&self) -> Arc<[HeaderName]>;

    /// The name of the application.
    fn realm(&self) -> String;

    fn identify(
        &self,
        credential: PresentedCredential,
        address: Option<IpAddr>,
    ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>>;
}

/// A credential as it was sent. Its form is right; nothing else is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresentedCredential {
    ApiKey(String),
    Token {
        text: String,
        /// `None` for `Authorization`.
        header: Option<HeaderName>,
    },
}

/// Why nobody is identified.
pub enum IdentityFailure {
    /// The credential is not good.
    Bad,
    /// Whether it is good cannot be told yet.
    NotYet {
        retry_after: Duration,
    },
    Failed(Error),
}

/// The authenticator of the service, shared with those that take credentials by other ways than headers.
#[derive(Clone)]
pub struct SharedAuthenticator(pub Arc<dyn ClientAuthenticator>);

/// The authenticator of an open application.
pub struct OpenAuthenticator;

impl ClientAuthenticator for OpenAuthenticator {
    fn is_protected(&self) -> bool {
        false
    }

    fn token_headers(&self) -> Arc<[HeaderName]> {
        Arc::from([])
    }

    fn realm(&self) -> String {
        String::new()
    }

    fn identify(
        &self,
        _: PresentedCredential,
        _: Option<IpAddr>,
    ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>> {
        Box::pin(async { Err(IdentityFailure::Bad) })
    }
}

/// Takes credentials from requests.
pub struct RequestAuthenticator {
    authenticator: SharedAuthenticator,
    has_warned_of_http: AtomicBool,
}

/// The identity behind a response, for the log.
#[derive(Clone)]
pub(crate) struct LoggedActor(pub Arc<ActorIdentity>);

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

    /// Sets the identity of the client. An upgrade gets the authenticator itself, for what its first message brings.
    /// Whoever answers for long watches the credential.
    pub async fn authenticate(
        &self,
        method: &Method,
        headers: &HeaderMap,
        extensions: &mut Extensions,
        client: &mut ClientInfo,
    ) -> Result<Option<CredentialWatch>, Problem> {
        if headers.contains_key(UPGRADE) {
            extensions.insert(self.authenticator.clone());
        }
        let authenticator = &self.authenticator.0;
        let Some(credential) = self.presented(method, headers)? else { return Ok(None) };
        self.warn_of_http(client);
        let identity = authenticator.identify(credential.clone(), client.address).await;
        let identity = identity.map_err(|failure| self.authenticator.problem(failure))?;
        client.identity = Some(identity.clone());
        let (authenticator, address) = (self.authenticator.clone(), client.address);
        let watch = CredentialWatch { authenticator, credential, address, identity };
        if headers.contains_key(UPGRADE) {
            extensions.insert(watch.clone());
        }
        Ok(Some(watch))
    }

    /// The credential of a request; `None` if it has none that counts.
    fn presented(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Option<PresentedCredential>, Problem> {
        if let Some(value) = only_value(headers, &AUTHORIZATION)? {
            let parsed = value.to_str().ok().and_then(parse_authorization);
            let parsed = parsed.ok_or_else(|| self.authenticator.problem(IdentityFailure::Bad))?;
            return Ok(Some(parsed));
        }
        for name in self.authenticator.0.token_headers().iter() {
            let Some(value) = only_value(headers, name)? else { continue };
            // The browser does not add it, a proxy does, for the pages of any site.
            if is_sent_by_other_site(method, headers) {
                if method.is_safe() {
                    return Ok(None);
                }
                return Err(cross_origin::cross_site_problem());
            }
            let text = value.to_str().ok().map(str::trim).filter(|text| is_token(text));
            let text = text.ok_or_else(|| self.authenticator.problem(IdentityFailure::Bad))?;
            return Ok(Some(PresentedCredential::Token {
                text: text.to_owned(),
                header: Some(name.clone()),
            }));
        }
        Ok(None)
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

impl SharedAuthenticator {
    /// The authenticator that the service gave to an upgrade, if the application is protected.
    pub fn of_upgrade(parts: &Parts) -> Option<SharedAuthenticator> {
        parts.extensions.get::<SharedAuthenticator>().cloned()
    }

    /// Whom the text of an `Authorization` header proves.
    pub async fn identify_authorization(
        &self,
        text: &str,
        address: Option<IpAddr>,
    ) -> Result<CredentialWatch, Problem> {
        let credential = parse_authorization(text).ok_or_else(|| self.problem(IdentityFailure::Bad))?;
        let identity = self.0.identify(credential.clone(), address).await;
        let identity = identity.map_err(|failure| self.problem(failure))?;
        Ok(CredentialWatch { authenticator: self.clone(), credential, address, identity })
    }

    fn problem(&self, failure: IdentityFailure) -> Problem {
        match failure {
            IdentityFailure::Bad => {
                let detail = "the credential is not good: it is unknown, expired, revoked or not for this server; send an API key or a token as `Authorization: Bearer …`";
                let problem = Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", detail);
                problem.with_header(WWW_AUTHENTICATE, self.bad_challenge())
            }
            IdentityFailure::NotYet { retry_after } => Problem::unavailable(
                "the keys of the token's issuer have not been fetched yet; try again soon",
                retry_after,
            ),
            IdentityFailure::Failed(error) => error.into(),
        }
    }

    /// The value of `WWW-Authenticate` for a credential that is not good.
    fn bad_challenge(&self) -> HeaderValue {
        let challenge = protected_mode::challenge(&self.0.realm());
        let text = [challenge.as_bytes(), b", error=\"invalid_token\""].concat();
        HeaderValue::try_from(text).expect("visible ASCII")
    }
}

/// How often the credential of a long answer is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The credential of a long answer, which ends when the credential does.
#[derive(Clone)]
pub struct CredentialWatch {
    authenticator: SharedAuthenticator,
    credential: PresentedCredential,
    address: Option<IpAddr>,
    pub identity: Arc<ActorIdentity>,
}

impl CredentialWatch {
    /// Waits until the credential is not good any more, or its actor has other rights. A client that comes back gets
    /// these, or is refused.
    pub async fn wait_for_end(self) {
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            match self.authenticator.0.identify(self.credential.clone(), self.address).await {
                Ok(identity) if identity == self.identity => {}
                Ok(_) | Err(IdentityFailure::Bad) => return,
                // It cannot be told now; nothing is read from a store that is away either.
                Err(IdentityFailure::NotYet { .. } | IdentityFailure::Failed(_)) => {}
            }
        }
    }
}

/// A body that breaks off when the credential of its request ends.
pub(crate) struct WatchedBody {
    body: Body,
    end: BoxFuture<'static, ()>,
}

impl WatchedBody {
    /// Watches the credential of a response that is a stream of events.
    pub fn of_stream(response: Response, watch: CredentialWatch) -> Response {
        let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_stream = content_type.is_some_and(|media| {
            media.starts_with(b"text/event-stream") || media.starts_with(b"multipart/mixed")
        });
        if !is_stream {
            return response;
        }
        response.map(|body| Body::new(WatchedBody { body, end: Box::pin(watch.wait_for_end()) }))
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.end.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => Pin::new(&mut self.body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
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

/// Reads `Bearer …`, or `Basic …` with an API key as the password.
fn parse_authorization(text: &str) -> Option<PresentedCredential> {
    let (scheme, rest) = text.trim().split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        if rest.starts_with(KEY_PREFIX) {
            return Some(PresentedCredential::ApiKey(rest.to_owned()));
        }
        return is_token(rest).then(|| PresentedCredential::Token { text: rest.to_owned(), header: None });
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = String::from_utf8(BASE64_STANDARD.decode(rest).ok()?).ok()?;
        let (_, password) = decoded.split_once(':')?;
        return password.starts_with(KEY_PREFIX).then(|| PresentedCredential::ApiKey(password.to_owned()));
    }
    None
}

/// Whether a text has the form of a token.
fn is_token(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().all(is_letter) && text.matches('.').count() == 2
}

/// Whether a page of another site made the browser send this, other than by following a link.
fn is_sent_by_other_site(method: &Method, headers: &HeaderMap) -> bool {
    let is_navigation = headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode == "navigate");
    cross_origin::is_foreign(headers) && !(method == Method::GET && is_navigation)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ) -> BoxFuture<'_, Result<Arc<ActorIdentity>, IdentityFailure>> {
            let name = match credential {
                PresentedCredential::ApiKey(key) if key == "tfk_good" => Ok("key".to_owned()),
                PresentedCredential::Token { text, header } if text == "a.b.c" => {
                    Ok(header.map_or("token".to_owned(), |header| format!("token in {header}")))
                }
                PresentedCredential::Token { text, .. } if text == "later.b.c" => {
                    Err(IdentityFailure::NotYet { retry_after: Duration::from_secs(5) })
                }
                PresentedCredential::ApiKey(_) | PresentedCredential::Token { .. } => {
                    Err(IdentityFailure::Bad)
                }
            };
            Box::pin(async {
                name.map(|name| {
                    let claims = trefoil_model::Value::Null;
                    Arc::new(ActorIdentity { name, roles: Vec::new(), account: None, claims, expires: None })
                })
            })
        }
    }

    /// Who a request is from: a name, `-` for nobody, or status and code.
    async fn who(method: Method, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let authenticator = RequestAuthenticator::new(Arc::new(FakeAuthenticator));
        let mut client = ClientInfo::default();
        match authenticator.authenticate(&method, &headers, &mut Extensions::new(), &mut client).await {
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

    #[test]
    fn bad_credentials_are_told_apart_from_none() {
        let authenticator = RequestAuthenticator::new(Arc::new(FakeAuthenticator));
        let problem = authenticator.authenticator.problem(IdentityFailure::Bad);
        let challenge = "Bearer realm=\"A ?shop??\", error=\"invalid_token\"";
        assert_eq!(problem.headers, [(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))]);
    }
}
