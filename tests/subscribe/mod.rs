//! Subscriptions over every transport: a real server, a WebSocket client, and bodies read byte by byte.

mod causes;
mod choice;
mod events;
mod limits;
mod log;
mod multipart;
mod places;
mod protocol;
mod refusals;
mod reload;
mod reloads;
mod upgrade;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Server};

/// Longer than anything here may take; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const CREATED: &str = "subscription { userCreated { id name } }";

fn memory() -> Config {
    Config { database: DatabaseLocation::Memory, ..Config::default() }
}

fn sample(config: Config) -> Server {
    Server::start(Trefoil::sample(), config)
}

/// Creates a user and gives its id.
fn create(server: &Server, name: &str) -> String {
    let mutation = "mutation ($name: String!) { createUser(name: $name, email: \"a@example.com\") { id } }";
    let answer = Client::of(server).graphql_with(mutation, json!({ "name": name }));
    answer["data"]["createUser"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Waits until the metrics say so.
fn until_metric(server: &Server, line: &str) {
    let begin = Instant::now();
    loop {
        let text = Client::of(server).send("GET", "/metrics", &[], b"").text();
        if text.lines().any(|own| own == line) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "no `{line}` in\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A WebSocket that speaks the protocol, or does not.
struct Line(WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>);

/// The handshake with these headers, or the response that refused it.
async fn shake(
    server: &Server,
    headers: &[(&'static str, &str)],
) -> Result<(Line, http::Response<Option<Vec<u8>>>), http::Response<Option<Vec<u8>>>> {
    shake_at(server.address, headers).await
}

async fn shake_at(
    address: SocketAddr,
    headers: &[(&'static str, &str)],
) -> Result<(Line, http::Response<Option<Vec<u8>>>), http::Response<Option<Vec<u8>>>> {
    let url = format!("ws://{address}/graphql");
    let mut request = url.into_client_request().expect("a request");
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a header value"));
    }
    match connect_async(request).await {
        Ok((stream, response)) => Ok((Line(stream), response)),
        Err(tungstenite::Error::Http(response)) => Err(*response),
        Err(error) => panic!("{error}"),
    }
}

impl Line {
    /// Connected, and nothing said yet.
    async fn open(server: &Server) -> Line {
        let shaken = shake(server, &[("sec-websocket-protocol", "graphql-transport-ws")]).await;
        let (line, response) = shaken.expect("the handshake");
        assert_eq!(response.headers()["sec-websocket-protocol"], "graphql-transport-ws");
        line
    }

    /// Connected and acknowledged.
    async fn ready(server: &Server) -> Line {
        let mut line = Line::open(server).await;
        line.send(json!({ "type": "connection_init" })).await;
        assert_eq!(line.receive().await["type"], "connection_ack");
        line
    }

    async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    async fn send_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("the server reads");
    }

    async fn subscribe(&mut self, id: &str, query: &str) {
        self.send(json!({ "id": id, "type": "subscribe", "payload": { "query": query } })).await;
    }

    async fn next(&mut self) -> Message {
        let next = timeout(PATIENCE, self.0.next()).await.expect("in time");
        next.expect("not closed").unwrap_or_else(|error| panic!("{error}"))
    }

    /// The next message of the protocol.
    async fn receive(&mut self) -> Value {
        let message = self.next().await;
        let Message::Text(text) = &message else { panic!("{message:?}") };
        serde_json::from_str(text).expect("JSON")
    }

    /// Waits until whatever was sent before has been read.
    async fn settle(&mut self) {
        self.send(json!({ "type": "ping", "payload": { "settled": true } })).await;
        assert_eq!(self.receive().await, json!({ "type": "pong", "payload": { "settled": true } }));
    }

    /// Subscribes, and waits until it has begun and all that came of that is read.
    async fn following(&mut self, server: &Server, id: &str) {
        self.subscribe(id, CREATED).await;
        let begin = Instant::now();
        loop {
            create(server, "is it there?");
            if timeout(Duration::from_millis(200), self.0.next()).await.is_ok() {
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "it never began");
        }
        create(server, "it is there");
        while self.receive().await["payload"]["data"]["userCreated"]["name"] != "it is there" {}
    }

    /// The code and the reason that the server closes with.
    async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.next().await {
                Message::Close(Some(CloseFrame { code, reason })) => {
                    return (code.into(), reason.to_string());
                }
                Message::Close(None) => panic!("closed without a code"),
                Message::Text(_)
                | Message::Binary(_)
                | Message::Ping(_)
                | Message::Pong(_)
                | Message::Frame(_) => {}
            }
        }
    }
}

/// The body of a response that does not end, read as it comes.
struct Body {
    stream: BufReader<TcpStream>,
    pub status: u16,
    headers: Vec<(String, String)>,
    /// What came, of which so much was taken.
    text: String,
    taken: usize,
    ended: bool,
    since: Instant,
}

impl Body {
    fn post(server: &Server, accept: &str, request: Value) -> Body {
        let body = request.to_string();
        let headers = [("Accept", accept), ("Content-Type", "application/json")];
        Body::open(server, "POST", "/graphql", &headers, &body)
    }

    fn open(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Body {
        Body::at(server.address, method, path, headers, body)
    }

    fn at(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Body {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        (&stream).write_all(format!("{head}\r\n{body}").as_bytes()).expect("the server reads");
        let (stream, headers) = (BufReader::new(stream), Vec::new());
        let mut body = Body {
            stream,
            status: 0,
            headers,
            text: String::new(),
            taken: 0,
            ended: false,
            since: Instant::now(),
        };
        body.head(method);
        body
    }

    fn head(&mut self, method: &str) {
        let line = self.line();
        self.status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        while let Some((name, value)) = self.line().split_once(':') {
            self.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if let Some(length) = self.header("content-length").and_then(|length| length.parse().ok()) {
            let mut bytes = vec![0; if method == "HEAD" { 0 } else { length }];
            self.stream.read_exact(&mut bytes).expect("the body");
            self.text = String::from_utf8(bytes).expect("UTF-8");
            self.ended = true;
        }
        self.ended |= method == "HEAD";
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("in time");
        line.trim_end().to_owned()
    }

    /// One more chunk.
    fn more(&mut self) {
        assert!(
            self.since.elapsed() < PATIENCE * 3,
            "it goes on, without what is waited for: {:?}",
            self.text
        );
        let size = usize::from_str_radix(&self.line(), 16).expect("a chunk size");
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).expect("a chunk");
        self.ended = size == 0;
        self.text += std::str::from_utf8(&chunk[..size]).expect("UTF-8");
    }

    /// What comes up to and with `end`.
    fn take(&mut self, end: &str) -> String {
        loop {
            let rest = &self.text[self.taken..];
            if let Some(at) = rest.find(end) {
                let found = rest[..at + end.len()].to_owned();
                self.taken += found.len();
                return found;
            }
            assert!(!self.ended, "it ended with {rest:?}");
            self.more();
        }
    }

    /// Everything that is still to come.
    fn rest(&mut self) -> String {
        while !self.ended {
            self.more();
        }
        self.text[self.taken..].to_owned()
    }
}
