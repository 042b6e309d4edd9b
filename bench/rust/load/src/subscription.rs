//! One subscriber to `userCreated`, over WebSocket or Server-Sent Events: opens it and finds the events in what arrives.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use memchr::memmem;
use mio::{Interest, Registry, Token};

use crate::Failed;

#[derive(Clone, Copy)]
pub enum Transport {
    WebSocket,
    Sse,
}

/// Stands before an event's number in the name of the user it tells of.
pub const MARK: &str = "event number ";

const UPGRADE: &str = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n";
const QUERY: &str = r#"{"query":"subscription{userCreated{id name email}}"}"#;

pub struct Subscription {
    stream: mio::net::TcpStream,
    transport: Transport,
    received: Vec<u8>,
}

impl Subscription {
    pub fn open(
        port: u16,
        transport: Transport,
        registry: &Registry,
        token: Token,
    ) -> Result<Subscription, Failed> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let received = match transport {
            Transport::WebSocket => shake_hands(&mut stream)?,
            Transport::Sse => ask_for_stream(&mut stream)?,
        };
        stream.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        Ok(Subscription { stream, transport, received })
    }

    /// Calls with the number of each event that has arrived whole.
    pub fn receive(&mut self, buffer: &mut [u8], mut event: impl FnMut(usize)) -> Result<(), Failed> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err("the server ended a subscription".into()),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let used = match self.transport {
            Transport::WebSocket => self.frames(&mut event)?,
            Transport::Sse => blocks(&self.received, &mut event),
        };
        self.received.drain(..used);
        Ok(())
    }

    fn frames(&mut self, event: &mut impl FnMut(usize)) -> Result<usize, Failed> {
        let mut used = 0;
        while let Some((operation, from, to)) = frame(&self.received[used..]) {
            let payload = &self.received[used + from..used + to];
            used += to;
            match operation {
                8 => return Err("the server closed a WebSocket".into()),
                9 => self.stream.write_all(&masked(10, payload))?,
                _ => match number(payload) {
                    Some(number) => event(number),
                    None if memmem::find(payload, b"\"ping\"").is_some() => {
                        self.stream.write_all(&masked(1, br#"{"type":"pong"}"#))?;
                    }
                    None => {}
                },
            }
        }
        Ok(used)
    }
}

/// Returns what came after the acknowledgement.
fn shake_hands(stream: &mut TcpStream) -> Result<Vec<u8>, Failed> {
    stream.write_all(UPGRADE.as_bytes())?;
    let mut received = head(stream, b"HTTP/1.1 101")?;
    stream.write_all(&masked(1, br#"{"type":"connection_init","payload":{}}"#))?;
    loop {
        if let Some((_, from, to)) = frame(&received) {
            let acknowledged = memmem::find(&received[from..to], b"connection_ack").is_some();
            received.drain(..to);
            if acknowledged {
                break;
            }
        } else {
            more(stream, &mut received)?;
        }
    }
    stream
        .write_all(&masked(1, format!(r#"{{"id":"1","type":"subscribe","payload":{QUERY}}}"#).as_bytes()))?;
    Ok(received)
}

fn ask_for_stream(stream: &mut TcpStream) -> Result<Vec<u8>, Failed> {
    write!(
        stream,
        "POST /graphql HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{QUERY}",
        QUERY.len()
    )?;
    head(stream, b"HTTP/1.1 200")
}

/// Reads a response's head of that beginning and returns what came after it.
fn head(stream: &mut TcpStream, begins: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut received = Vec::new();
    loop {
        if let Some(end) = memmem::find(&received, b"\r\n\r\n") {
            if !received.starts_with(begins) {
                return Err(String::from_utf8_lossy(&received).into());
            }
            received.drain(..end + 4);
            return Ok(received);
        }
        more(stream, &mut received)?;
    }
}

fn more(stream: &mut TcpStream, received: &mut Vec<u8>) -> Result<(), Failed> {
    let mut buffer = [0; 4096];
    let length = stream.read(&mut buffer)?;
    received.extend_from_slice(&buffer[..length]);
    if length == 0 {
        Err("the server closed a connection that was to become a subscription".into())
    } else {
        Ok(())
    }
}

/// Operation, and where the payload of the first frame begins and ends, once it is whole.
fn frame(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (from, length) = match second & 127 {
        126 => (4, u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?).into()),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize),
        short => (2, usize::from(short)),
    };
    (bytes.len() >= from + length).then_some((first & 15, from, from + length))
}

/// A client's frame; a mask of zeros is a mask.
fn masked(operation: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | operation];
    match u8::try_from(payload.len()) {
        Ok(short) if short < 126 => frame.push(0x80 | short),
        _ => {
            frame.push(0x80 | 126);
            frame.extend((payload.len() as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Chunk lengths may stand anywhere between; how much of the bytes is done with.
fn blocks(bytes: &[u8], event: &mut impl FnMut(usize)) -> usize {
    let mut used = 0;
    while let Some(at) = memmem::find(&bytes[used..], b"\n\n") {
        if let Some(number) = number(&bytes[used..used + at]) {
            event(number);
        }
        used += at + 2;
    }
    used
}

fn number(payload: &[u8]) -> Option<usize> {
    let from = memmem::find(payload, MARK.as_bytes())? + MARK.len();
    let digits = payload[from..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0')))
}
