//! The event stream of a REST collection: nothing missed, nothing twice, from an id or after a snapshot.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};

use crate::support::{Client, Server};

/// An open stream, block by block.
struct Events {
    stream: BufReader<TcpStream>,
    pending: String,
}

#[derive(Debug, Default, PartialEq)]
struct Block {
    event: String,
    id: String,
    data: String,
}

impl Block {
    fn record(&self) -> Value {
        serde_json::from_str(&self.data).expect("JSON")
    }
}

impl Events {
    fn open(server: &Server, path: &str, last: Option<&str>) -> Events {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(40))).expect("a timeout");
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{last}\r\n")
            .expect("sent");
        let mut events = Events { stream: BufReader::new(stream), pending: String::new() };
        assert!(events.line().contains(" 200 "));
        let mut media = false;
        loop {
            let line = events.line();
            media |= line.eq_ignore_ascii_case("content-type: text/event-stream; charset=utf-8");
            if line.is_empty() {
                break;
            }
        }
        assert!(media, "the stream says what it is");
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// The next block that is no sign of life.
    fn next(&mut self) -> Block {
        loop {
            if let Some((text, rest)) = self.pending.split_once("\n\n") {
                let mut block = Block::default();
                let alive = text.starts_with(':');
                for line in text.lines() {
                    let (name, value) = line.split_once(':').expect("a field");
                    let place = match name {
                        "event" => &mut block.event,
                        "id" => &mut block.id,
                        "data" => &mut block.data,
                        _ => continue,
                    };
                    *place = value.trim_start().to_owned();
                }
                self.pending = rest.to_owned();
                if !alive {
                    return block;
                }
                continue;
            }
            let size = usize::from_str_radix(&self.line(), 16).expect("a chunk");
            assert!(size > 0, "the stream ended");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).expect("a chunk");
            self.pending += std::str::from_utf8(&chunk[..size]).expect("UTF-8");
        }
    }
}

fn create(client: &mut Client, name: &str) -> Value {
    let body = json!({ "name": name, "email": "" }).to_string();
    let reply = client.send("POST", "/users", &[("Content-Type", "application/json")], body.as_bytes());
    assert_eq!(reply.status, 201);
    reply.json()
}

#[test]
fn resume_replays_missed_events_once() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let mut events = Events::open(&server, "/users", None);
    let start = events.next();
    assert!(start.event.is_empty() && start.data.is_empty() && !start.id.is_empty(), "{start:?}");
    let ida = create(&mut client, "Ida");
    // Only what the schema subscribes to.
    client.send("PATCH", "/users/8", &[("Content-Type", "application/json")], br#"{"name": "Ida R."}"#);
    client.send("POST", "/users", &[("Content-Type", "text/plain")], b"Eva");
    let first = events.next();
    assert_eq!((first.event.as_str(), first.record()), ("created", ida));
    let second = events.next();
    assert_eq!(second.record(), json!({ "id": "9", "name": "Eva", "email": "" }));
    drop(events);
    create(&mut client, "Uma");
    for (last, missed) in
        [(&first.id, &["9", "10"][..]), (&second.id, &["10"]), (&start.id, &["8", "9", "10"])]
    {
        let mut again = Events::open(&server, "/users?fields=id", Some(last));
        assert_eq!(again.next(), Block { id: last.clone(), ..Block::default() });
        for id in missed {
            assert_eq!(again.next().record(), json!({ "id": id }));
        }
    }
}

#[test]
fn unknown_event_id_sends_a_reset() {
    let server = Server::sample();
    for (path, last, shown) in
        [("/users", "00000000-5", 0), ("/users?snapshot=true&fields=id", "00000000-5", 8), ("/users", "ü", 0)]
    {
        let mut events = Events::open(&server, path, Some(last));
        let reset = events.next();
        assert_eq!(
            (reset.event.as_str(), reset.record()["code"].as_str()),
            ("reset", Some("EVENT_ID_UNKNOWN"))
        );
        for id in 1..=shown {
            assert_eq!(events.next().record(), json!({ "id": id.to_string() }));
        }
        let start = events.next();
        assert!(!start.id.is_empty());
        let made = create(&mut Client::of(&server), "Ida");
        let event = events.next();
        assert_eq!((event.event.as_str(), &event.record()["id"]), ("created", &made["id"]));
    }
}

#[test]
fn snapshot_then_live_has_no_gap_and_no_duplicate() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config {
        data: folder.path().join("data"),
        database: DatabaseLocation::Embedded,
        ..Config::default()
    };
    let server = Server::start(Trefoil::sample(), config);
    let mut client = Client::of(&server);
    let many: Vec<Value> = (0..2_000).map(|i| json!({ "name": format!("u{i}"), "email": "" })).collect();
    let body = json!(many).to_string();
    assert_eq!(
        client.send("POST", "/users", &[("Content-Type", "application/json")], body.as_bytes()).status,
        201
    );
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let mut client = Client::of(&server);
            std::thread::spawn(move || {
                for turn in 0..60 {
                    create(&mut client, &format!("w{writer}-{turn}"));
                }
            })
        })
        .collect();
    let followers: Vec<_> = (0..3)
        .map(|_| {
            let mut events = Events::open(&server, "/users?snapshot=true&fields=id", None);
            std::thread::spawn(move || {
                let (mut seen, mut live) = (HashMap::new(), false);
                while seen.len() < 2_187 {
                    let block = events.next();
                    match (block.event.as_str(), live) {
                        ("live", false) => live = true,
                        ("snapshot", false) | ("created", true) => {
                            let id = block.record()["id"].as_str().expect("an id").to_owned();
                            *seen.entry(id).or_insert(0) += 1;
                        }
                        other => panic!("{other:?}"),
                    }
                }
                seen.values().all(|count| *count == 1)
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("no failure");
    }
    for follower in followers {
        assert!(follower.join().expect("no failure"), "each user once");
    }
}

#[test]
fn sse_needs_a_subscription_in_the_schema() {
    let server = Server::sample();
    let mut client = Client::of(&server);
    let stream = [("Accept", "text/event-stream")];
    for (path, status) in [
        ("/products", 406),
        ("/users/1", 406),
        ("/users/1/orders", 406),
        ("/items", 200),
        ("/users?page=1", 400),
        ("/users?snapshot=yes", 400),
        ("/users?snapshot=true&name=x", 400),
    ] {
        assert_eq!(client.send("GET", path, &stream, b"").status, status, "{path}");
    }
    assert_eq!(client.send("HEAD", "/users", &stream, b"").status, 200);
}

#[test]
fn shutdown_ends_sse_streams() {
    let server = Server::sample();
    let mut events = Events::open(&server, "/users", None);
    events.next();
    let began = std::time::Instant::now();
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let mut rest = String::new();
    let _ = events.stream.read_to_string(&mut rest);
    assert_eq!(rest, "0\r\n\r\n");
}
