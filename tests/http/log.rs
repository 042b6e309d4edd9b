//! The request log: one line per request, with what helps and without secrets.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{request, start, usual};
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Client, Process, command};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic while writing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Lines;

    fn make_writer(&self) -> Lines {
        self.clone()
    }
}

impl Lines {
    fn read(&self) -> Vec<Value> {
        let bytes = self.0.lock().expect("no panic while writing").clone();
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The line of this path, once it has been written.
    async fn of(&self, path: &str) -> Value {
        for _ in 0..200 {
            if let Some(line) = self.read().into_iter().find(|line| line["path"] == path) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no line for {path} in {:?}", self.read())
    }
}

/// The runtime of a test has one thread, so a tracing subscriber of this thread sees its own server and no other.
#[tokio::test]
async fn one_line_per_request_without_secrets() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(lines.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = start(usual()).await;

    server
        .ask("GET /hello?token=hidden|Authorization: Bearer hidden|X-Request-Id: mine", "")
        .await
        .is(200, "Hello");
    server.ask("GET /health/live", "").await.is(200, "ok");
    server.ask("GET /internal", "").await.is(500, "");
    server.ask(&format!("GET /{}", "\u{e4}".repeat(200)), "").await.is(404, "");
    let mut gone = server.connect().await;
    gone.send(request("GET /slow", "")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(gone);

    let hello = lines.of("/hello").await;
    for (name, value) in
        [("method", "GET"), ("request_id", "mine"), ("client", "127.0.0.1"), ("level", "INFO")]
    {
        assert_eq!(hello[name], value, "{hello}");
    }
    assert_eq!((&hello["status"], &hello["bytes"]), (&200.into(), &5.into()));
    assert!(hello["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{hello}");
    assert_eq!(lines.of("/slow").await["status"], 499);
    let cut = format!("/{}", "\u{e4}".repeat(127));
    assert_eq!(lines.of(&cut).await["status"], 404, "cut before the character that goes beyond 256 bytes");
    let failed = lines.of("/internal").await;

    let all = lines.read();
    let about = |id: &Value| all.iter().filter(|line| line["request_id"] == *id).count();
    assert_eq!(
        (about(&"mine".into()), about(&failed["request_id"])),
        (1, 2),
        "its line, and the cause with the same id"
    );
    assert!(all.iter().any(|line| line["cause"] == "the secret cause" && line["level"] == "ERROR"));
    assert!(
        all.iter().all(|line| line["path"] != "/health/live" && !line.to_string().contains("hidden")),
        "{all:?}"
    );
}

/// A server whose log is read as far as to where it listens, and a thousand requests more than a pipe holds lines.
fn asked_much_and_read_little(folder: &Path) -> (Child, impl Iterator<Item = String> + use<>) {
    let arguments = ["--port", "0", "--log-format", "json", "--database", "memory:"];
    let mut child = command(folder, &arguments).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let address = lines.by_ref().find_map(|line| {
        let (_, rest) = line.split_once("listening on http://localhost:")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u16>().ok()
    });
    let mut client = Client::to(([127, 0, 0, 1], address.expect("it listens")).into());
    let path = format!("/hello?{}", "x".repeat(100));
    for _ in 0..1_000 {
        assert_eq!(client.send("GET", &path, &[], b"").status, 200);
    }
    (child, lines)
}

/// The pipe holds some hundred lines; further ones wait for the reader, and no request does.
#[test]
fn unread_log_does_not_block_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, lines) = asked_much_and_read_little(folder.path());
    // As soon as somebody reads again, all of them come.
    let read = lines.filter(|line| line.contains("\"path\":\"/hello\"")).take(1_000).count();
    assert_eq!(read, 1_000);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn unread_log_does_not_block_shutdown() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, _unread) = asked_much_and_read_little(folder.path());
    let sent = Command::new("kill").arg(child.id().to_string()).status();
    assert!(sent.expect("kill runs").success());
    let ended = (0..500).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        child.try_wait().expect("a child of ours")
    });
    if ended.is_none() {
        child.kill().expect("it runs");
    }
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
}

#[test]
fn last_line_is_written_however_the_server_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = Process::start(folder.path(), &["--shutdown-delay", "20s"]);
    server.signal("TERM");
    server.wait_for("stopping");
    server.signal("TERM");
    assert_eq!(server.ended_within(Duration::from_secs(5)).code(), Some(128 + 15));
    server.wait_for("stopped immediately");
}

/// The browser shows a page of another site no reason, so its author looks into this log.
#[tokio::test]
async fn cors_refusal_is_logged_with_the_setting() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(lines.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = start(usual()).await;
    let told = |origin: &str, words: &str| {
        let is_told = |line: &Value| {
            line["origin"] == origin && line["message"].as_str().is_some_and(|text| text.contains(words))
        };
        let all = lines.read();
        assert!(all.iter().any(is_told), "no {words:?} of {origin} in {all:?}");
    };
    server.ask("POST /echo|Origin: https://writes.example", "x").await.is(403, "cors-origins");
    told("https://writes.example", "cors-origins to allow it");
    server
        .ask("GET /hello|Origin: https://reads.example|Sec-Fetch-Site: cross-site", "")
        .await
        .is(200, "Hello");
    told("https://reads.example", "cors-origins to let it read");
    server.ask("OPTIONS /echo|Origin: https://asks.example|Access-Control-Request-Method: PUT", "").await;
    told("https://asks.example", "cors-origins to let it read");
    // Once per origin, not per request.
    for _ in 0..3 {
        server.ask("POST /echo|Origin: https://writes.example", "x").await.is(403, "cors-origins");
        server.ask("GET /hello|Origin: https://reads.example|Sec-Fetch-Site: cross-site", "").await;
    }
    for origin in ["https://writes.example", "https://reads.example"] {
        let all = lines.read();
        assert_eq!(all.iter().filter(|line| line["origin"] == origin).count(), 1, "{all:?}");
    }
    let before = lines.read().len();
    server.ask("GET /hello|Origin: http://localhost", "").await.is(200, "Hello");
    let own = lines.read().split_off(before);
    assert!(own.iter().all(|line| line["origin"].is_null()), "{own:?}");
}

/// A refusal is logged with the setting that lifts it, under the id of its request.
#[tokio::test]
async fn host_and_origin_refusals_have_the_request_id() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(lines.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = start(usual()).await;
    let requests = [
        (
            "GET /hello HTTP/1.1\r\nHost: evil.example\r\nX-Request-Id: by-host\r\n\r\n",
            421,
            "by-host",
            "allowed-hosts",
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: by-origin\r\nOrigin: https://evil.example\r\n\
             Sec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n\r\n",
            403,
            "by-origin",
            "cors-origins",
        ),
    ];
    for (text, status, id, setting) in requests {
        let mut line = server.connect().await;
        line.send(text.to_owned()).await;
        assert_eq!(line.answer().await.status, status, "{id}");
        let logged = lines.read();
        let warning = logged.iter().find(|line| line["level"] == "WARN" && line["request_id"] == id);
        let message = warning.and_then(|line| line["message"].as_str()).unwrap_or_default();
        assert!(message.contains(setting), "{id}: {logged:?}");
    }
}
