//! Fetches the keys of an issuer of tokens: one GET over https, or http on this machine, without redirects.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CACHE_CONTROL, HOST, USER_AGENT};
use http::{HeaderMap, Request, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use trefoil_credentials::jwt::{FetchedKeys, KeyFetcher, MAX_SET_BYTES};

/// Where the keys of an issuer are.
pub enum KeyLocation {
    Address(String),
    /// What the configuration of this issuer names.
    Discovery(String),
}

/// Fetches keys for [`trefoil_credentials::jwt::IssuerKeys`], which limits the time.
pub struct HttpKeyFetcher(pub KeyLocation);

impl KeyFetcher for HttpKeyFetcher {
    fn fetch(&self) -> BoxFuture<'_, Result<FetchedKeys, String>> {
        Box::pin(async {
            let address = match &self.0 {
                KeyLocation::Address(address) => address.clone(),
                KeyLocation::Discovery(issuer) => discover(issuer).await?,
            };
            let (headers, body) = get(&address).await.map_err(|error| format!("{address}: {error}"))?;
            Ok(FetchedKeys { body, max_age: max_age(&headers) })
        })
    }
}

/// The address of the keys in the issuer's configuration, which must be of this very issuer.
async fn discover(issuer: &str) -> Result<String, String> {
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let failed = |error: String| format!("{address}: {error}");
    let (_, body) = get(&address).await.map_err(failed)?;
    let json: serde_json::Value = serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))?;
    let text = |name: &str| json.get(name).and_then(serde_json::Value::as_str);
    match text("issuer") {
        Some(found) if found == issuer => {}
        Some(found) => {
            return Err(failed(format!("it is the configuration of {found:?}, not of {issuer:?}")));
        }
        None => return Err(failed("it names no issuer".to_owned())),
    }
    text("jwks_uri").map(str::to_owned).ok_or_else(|| failed("it has no jwks_uri".to_owned()))
}

/// The headers and body of a 200 response.
async fn get(address: &str) -> Result<(HeaderMap, Vec<u8>), String> {
    let uri: Uri = address.parse().map_err(|_| "not an address".to_owned())?;
    let authority = uri.authority().ok_or("no host")?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let port = match (uri.scheme_str(), authority.port_u16()) {
        (Some("https"), port) => port.unwrap_or(443),
        (Some("http"), port) if is_local => port.unwrap_or(80),
        (_, _) => return Err("must begin with https://".to_owned()),
    };
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(|error| error.to_string())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, authority.as_str())
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, "trefoil")
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    if uri.scheme_str() == Some("http") {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(TLS_CONFIG.clone()?);
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    exchange(stream, request).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<(HeaderMap, Vec<u8>), String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        // A redirect too: whoever can make the issuer redirect would choose the keys.
        if head.status != StatusCode::OK {
            return Err(format!("the answer was {}", head.status));
        }
        let body = axum::body::to_bytes(Body::new(body), MAX_SET_BYTES).await;
        let body = body.map_err(|error| format!("the answer cannot be read: {error}"))?;
        Ok((head.headers, body.to_vec()))
    };
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        // The connection may end with the answer read already.
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(error.to_string()),
        },
    }
}

/// The root certificates of the system, read at the first use.
static TLS_CONFIG: LazyLock<Result<Arc<ClientConfig>, String>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("this system has no root certificates".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
});

/// `max-age` of `Cache-Control`; zero for what must not be kept.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
    let directives: Vec<String> =
        lines.flat_map(|line| line.split(',')).map(|part| part.trim().to_ascii_lowercase()).collect();
    if directives.iter().any(|directive| directive == "no-store" || directive == "no-cache") {
        return Some(Duration::ZERO);
    }
    let seconds = directives.iter().find_map(|directive| directive.strip_prefix("max-age="));
    seconds?.trim_matches('"').parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server that gives these answers, one a connection.
    async fn serve(answers: Vec<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let own = address.clone();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let answer = answer.replace("{self}", &own);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        address
    }

    fn answer(head: &str, body: &str) -> String {
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
    }

    async fn fetch(location: KeyLocation) -> Result<(String, Option<u64>), String> {
        let fetched = HttpKeyFetcher(location).fetch().await?;
        Ok((String::from_utf8(fetched.body).unwrap(), fetched.max_age.map(|age| age.as_secs())))
    }

    #[tokio::test]
    async fn keys_are_fetched_with_their_age() {
        let found = answer("200 OK\r\ncache-control: public, max-age=600", "{\"keys\": []}");
        let address = serve(vec![found]).await;
        let fetched = fetch(KeyLocation::Address(address)).await;
        assert_eq!(fetched, Ok(("{\"keys\": []}".to_owned(), Some(600))));
    }

    #[tokio::test]
    async fn other_answers_are_refused() {
        let long = answer("200 OK", &" ".repeat(MAX_SET_BYTES + 1));
        let moved = answer("302 Found\r\nlocation: {self}/other", "");
        let missing = answer("404 Not Found", "{\"keys\": []}");
        for (wrong, reason) in [(long, "cannot be read"), (moved, "302"), (missing, "404")] {
            let address = serve(vec![wrong]).await;
            let error = fetch(KeyLocation::Address(address)).await.unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let away = fetch(KeyLocation::Address("http://keys.example.org/".to_owned())).await;
        assert!(away.unwrap_err().contains("https://"));
    }

    #[tokio::test]
    async fn keys_are_found_by_the_configuration_of_the_issuer() {
        let configuration = answer("200 OK", "{\"issuer\": \"{self}\", \"jwks_uri\": \"{self}/keys\"}");
        // The length counts the address that replaces the placeholder.
        let configuration = configuration.replace("content-length", "x-length");
        let address = serve(vec![configuration.clone(), answer("200 OK", "keys")]).await;
        assert_eq!(fetch(KeyLocation::Discovery(address)).await, Ok(("keys".to_owned(), None)));
        let other = configuration.replacen("{self}", "http://localhost:1", 1);
        let address = serve(vec![other]).await;
        assert!(fetch(KeyLocation::Discovery(address)).await.unwrap_err().contains("configuration of"));
    }

    #[test]
    fn the_age_is_read_from_cache_control() {
        let age = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static(text));
            max_age(&headers).map(|age| age.as_secs())
        };
        assert_eq!(age("public, Max-Age=60"), Some(60));
        assert_eq!(age("max-age=60, no-store"), Some(0));
        assert_eq!(age("public"), None);
        assert_eq!(age("max-age=soon"), None);
    }
}
