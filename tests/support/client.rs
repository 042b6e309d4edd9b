//! A plain HTTP client that hides nothing: one kept connection, one request at a time, the raw response.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::Server;

pub struct Client {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    /// The server said that it closes: the next request needs a new connection.
    closing: bool,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a header that may be there several times.
    pub fn headers_named(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

impl Client {
    pub fn of(server: &Server) -> Client {
        Client::to(server.address)
    }

    pub fn to(address: SocketAddr) -> Client {
        Client::connect(address).expect("the server listens")
    }

    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        Ok(Client { address, stream: BufReader::new(stream), closing: false })
    }

    /// How long an answer is waited for.
    pub fn patience(&mut self, limit: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(limit))
    }

    /// A request to a server that is there.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.ask(method, path, headers, body).expect("an answer")
    }

    /// The same, but what comes in chunks is read only until it is enough. No other request can follow such an answer.
    pub fn send_until(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
        enough: impl Fn(&Reply) -> bool,
    ) -> Reply {
        self.request(method, path, headers, body).expect("a connection");
        self.receive(method, enough).expect("an answer")
    }

    /// A request to a server that may be gone.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Reply> {
        self.request(method, path, headers, body)?;
        self.receive(method, |_| false)
    }

    fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        if self.closing {
            *self = Client::connect(self.address)?;
        }
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        self.stream.get_mut().write_all(&[request.as_bytes(), b"\r\n", body].concat())
    }

    /// The server has closed, and said nothing more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
    }

    fn receive(&mut self, method: &str, enough: impl Fn(&Reply) -> bool) -> io::Result<Reply> {
        let status = self.line()?.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut reply = Reply { status, headers: Vec::new(), body: Vec::new() };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            reply.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        self.closing = reply.header("connection") == Some("close");
        if method == "HEAD" || status == 204 || status == 304 {
            return Ok(reply);
        }
        if let Some(length) = reply.header("content-length").and_then(|length| length.parse().ok()) {
            reply.body.resize(length, 0);
            self.stream.read_exact(&mut reply.body)?;
        } else if reply.header("transfer-encoding").is_some() {
            self.chunks(&mut reply, enough)?;
        }
        Ok(reply)
    }

    fn chunks(&mut self, reply: &mut Reply, enough: impl Fn(&Reply) -> bool) -> io::Result<()> {
        while !enough(reply) {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            if size == 0 {
                return Ok(());
            }
            reply.body.extend_from_slice(&chunk[..size]);
        }
        Ok(())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Sends a document and gives the whole answer.
    pub fn graphql(&mut self, query: &str) -> Value {
        self.graphql_with(query, json!({}))
    }

    pub fn graphql_with(&mut self, query: &str, variables: Value) -> Value {
        let body = json!({ "query": query, "variables": variables }).to_string();
        let headers = [("Content-Type", "application/json"), ("Accept", "application/graphql-response+json")];
        self.send("POST", "/graphql", &headers, body.as_bytes()).json()
    }
}
