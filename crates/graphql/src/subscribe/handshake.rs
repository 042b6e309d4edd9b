//! The WebSocket handshake: recognises the HTTP request, picks the subprotocol and makes the 101 response.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use trefoil_http::errors::problem::Problem;

use crate::subscribe::protocol;

/// A request for a WebSocket. An `Upgrade` to another protocol is ignored, as HTTP allows.
pub struct WebSocketHandshake(());

/// The handshake of a request that asks for a WebSocket.
pub struct OptionalHandshake(pub Option<WebSocketHandshake>);

/// The subprotocol of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subprotocol {
    GraphqlTransportWs,
    /// The older protocol named `graphql-ws`. The socket is opened only to be closed, because browsers show a page
    /// the code and reason of a close but nothing of a failed handshake.
    Legacy,
    None,
}

impl<S: Sync> FromRequestParts<S> for OptionalHandshake {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<OptionalHandshake, Infallible> {
        let asks_upgrade = parts.method == Method::GET
            && header_lists(&parts.headers, &UPGRADE, "websocket")
            && header_lists(&parts.headers, &CONNECTION, "upgrade");
        // hyper inserts `OnUpgrade` if the connection can be upgraded.
        let can_upgrade = parts.extensions.get::<OnUpgrade>().is_some();
        Ok(OptionalHandshake((asks_upgrade && can_upgrade).then_some(WebSocketHandshake(()))))
    }
}

impl WebSocketHandshake {
    /// The 101 response and the chosen subprotocol.
    pub fn accept(self, headers: &HeaderMap) -> Result<(Response, Subprotocol), Problem> {
        if headers.get(SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes) != Some(b"13") {
            let detail = "unsupported WebSocket version; use version 13";
            return Err(Problem::new(StatusCode::UPGRADE_REQUIRED, "UPGRADE_REQUIRED", detail)
                .with_header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))
                .with_header(CONNECTION, HeaderValue::from_static("upgrade"))
                .with_header(UPGRADE, HeaderValue::from_static("websocket")));
        }
        let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| is_handshake_key(key.as_bytes()));
        let key = key.ok_or_else(|| {
            Problem::bad_request(
                "MALFORMED_REQUEST",
                "Sec-WebSocket-Key is missing or is not base64 of 16 bytes",
            )
        })?;
        let subprotocol = Subprotocol::from_headers(headers);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let out = response.headers_mut();
        out.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        out.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let accept = derive_accept_key(key.as_bytes());
        out.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::try_from(accept).expect("base64"));
        if let Some(name) = subprotocol.name() {
            out.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
        }
        Ok((response, subprotocol))
    }
}

impl Subprotocol {
    fn from_headers(headers: &HeaderMap) -> Subprotocol {
        if header_lists(headers, &SEC_WEBSOCKET_PROTOCOL, protocol::SUBPROTOCOL) {
            Subprotocol::GraphqlTransportWs
        } else if header_lists(headers, &SEC_WEBSOCKET_PROTOCOL, protocol::LEGACY_SUBPROTOCOL) {
            Subprotocol::Legacy
        } else {
            Subprotocol::None
        }
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Subprotocol::GraphqlTransportWs => Some(protocol::SUBPROTOCOL),
            Subprotocol::Legacy => Some(protocol::LEGACY_SUBPROTOCOL),
            Subprotocol::None => None,
        }
    }
}

fn header_lists(headers: &HeaderMap, name: &HeaderName, item: &str) -> bool {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(item))
}

/// Whether this is base64 of 16 bytes, as every client sends.
fn is_handshake_key(key: &[u8]) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}
