//! The client of issuers and providers: one request over https, or http on this machine, without redirects.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use axum::body::Body;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use trefoil_credentials::jwt::MAX_SET_BYTES;

/// The most bytes of an answer.
pub const MAX_BODY_BYTES: usize = MAX_SET_BYTES;

/// What was answered.
pub struct HttpAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Where a request goes.
struct RequestTarget {
    uri: Uri,
    host: String,
    port: u16,
    is_encrypted: bool,
}

/// Fails for an address that nothing is asked at: one that is not https, nor http on this machine.
pub fn check_address(address: &str) -> Result<(), String> {
    RequestTarget::parse(address).map(drop)
}

/// The headers and body of a 200 response to a GET.
pub async fn get(address: &str) -> Result<(HeaderMap, Vec<u8>), String> {
    let answer = send(address, Request::get("/"), Vec::new()).await?;
    // A redirect too: whoever can make the issuer redirect would choose the keys.
    if answer.status != StatusCode::OK {
        return Err(format!("the answer was {}", answer.status));
    }
    Ok((answer.headers, answer.body))
}

/// Sends a request with method and headers of its own to an address.
pub async fn send(
    address: &str,
    request: http::request::Builder,
    body: Vec<u8>,
) -> Result<HttpAnswer, String> {
    let target = RequestTarget::parse(address)?;
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let authority = target.uri.authority().map_or("", |authority| authority.as_str());
    let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
    let request = request
        .uri(path)
        .header(HOST, authority)
        .header(ACCEPT, HeaderValue::from_static("application/json"))
        .header(USER_AGENT, HeaderValue::from_static("trefoil"))
        .body(Body::from(body))
        .map_err(|error| error.to_string())?;
    if !target.is_encrypted {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(target.host).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(TLS_CONFIG.clone()?);
    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
    exchange(stream, request).await
}

impl RequestTarget {
    fn parse(address: &str) -> Result<RequestTarget, String> {
        let uri: Uri = address.parse().map_err(|_| "not an address".to_owned())?;
        let authority = uri.authority().ok_or("no host")?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_local =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let (port, is_encrypted) = match (uri.scheme_str(), authority.port_u16()) {
            (Some("https"), port) => (port.unwrap_or(443), true),
            (Some("http"), port) if is_local => (port.unwrap_or(80), false),
            (_, _) => return Err("must begin with https://".to_owned()),
        };
        Ok(RequestTarget { uri, host, port, is_encrypted })
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<HttpAnswer, String> {
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(Body::new(body), MAX_BODY_BYTES).await;
        let body = body.map_err(|error| format!("the answer cannot be read: {error}"))?;
        Ok(HttpAnswer { status: head.status, headers: head.headers, body: body.to_vec() })
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
