//! One subscription on one connection, over WebSocket or SSE, with no more memory than an event needs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::tally::Event;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Socket,
    Stream,
}

pub const EVENTS: &str = "subscription { userCreated { id name } }";

/// Connections from one address; there are some 28,000 ports to each.
const PER_ADDRESS: usize = 20_000;

pub struct Link {
    stream: TcpStream,
    kind: Kind,
    buffer: Vec<u8>,
    /// Bytes of it that are done with.
    done: usize,
    /// The last id that was told.
    pub place: String,
}

impl Link {
    /// Subscribes, after `last` if there is one, and returns when the server has told the place.
    pub async fn open(
        address: SocketAddr,
        index: usize,
        kind: Kind,
        query: &str,
        last: Option<&str>,
    ) -> io::Result<Link> {
        let stream = connect(address, index, None).await?;
        let mut link = Link { stream, kind, buffer: Vec::with_capacity(1024), done: 0, place: String::new() };
        link.begin(query, last).await?;
        Ok(link)
    }

    /// Subscribes and gives the connection itself, with little room for what nobody reads.
    pub async fn stuck(address: SocketAddr, index: usize, kind: Kind, query: &str) -> io::Result<TcpStream> {
        let stream = connect(address, index, Some(4096)).await?;
        let mut link = Link { stream, kind, buffer: Vec::new(), done: 0, place: String::new() };
        link.begin(query, None).await?;
        Ok(link.stream)
    }

    async fn begin(&mut self, query: &str, last: Option<&str>) -> io::Result<()> {
        let extensions =
            last.map(|last| format!(r#","extensions":{{"lastEventId":"{last}"}}"#)).unwrap_or_default();
        let request = format!(r#"{{"query":"{query}"{extensions}}}"#);
        match self.kind {
            Kind::Socket => self.begin_socket(&request, last).await,
            Kind::Stream => self.begin_stream(&request).await,
        }
    }

    async fn begin_socket(&mut self, request: &str, last: Option<&str>) -> io::Result<()> {
        let head = "GET /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                    sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
                    sec-websocket-protocol: graphql-transport-ws\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await?;
        self.head("101").await?;
        self.send(r#"{"type":"connection_init"}"#).await?;
        let Some(ack) = self.message().await? else { return Err(wrong("no connection_ack")) };
        let ack = self.buffer[ack].to_vec();
        let place = text_after(&ack, b"\"lastEventId\":\"")
            .ok_or_else(|| wrong("a connection_ack without a place"))?;
        // What happens between the two messages is wanted too.
        let request = match last {
            Some(_) => request.to_owned(),
            None => request.replacen('{', &format!(r#"{{"extensions":{{"lastEventId":"{place}"}},"#), 1),
        };
        self.place = last.unwrap_or(place).to_owned();
        self.send(&format!(r#"{{"id":"1","type":"subscribe","payload":{request}}}"#)).await
    }

    async fn begin_stream(&mut self, request: &str) -> io::Result<()> {
        let head = format!(
            "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: text/event-stream\r\ncontent-length: {}\r\n\r\n{request}",
            request.len()
        );
        self.stream.write_all(head.as_bytes()).await?;
        self.head("200").await?;
        while self.place.is_empty() {
            let Some(message) = self.message().await? else { return Err(wrong("no place")) };
            self.take_place(message);
        }
        Ok(())
    }

    /// Waits for the next event. May be dropped while waiting; nothing is lost by that.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            let Some(message) = self.message().await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let text = &self.buffer[message.clone()];
            if let Some(event) = event(text) {
                let id = text_after(text, b"\"eventId\":\"").unwrap_or_default();
                self.place.clear();
                self.place.push_str(id);
                return Ok(event);
            }
            if find(text, b"\"errors\"").is_some() || find(text, b"\"type\":\"error\"").is_some() {
                return Err(wrong(&String::from_utf8_lossy(text)));
            }
            if find(text, b"\"type\":\"ping\"").is_some() {
                self.send(r#"{"type":"pong"}"#).await?;
            }
            self.take_place(message);
        }
    }

    fn take_place(&mut self, message: std::ops::Range<usize>) {
        let text = &self.buffer[message];
        let place = match self.kind {
            Kind::Socket => text_after(text, b"\"lastEventId\":\""),
            Kind::Stream => text_after(text, b"id: ").and_then(|rest| rest.lines().next()),
        };
        if let Some(place) = place.map(str::to_owned) {
            self.place = place;
        }
    }

    /// The head of the answer; an error unless it has this status.
    async fn head(&mut self, status: &str) -> io::Result<()> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.done = end + 4;
                let told = head.split(' ').nth(1).unwrap_or_default();
                return if told == status { Ok(()) } else { Err(wrong(&head)) };
            }
            self.more().await?;
        }
    }

    /// The next frame of a socket or block of a stream, by its place in the buffer; none when it is over.
    async fn message(&mut self) -> io::Result<Option<std::ops::Range<usize>>> {
        loop {
            let found = match self.kind {
                Kind::Socket => frame(&self.buffer[self.done..])?,
                // Each block is a chunk of the body of its own, or several are.
                Kind::Stream => block(&self.buffer[self.done..]),
            };
            if let Some((message, length)) = found {
                let message = self.done + message.start..self.done + message.end;
                self.done += length;
                return Ok(Some(message));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    async fn more(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.done);
        self.done = 0;
        self.buffer.reserve(512);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    /// A frame with a mask of zeros, which masks nothing.
    async fn send(&mut self, text: &str) -> io::Result<()> {
        let mut frame = vec![0x81];
        match u8::try_from(text.len()) {
            Ok(short @ ..=125) => frame.push(0x80 | short),
            Ok(_) | Err(_) => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(text.len()).map_err(|_| wrong("a long message"))?.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.write_all(&frame).await
    }
}

async fn connect(address: SocketAddr, index: usize, room: Option<u32>) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(1 + index / PER_ADDRESS).map_err(|_| wrong("too many connections"))?;
    socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into())?;
    if let Some(room) = room {
        socket.set_recv_buffer_size(room)?;
    }
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A whole frame: where its payload is, and its length.
fn frame(bytes: &[u8]) -> io::Result<Option<(std::ops::Range<usize>, usize)>> {
    let [kind, short, ..] = *bytes else { return Ok(None) };
    let (start, length) = match (short, bytes) {
        (..126, _) => (2, usize::from(short)),
        (126, [_, _, a, b, ..]) => (4, usize::from(u16::from_be_bytes([*a, *b]))),
        (126, _) => return Ok(None),
        (127.., _) => return Err(wrong("an event of more than 64 KiB")),
    };
    let end = start + length;
    if bytes.len() < end {
        return Ok(None);
    }
    if kind == 0x88 {
        let code = bytes.get(start..start + 2).map_or(1005, |code| u16::from_be_bytes([code[0], code[1]]));
        let reason = String::from_utf8_lossy(bytes.get(start + 2..end).unwrap_or_default()).into_owned();
        return Err(wrong(&format!("closed with {code}: {reason}")));
    }
    Ok(Some((start..end, end)))
}

/// A whole block of an event stream, with whatever of the chunks' framing stands before it.
fn block(bytes: &[u8]) -> Option<(std::ops::Range<usize>, usize)> {
    let end = find(bytes, b"\n\n")?;
    Some((0..end, end + 2))
}

fn event(text: &[u8]) -> Option<Event> {
    let id = text_after(text, b"\"eventId\":\"")?;
    let number = number(id)?;
    let record = number_after(text, b"\"userCreated\":{\"id\":\"")?;
    let name = number_after(text, b"\"name\":\"")?;
    Some(Event { number, record, name })
}

/// The number in an id. Clients must not look into it; this one checks the server.
pub fn number(id: &str) -> Option<u64> {
    id.rsplit('-').next()?.parse().ok()
}

pub fn number_after(text: &[u8], mark: &[u8]) -> Option<u64> {
    let rest = &text[find(text, mark)? + mark.len()..];
    let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

fn text_after<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a str> {
    let rest = &text[find(text, mark)? + mark.len()..];
    let end = rest.iter().position(|byte| *byte == b'"').unwrap_or(rest.len());
    std::str::from_utf8(&rest[..end]).ok()
}

pub fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    text.windows(mark.len()).position(|window| window == mark)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
