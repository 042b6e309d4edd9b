//! A real server in this process and a plain HTTP client for it.

mod process;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil::config::{Config, Database};

pub use process::{Process, command};

/// A server on a free port, with its data in memory or in a folder; stopped when dropped.
pub struct Server {
    pub address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// The sample, in memory.
    pub fn sample() -> Server {
        Server::start(Trefoil::sample(), Config { database: Database::Memory, ..Config::default() })
    }

    pub fn start(trefoil: Trefoil, config: Config) -> Server {
        let (ready, address) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let config = Config { port: 0, host: "127.0.0.1".into(), ..config };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async move {
                let running = trefoil.config(config).start().await.expect("the server starts");
                ready.send(running.addresses[0]).expect("the test waits");
                let _ = stopped.await;
                running.stop().await;
            });
        });
        let address = address.recv().expect("the server listens");
        Server { address, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One kept-alive connection.
pub struct Client {
    stream: BufReader<TcpStream>,
    host: String,
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
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
        // Head and body are two writes: without this the second waits 40 ms for the first to be acknowledged.
        stream.set_nodelay(true).expect("no delay");
        Client { stream: BufReader::new(stream), host: address.to_string() }
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        request += "\r\n";
        self.stream.get_mut().write_all(request.as_bytes()).expect("sent");
        self.stream.get_mut().write_all(body).expect("sent");
        self.receive(method)
    }

    /// The server has closed, and said nothing more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0))
    }

    fn receive(&mut self, method: &str) -> Reply {
        let status_line = self.line();
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut reply = Reply { status, headers: Vec::new(), body: Vec::new() };
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            reply.headers.push((name.to_owned(), value.trim().to_owned()));
        }
        if method == "HEAD" || status == 204 || status == 304 {
            return reply;
        }
        if let Some(length) = reply.header("content-length").and_then(|length| length.parse().ok()) {
            reply.body = vec![0; length];
            self.stream.read_exact(&mut reply.body).expect("a whole body");
        } else if reply.header("transfer-encoding").is_some() {
            self.chunks(&mut reply.body);
        }
        reply
    }

    fn chunks(&mut self, body: &mut Vec<u8>) {
        loop {
            let size = usize::from_str_radix(self.line().trim(), 16).expect("a chunk size");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).expect("a whole chunk");
            if size == 0 {
                return;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
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
