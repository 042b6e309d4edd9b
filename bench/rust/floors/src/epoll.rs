//! The floor of any server on this kernel: one thread, epoll, ready bytes, hardly a parser.
//!
//!     floor-epoll PORT FOLDER [LOG]
//!
//! With a LOG, `createUser` is appended to it with one fdatasync for all requests that came together, before any of them
//! is answered. Each `createUser` goes to every subscriber as one ready frame (WebSocket) or chunk (Server-Sent Events).

mod answers;
mod wire;

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use answers::Answers;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use wire::{Input, Speaks};

#[derive(Default)]
struct Connection {
    input: Vec<u8>,
    output: Vec<u8>,
    speaks: Speaks,
    waits_to_write: bool,
}

struct Server {
    epoll: OwnedFd,
    ready: HashMap<String, Vec<u8>>,
    log: Option<File>,
    connections: HashMap<u64, (TcpStream, Connection)>,
    subscribers: Vec<u64>,
    created: u64,
    /// What one turn of the loop gathers: lines for the log, and events as frames and as chunks.
    lines: Vec<u8>,
    frames: Vec<u8>,
    chunks: Vec<u8>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let listener =
        TcpListener::bind(("127.0.0.1", arguments[1].parse().expect("a port"))).expect("the port is free");
    // The standard library's backlog of 128 is too short for a thousand subscribers at once.
    rustix::net::listen(&listener, 4096).expect("a longer backlog");
    listener.set_nonblocking(true).expect("a socket that does not block");
    let log =
        arguments.get(3).map(|path| File::options().create(true).append(true).open(path).expect("the log"));
    Server::new(&Answers::read(Path::new(&arguments[2])), log).run(&listener);
}

impl Server {
    fn new(answers: &Answers, log: Option<File>) -> Server {
        let sent = |name: &String| Some((name.clone(), wire::response(answers.get(name)?)));
        Server {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll instance"),
            ready: answers.names().filter_map(sent).collect(),
            log,
            connections: HashMap::new(),
            subscribers: Vec::new(),
            created: 0,
            lines: Vec::new(),
            frames: Vec::new(),
            chunks: Vec::new(),
        }
    }

    fn run(mut self, listener: &TcpListener) {
        let door = listener.as_raw_fd() as u64;
        epoll::add(&self.epoll, listener, EventData::new_u64(door), EventFlags::IN)
            .expect("watching the door");
        let mut events: Vec<Event> = Vec::with_capacity(1024);
        let mut buffer = vec![0; 1 << 16];
        let mut touched = Vec::new();
        loop {
            events.clear();
            if epoll::wait(&self.epoll, spare_capacity(&mut events), None).is_err() {
                continue;
            }
            touched.clear();
            for event in &events {
                let token = event.data.u64();
                if token == door {
                    self.accept(listener);
                } else if self.receive(token, &mut buffer) {
                    touched.push(token);
                }
            }
            self.sync();
            self.tell_subscribers();
            for token in &touched {
                self.flush(*token);
            }
        }
    }

    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            let _ = stream.set_nonblocking(true);
            let _ = stream.set_nodelay(true);
            let token = stream.as_raw_fd() as u64;
            if epoll::add(&self.epoll, &stream, EventData::new_u64(token), EventFlags::IN).is_ok() {
                self.connections.insert(token, (stream, Connection::default()));
            }
        }
    }

    /// Reads once and answers what is whole; true if there may be something to write.
    fn receive(&mut self, token: u64, buffer: &mut [u8]) -> bool {
        let Some((stream, connection)) = self.connections.get_mut(&token) else { return false };
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Ok(0) | Err(_) => {
                self.leave(token);
                return false;
            }
            Ok(length) => connection.input.extend_from_slice(&buffer[..length]),
        }
        let mut connection = std::mem::take(connection);
        let mut used = 0;
        while let Some((input, length)) = wire::next(&connection.input[used..], connection.speaks) {
            self.answer(token, input, &mut connection.output, &mut connection.speaks);
            used += length;
        }
        connection.input.drain(..used);
        if let Some(place) = self.connections.get_mut(&token) {
            place.1 = connection;
        }
        true
    }

    fn answer(&mut self, token: u64, input: Input, output: &mut Vec<u8>, speaks: &mut Speaks) {
        match input {
            Input::Request { name: "createUser", body } => self.create(body, output),
            Input::Request { name, .. } => match self.ready.get(name) {
                Some(ready) => output.extend_from_slice(ready),
                None => output.extend_from_slice(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
            },
            Input::Upgrade { accept } => {
                output.extend_from_slice(wire::switching(&accept).as_bytes());
                *speaks = Speaks::WebSocket;
            }
            Input::Stream => {
                output.extend_from_slice(wire::STREAM);
                *speaks = Speaks::Events;
                self.subscribers.push(token);
            }
            Input::Hello => output.extend_from_slice(&wire::frame(br#"{"type":"connection_ack"}"#)),
            Input::Subscribe => self.subscribers.push(token),
            Input::Nothing => {}
        }
    }

    fn create(&mut self, body: &[u8], output: &mut Vec<u8>) {
        self.created += 1;
        let user = wire::user(self.created, body);
        wire::created(&user, output);
        if self.log.is_some() {
            self.lines.extend_from_slice(&user);
            self.lines.push(b'\n');
        }
        if !self.subscribers.is_empty() {
            self.frames.extend(wire::event_frame(&user));
            self.chunks.extend(wire::event_chunk(&user));
        }
    }

    fn sync(&mut self) {
        let Some(log) = self.log.as_mut().filter(|_| !self.lines.is_empty()) else { return };
        log.write_all(&self.lines).expect("the log takes what is appended");
        rustix::fs::fdatasync(&*log).expect("the log reaches the disk");
        self.lines.clear();
    }

    fn tell_subscribers(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        for token in std::mem::take(&mut self.subscribers) {
            if let Some((_, connection)) = self.connections.get_mut(&token) {
                let event = if connection.speaks == Speaks::Events { &self.chunks } else { &self.frames };
                connection.output.extend_from_slice(event);
                self.flush(token);
                self.subscribers.push(token);
            }
        }
        self.frames.clear();
        self.chunks.clear();
    }

    fn flush(&mut self, token: u64) {
        let Some((stream, connection)) = self.connections.get_mut(&token) else { return };
        while !connection.output.is_empty() {
            match stream.write(&connection.output) {
                Ok(length) if length == connection.output.len() => connection.output.clear(),
                Ok(length) => drop(connection.output.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return self.leave(token),
            }
        }
        let waits = !connection.output.is_empty();
        if waits != connection.waits_to_write {
            connection.waits_to_write = waits;
            let flags = if waits { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let _ = epoll::modify(&self.epoll, stream, EventData::new_u64(token), flags);
        }
        // A subscriber that waits for its next event keeps no buffer.
        if connection.output.is_empty() && connection.speaks != Speaks::Http {
            connection.output = Vec::new();
            connection.input.shrink_to_fit();
        }
    }

    fn leave(&mut self, token: u64) {
        self.connections.remove(&token);
        self.subscribers.retain(|subscriber| *subscriber != token);
    }
}
