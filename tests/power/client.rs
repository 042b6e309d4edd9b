//! A client that hides nothing: one kept connection, one request at a time, and the answer as it came.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

pub struct Client {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// What an answer to a mutation says became of it.
#[derive(Debug)]
pub enum Verdict {
    Done(Value),
    /// The store cannot take it now, said the way the contract wants it.
    Unavailable,
    /// Anything else, which no test here expects.
    Odd(String),
}

impl Client {
    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        Ok(Client { address, stream: BufReader::new(stream) })
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }

    /// A GraphQL request, with an Idempotency-Key when one is given.
    pub fn graphql(&mut self, query: &str, variables: Value, key: Option<&str>) -> io::Result<Answer> {
        let body = json!({"query": query, "variables": variables}).to_string();
        let key = key.map_or(String::new(), |key| format!("Idempotency-Key: \"{key}\"\r\n"));
        self.ask(&format!(
            "POST /graphql HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\n{key}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        ))
    }

    fn ask(&mut self, request: &str) -> io::Result<Answer> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer =
            Answer { status: status.ok_or(io::ErrorKind::InvalidData)?, headers, body: String::new() };
        answer.body = self.body(&answer)?;
        if answer.header("connection") == Some("close") {
            *self = Client::connect(self.address)?;
        }
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn body(&mut self, answer: &Answer) -> io::Result<String> {
        let mut body = Vec::new();
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = self.line()?;
                let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk)?;
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        } else {
            let size = answer.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            body.resize(size, 0);
            self.stream.read_exact(&mut body)?;
        }
        String::from_utf8(body).map_err(io::Error::other)
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Reads the answer to a request for the one root field `field`. Only data without an error counts as done.
    pub fn verdict(&self, field: &str) -> Verdict {
        let json: Value = serde_json::from_str(&self.body).unwrap_or(Value::Null);
        let value = &json["data"][field];
        if self.status == 200 && json.get("errors").is_none() && !value.is_null() {
            return Verdict::Done(value.clone());
        }
        let code = json["errors"][0]["extensions"]["code"].as_str();
        let unavailable =
            self.status == 503 && self.header("retry-after").is_some() || code == Some("UNAVAILABLE");
        if unavailable && value.is_null() {
            return Verdict::Unavailable;
        }
        Verdict::Odd(format!("{} {}", self.status, self.body))
    }
}
