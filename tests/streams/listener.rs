//! A client that follows the posts of a site over one of the transports.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, HandshakeError, Message, WebSocket};

/// Longer than anything here may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How long one look for news waits.
const GLANCE: Duration = Duration::from_millis(50);

/// A transport of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Socket,
    Events,
    Multipart,
    Rest,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Socket, Way::Events, Way::Multipart, Way::Rest];
}

/// What was heard at one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A whole line of a body, or a message, with an event.
    Event(String),
    Silence,
    /// With the code of a close.
    Ended(Option<u16>),
}

pub struct Listener {
    pub way: Way,
    stream: ListenerStream,
}

enum ListenerStream {
    Socket(Box<Socket>),
    Body { lines: BufReader<TcpStream>, line: String },
}

impl Listener {
    /// Follows the posts that are created, or gives the status that refuses it.
    pub fn of_posts(way: Way, address: SocketAddr, credential: &str) -> Result<Listener, u16> {
        Listener::open(way, address, credential, "/posts", "subscription { postCreated { title } }")
    }

    /// Follows a subscription, or the changes at a path of REST.
    pub fn open(
        way: Way,
        address: SocketAddr,
        credential: &str,
        path: &str,
        query: &str,
    ) -> Result<Listener, u16> {
        let stream = match way {
            Way::Socket => {
                let mut socket = Socket::open(address, &[("authorization", credential)])?;
                socket.init(&json!({})).map_err(|code| code.unwrap_or(0))?;
                socket.start("1", query);
                ListenerStream::Socket(Box::new(socket))
            }
            Way::Events => open_body(address, credential, "/graphql", "text/event-stream", Some(query))?,
            Way::Multipart => {
                let accept = "multipart/mixed;subscriptionSpec=1.0";
                open_body(address, credential, "/graphql", accept, Some(query))?
            }
            Way::Rest => open_body(address, credential, path, "text/event-stream", None)?,
        };
        Ok(Listener { way, stream })
    }

    pub fn hear(&mut self) -> Heard {
        match &mut self.stream {
            ListenerStream::Socket(socket) => match socket.receive() {
                Heard::Event(text) if !text.contains("\"type\":\"next\"") => Heard::Silence,
                heard @ (Heard::Event(_) | Heard::Silence | Heard::Ended(_)) => heard,
            },
            ListenerStream::Body { lines, line } => match lines.read_line(line) {
                Ok(0) => Heard::Ended(None),
                Ok(_) => match std::mem::take(line).trim_end() {
                    "0" => Heard::Ended(None),
                    text if text.starts_with("data: {") || text.contains("\"payload\":{") => {
                        Heard::Event(text.to_owned())
                    }
                    _ => Heard::Silence,
                },
                // What came of the line is kept for the next look.
                Err(error) if is_silence(error.kind()) => Heard::Silence,
                Err(_) => Heard::Ended(None),
            },
        }
    }

    /// Makes news until one is heard: from now on nothing is missed.
    pub fn follow(&mut self, mut news: impl FnMut()) {
        let begin = Instant::now();
        while !matches!(self.hear(), Heard::Event(_)) {
            assert!(begin.elapsed() < PATIENCE, "{:?}: it never began", self.way);
            news();
        }
        while self.hear() != Heard::Silence {}
    }

    /// Everything until the end, with the code of a close.
    pub fn until_end(&mut self) -> (Vec<String>, Option<u16>) {
        let (begin, mut heard) = (Instant::now(), Vec::new());
        loop {
            match self.hear() {
                Heard::Event(text) => heard.push(text),
                Heard::Silence => {
                    assert!(begin.elapsed() < PATIENCE, "{:?}: it does not end: {heard:?}", self.way);
                }
                Heard::Ended(code) => return (heard, code),
            }
        }
    }

    /// Everything until an event has this text.
    pub fn until(&mut self, text: &str) -> Vec<String> {
        let (begin, mut heard) = (Instant::now(), Vec::new());
        loop {
            match self.hear() {
                Heard::Event(event) => {
                    let is_last = event.contains(text);
                    heard.push(event);
                    if is_last {
                        return heard;
                    }
                }
                Heard::Silence => {
                    assert!(begin.elapsed() < PATIENCE, "{:?}: no {text} in {heard:?}", self.way);
                }
                Heard::Ended(code) => panic!("{:?}: ended with {code:?} before {text}: {heard:?}", self.way),
            }
        }
    }
}

fn is_silence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("an option");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

fn open_body(
    address: SocketAddr,
    credential: &str,
    path: &str,
    accept: &str,
    query: Option<&str>,
) -> Result<ListenerStream, u16> {
    let body = query.map(|query| json!({ "query": query }).to_string()).unwrap_or_default();
    let method = if query.is_some() { "POST" } else { "GET" };
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n");
    head += &format!("Authorization: {credential}\r\n");
    if query.is_some() {
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    let mut stream = connect(address);
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("the server reads");
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).expect("a status line");
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    if status != 200 {
        return Err(status);
    }
    loop {
        line.clear();
        lines.read_line(&mut line).expect("a header");
        if line.trim_end().is_empty() {
            break;
        }
    }
    lines.get_ref().set_read_timeout(Some(GLANCE)).expect("a timeout");
    Ok(ListenerStream::Body { lines, line: String::new() })
}

/// A WebSocket of `graphql-transport-ws`.
pub struct Socket(WebSocket<TcpStream>);

impl Socket {
    /// Connected, and nothing said yet; or the status that refuses it.
    pub fn open(address: SocketAddr, headers: &[(&'static str, &str)]) -> Result<Socket, u16> {
        let mut request = format!("ws://{address}/graphql").into_client_request().expect("a request");
        let protocol = ("sec-websocket-protocol", "graphql-transport-ws");
        for (name, value) in headers.iter().chain([&protocol]) {
            request.headers_mut().insert(*name, value.parse().expect("a header value"));
        }
        match tungstenite::client(request, connect(address)) {
            Ok((socket, _)) => {
                socket.get_ref().set_read_timeout(Some(GLANCE)).expect("a timeout");
                Ok(Socket(socket))
            }
            Err(HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                Err(response.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Says `connection_init`; the code of the close if it is not acknowledged.
    pub fn init(&mut self, payload: &Value) -> Result<(), Option<u16>> {
        self.send(&json!({"type": "connection_init", "payload": payload}));
        match self.next() {
            Heard::Event(text) if text.contains("connection_ack") => Ok(()),
            Heard::Ended(code) => Err(code),
            heard @ (Heard::Event(_) | Heard::Silence) => panic!("{heard:?}"),
        }
    }

    pub fn start(&mut self, id: &str, query: &str) {
        self.send(&json!({"id": id, "type": "subscribe", "payload": {"query": query}}));
    }

    /// The answer to a query or a mutation; the code of the close if there is none.
    pub fn answer(&mut self, id: &str, query: &str) -> Result<Value, Option<u16>> {
        self.start(id, query);
        let mut answer = Value::Null;
        loop {
            match self.next() {
                Heard::Event(text) => {
                    let message: Value = serde_json::from_str(&text).expect("JSON");
                    match message["type"].as_str() {
                        Some("next") => answer = message["payload"].clone(),
                        Some("error") => return Ok(message),
                        Some("complete") => return Ok(answer),
                        other => panic!("{other:?}"),
                    }
                }
                Heard::Ended(code) => return Err(code),
                Heard::Silence => panic!("no answer"),
            }
        }
    }

    /// A failure to write is told by what is read next.
    pub fn send(&mut self, message: &Value) {
        let _ = self.0.send(Message::text(message.to_string()));
    }

    /// The next message, or the end; silence only when it lasts.
    pub fn next(&mut self) -> Heard {
        let begin = Instant::now();
        loop {
            match self.receive() {
                Heard::Silence if begin.elapsed() < PATIENCE => {}
                heard @ (Heard::Event(_) | Heard::Silence | Heard::Ended(_)) => return heard,
            }
        }
    }

    pub fn receive(&mut self) -> Heard {
        match self.0.read() {
            Ok(Message::Text(text)) if text.contains("\"type\":\"ping\"") => Heard::Silence,
            Ok(Message::Text(text)) => Heard::Event(text.to_string()),
            Ok(Message::Close(frame)) => Heard::Ended(frame.map(|frame| frame.code.into())),
            Ok(_) => Heard::Silence,
            Err(tungstenite::Error::Io(error)) if is_silence(error.kind()) => Heard::Silence,
            Err(_) => Heard::Ended(None),
        }
    }
}
