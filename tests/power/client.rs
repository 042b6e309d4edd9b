//! The requests of a writer under power cuts, and how it judges their responses.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support;
pub use crate::support::Reply;

pub struct Client(support::Client);

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
        support::Client::connect(address).map(Client)
    }

    /// Waits no longer than this for an answer.
    pub fn patient_for(mut self, limit: Duration) -> io::Result<Client> {
        self.0.patience(limit).map(|()| self)
    }

    pub fn get(&mut self, path: &str) -> io::Result<Reply> {
        self.0.ask("GET", path, &[], b"")
    }

    /// As whoever has this cookie.
    pub fn get_as(&mut self, path: &str, cookie: &str) -> io::Result<Reply> {
        self.0.ask("GET", path, &[("Cookie", cookie), ("Accept", "application/json")], b"")
    }

    /// A form as a browser sends it, with a cookie if there is one.
    pub fn form(&mut self, path: &str, cookie: &str, body: &str) -> io::Result<Reply> {
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "text/html"),
            ("Cookie", cookie),
        ];
        let count = if cookie.is_empty() { 2 } else { 3 };
        self.0.ask("POST", path, &headers[..count], body.as_bytes())
    }

    /// A GraphQL request, with an Idempotency-Key when one is given.
    pub fn graphql(&mut self, query: &str, variables: Value, key: Option<&str>) -> io::Result<Reply> {
        let body = json!({"query": query, "variables": variables}).to_string();
        let key = key.map(|key| format!("\"{key}\""));
        let mut headers = vec![("Content-Type", "application/json"), ("Accept", "application/json")];
        headers.extend(key.iter().map(|key| ("Idempotency-Key", key.as_str())));
        self.0.ask("POST", "/graphql", &headers, body.as_bytes())
    }
}

impl Reply {
    /// Reads the answer to a request for the one root field `field`. Only data without an error counts as done.
    pub fn verdict(&self, field: &str) -> Verdict {
        let json: Value = serde_json::from_slice(&self.body).unwrap_or(Value::Null);
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
        Verdict::Odd(format!("{} {}", self.status, self.text()))
    }
}
