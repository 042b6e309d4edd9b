//! One keep-alive connection: sends a request, collects its answer, says when it is all there and whether it is right.

use std::io::{ErrorKind, Read, Write};
use std::time::Instant;

use memchr::memmem::Finder;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::Failed;
use crate::answer::{self, Head};
use crate::script::{Asked, Kind};

pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    head: Option<Head>,
    pub sent: Instant,
    /// Which request of the script is on its way.
    pub asked: Option<usize>,
}

pub enum Answered {
    Right,
    Wrong(String),
}

impl Connection {
    pub fn open(port: u16, registry: &Registry, token: Token) -> Result<Connection, Failed> {
        let stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        Ok(Connection {
            stream,
            received: Vec::with_capacity(4096),
            head: None,
            sent: Instant::now(),
            asked: None,
        })
    }

    /// Requests are small and one at a time, so that the socket's buffer takes each whole.
    pub fn send(&mut self, script: &[Asked], index: usize) -> Result<(), Failed> {
        self.asked = Some(index);
        self.sent = Instant::now();
        Ok(self.stream.write_all(&script[index].request)?)
    }

    /// Takes what has arrived; the verdict once the answer is whole. `fresh` is what a fresh read must also hold.
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        script: &[Asked],
        fresh: Option<&Finder>,
    ) -> Result<Option<Answered>, Failed> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        if self.head.is_none() {
            self.head = answer::head(&self.received)?;
        }
        let Some(head) = &mut self.head else { return Ok(None) };
        let Some(body) = head.framing.whole(&self.received)? else { return Ok(None) };
        let index = self.asked.take().ok_or("an answer to nothing")?;
        let (asked, body) = (&script[index], &self.received[body]);
        let holds = |text: &Finder| text.find(body).is_some();
        let right = (200..300).contains(&head.status)
            && holds(&asked.expected)
            && (asked.kind != Kind::FreshRead || fresh.is_some_and(holds));
        let verdict = if right { Answered::Right } else { Answered::Wrong(shown(&self.received)) };
        self.received.clear();
        self.head = None;
        Ok(Some(verdict))
    }
}

fn shown(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer).chars().take(700).collect()
}
