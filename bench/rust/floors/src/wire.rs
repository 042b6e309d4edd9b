//! The least of HTTP, WebSocket and GraphQL's two ways to subscribe that a floor can do with.

use base64::Engine;
use memchr::memmem;
use sha1::{Digest, Sha1};

use crate::answers::{self, Answer};

#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    #[default]
    Http,
    WebSocket,
    Events,
}

pub enum Input<'a> {
    Request { name: &'static str, body: &'a [u8] },
    Upgrade { accept: String },
    Stream,
    Hello,
    Subscribe,
    Nothing,
}

pub const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n2\r\n:\n\r\n";

/// The first message of the bytes and its length, once it is whole.
pub fn next(bytes: &[u8], speaks: Speaks) -> Option<(Input<'_>, usize)> {
    match speaks {
        Speaks::Http => request(bytes),
        Speaks::WebSocket => client_frame(bytes),
        Speaks::Events => (!bytes.is_empty()).then_some((Input::Nothing, bytes.len())),
    }
}

fn request(bytes: &[u8]) -> Option<(Input<'_>, usize)> {
    let head = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let (method, rest) = split(bytes, b' ')?;
    let (path, _) = split(rest, b' ')?;
    let (method, path) = (std::str::from_utf8(method).ok()?, std::str::from_utf8(path).ok()?);
    if method == "GET" {
        let input = match header(&bytes[..head], "sec-websocket-key") {
            Some(key) if path == "/graphql" => Input::Upgrade { accept: accept(key) },
            _ => Input::Request { name: answers::name(method, path, b""), body: b"" },
        };
        return Some((input, head));
    }
    let length = header(&bytes[..head], "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = bytes.get(head..head + length)?;
    let input = match memmem::find(body, b"subscription") {
        Some(_) => Input::Stream,
        None => Input::Request { name: answers::name(method, path, body), body },
    };
    Some((input, head + length))
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = memchr::memchr(at, bytes)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let lines = std::str::from_utf8(head).ok()?.lines();
    lines
        .filter_map(|line| line.split_once(": "))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

fn accept(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base64::engine::general_purpose::STANDARD.encode(hash.finalize())
}

pub fn switching(accept: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-accept: {accept}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n"
    )
}

fn client_frame(bytes: &[u8]) -> Option<(Input<'_>, usize)> {
    let (from, length) = match bytes.get(1)? & 127 {
        126 => (4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into()),
        short => (2, usize::from(short)),
    };
    let mask = bytes.get(from..from + 4)?;
    let payload = bytes.get(from + 4..from + 4 + length)?;
    let clear: Vec<u8> = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    let input = if memmem::find(&clear, b"connection_init").is_some() {
        Input::Hello
    } else if memmem::find(&clear, b"\"subscribe\"").is_some() {
        Input::Subscribe
    } else {
        Input::Nothing
    };
    Some((input, from + 4 + length))
}

pub fn response(answer: &Answer) -> Vec<u8> {
    let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
    let content = answer.headers.iter().find(is_type).map_or("text/plain", |(_, value)| value);
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content}\r\ncontent-length: {}\r\n\r\n",
        answer.body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&answer.body);
    bytes
}

/// The user as JSON, from the variables of a request.
pub fn user(id: u64, body: &[u8]) -> Vec<u8> {
    let mut user = format!(r#"{{"id":"{id}","name":""#).into_bytes();
    user.extend_from_slice(text(body, b"\"name\":\""));
    user.extend_from_slice(b"\",\"email\":\"");
    user.extend_from_slice(text(body, b"\"email\":\""));
    user.extend_from_slice(b"\"}");
    user
}

fn text<'a>(body: &'a [u8], after: &[u8]) -> &'a [u8] {
    let from = memmem::find(body, after).map_or(body.len(), |at| at + after.len());
    split(&body[from..], b'"').map_or(b"", |(text, _)| text)
}

pub fn created(user: &[u8], output: &mut Vec<u8>) {
    let around = (r#"{"data":{"createUser":"#, "}}");
    let length = around.0.len() + user.len() + around.1.len();
    output.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ");
    output.extend_from_slice(length.to_string().as_bytes());
    output.extend_from_slice(b"\r\n\r\n");
    output.extend_from_slice(around.0.as_bytes());
    output.extend_from_slice(user);
    output.extend_from_slice(around.1.as_bytes());
}

pub fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u8::try_from(payload.len()) {
        Ok(short) if short < 126 => frame.push(short),
        _ => {
            frame.push(126);
            frame.extend((payload.len() as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

pub fn event_frame(user: &[u8]) -> Vec<u8> {
    let mut payload = br#"{"id":"1","type":"next","payload":{"data":{"userCreated":"#.to_vec();
    payload.extend_from_slice(user);
    payload.extend_from_slice(b"}}}");
    frame(&payload)
}

pub fn event_chunk(user: &[u8]) -> Vec<u8> {
    let mut data = b"event: next\ndata: {\"data\":{\"userCreated\":".to_vec();
    data.extend_from_slice(user);
    data.extend_from_slice(b"}}\n\n");
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(&data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
