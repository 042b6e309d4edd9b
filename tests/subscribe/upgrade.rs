//! Which requests become a WebSocket: subprotocols, origins, and upgrades to other protocols.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::json;
use trefoil_config::Config;

use super::{Body, Line, memory, sample, shake};

const PROTOCOL: (&str, &str) = ("sec-websocket-protocol", "graphql-transport-ws");

#[tokio::test]
async fn legacy_subprotocol_closes_with_4406() {
    let server = sample(memory());
    let (mut line, response) =
        shake(&server, &[("sec-websocket-protocol", "graphql-ws")]).await.expect("the handshake");
    // Taken up, or clients would see a failed handshake instead of the code.
    assert_eq!(response.headers()["sec-websocket-protocol"], "graphql-ws");
    let (code, reason) = line.closed().await;
    assert_eq!(code, 4406);
    assert_eq!(reason, "Subprotocol not acceptable: use graphql-transport-ws");
}

#[tokio::test]
async fn missing_subprotocol_closes_with_4406() {
    let server = sample(memory());
    let (mut line, response) = shake(&server, &[]).await.expect("the handshake");
    assert!(!response.headers().contains_key("sec-websocket-protocol"));
    assert_eq!(line.closed().await.0, 4406);
}

#[tokio::test]
async fn supported_subprotocol_is_chosen_from_several() {
    let server = sample(memory());
    let offers = "graphql-ws, graphql-transport-ws";
    let (mut line, response) =
        shake(&server, &[("sec-websocket-protocol", offers)]).await.expect("the handshake");
    assert_eq!(response.headers()["sec-websocket-protocol"], "graphql-transport-ws");
    line.send(json!({ "type": "connection_init" })).await;
    assert_eq!(line.receive().await["type"], "connection_ack");
}

/// gql for Python looks for the subprotocol under this very name.
#[test]
fn handshake_names_its_headers_in_their_usual_case() {
    let server = sample(memory());
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    let request = format!(
        "GET /graphql HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("the server writes"));
    assert_eq!(lines.next().as_deref(), Some("HTTP/1.1 101 Switching Protocols"));
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    for header in [
        "Connection: upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        "Sec-WebSocket-Protocol: graphql-transport-ws",
    ] {
        assert!(headers.iter().any(|line| line == header), "{header} is not in {headers:#?}");
    }
}

#[tokio::test]
async fn websocket_from_another_origin_is_403() {
    let server = sample(memory());
    let own = format!("http://{}", server.address);
    let secure = format!("https://{}", server.address);
    let table: &[(&[(&'static str, &str)], bool)] = &[
        (&[], true),
        (&[("origin", &own)], true),
        (&[("origin", &secure)], true),
        (&[("origin", &own), ("sec-fetch-site", "same-origin")], true),
        (&[("origin", "https://evil.example")], false),
        (&[("origin", "null")], false),
        (&[("origin", "http://127.0.0.1:1")], false),
        (&[("origin", &own), ("sec-fetch-site", "cross-site")], false),
        (&[("origin", "http://sub.127.0.0.1"), ("sec-fetch-site", "same-site")], false),
    ];
    for (headers, welcome) in table {
        let headers = [&[PROTOCOL], *headers].concat();
        match shake(&server, &headers).await {
            Ok(_) => assert!(welcome, "{headers:?}"),
            Err(response) => assert!(!welcome && response.status() == 403, "{headers:?}: {response:?}"),
        }
    }
}

#[tokio::test]
async fn websocket_from_a_listed_origin_is_accepted() {
    let server = sample(Config { cors_origins: vec!["https://app.example".into()], ..memory() });
    let listed = [PROTOCOL, ("origin", "https://app.example"), ("sec-fetch-site", "cross-site")];
    assert!(shake(&server, &listed).await.is_ok());
    let other = [PROTOCOL, ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")];
    assert_eq!(shake(&server, &other).await.err().expect("refused").status(), 403);
    // To read needs no socket, and a browser would send along with it what it has for this server.
    let open = Config { cors_origins: vec!["*".into(), "https://app.example".into()], ..memory() };
    let open = sample(open);
    assert_eq!(shake(&open, &other).await.err().expect("refused").status(), 403);
    assert!(shake(&open, &listed).await.is_ok());
}

#[test]
fn upgrade_to_an_unknown_protocol_is_ignored() {
    let server = sample(memory());
    let query = "/graphql?query=%7B__typename%7D";
    for (upgrade, connection) in
        [("h2c", "Upgrade, HTTP2-Settings"), ("websocket", "keep-alive"), ("irc", "upgrade")]
    {
        let headers = [("Upgrade", upgrade), ("Connection", connection), ("Accept", "application/json")];
        let mut body = Body::open(&server, "GET", query, &headers, "");
        assert_eq!(
            (body.status, body.rest().as_str()),
            (200, "{\"data\":{\"__typename\":\"Query\"}}"),
            "{upgrade}"
        );
    }
    // A socket is asked for with GET; a POST is a request like any other.
    let headers = [("Upgrade", "websocket"), ("Connection", "upgrade"), ("Content-Type", "application/json")];
    let body = Body::open(&server, "POST", "/graphql", &headers, "{\"query\":\"{ __typename }\"}");
    assert_eq!(body.status, 200);
}

#[test]
fn malformed_handshake_says_what_is_wrong() {
    let server = sample(memory());
    let base = [("Upgrade", "websocket"), ("Connection", "keep-alive, Upgrade")];
    let old =
        [&base[..], &[("Sec-WebSocket-Version", "8"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]]
            .concat();
    let body = Body::open(&server, "GET", "/graphql", &old, "");
    assert_eq!((body.status, body.header("sec-websocket-version")), (426, Some("13")));
    // None, base64 of 15 and of 17 bytes, and 24 characters that are no base64.
    for key in ["", "dGhlIHNhbXBsZSBub25j", "dGhlIHNhbXBsZSBub25jZTE=", "dGhlIHNhbXBsZSBub25j!!=="] {
        let keyed = [&base[..], &[("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]].concat();
        let mut body = Body::open(&server, "GET", "/graphql", &keyed, "");
        assert_eq!(body.status, 400, "{key}");
        assert!(body.rest().contains("Sec-WebSocket-Key"), "{key}");
    }
}

#[tokio::test]
async fn websocket_compression_is_not_offered() {
    let server = sample(memory());
    let headers = [PROTOCOL, ("sec-websocket-extensions", "permessage-deflate")];
    let (mut line, response) = shake(&server, &headers).await.expect("the handshake");
    assert!(!response.headers().contains_key("sec-websocket-extensions"));
    line.send(json!({ "type": "connection_init" })).await;
    assert_eq!(line.receive().await["type"], "connection_ack");
    drop(Line::open(&server).await);
}
