//! The log: one line a request, with what helps and without what is secret.

use std::io;
use std::sync::{Arc, Mutex};

use super::{request, start, usual};
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

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
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no line for {path} in {:?}", self.read())
    }
}

/// The runtime of a test has one thread, so a subscriber for this thread sees all and only its own server.
#[tokio::test]
async fn one_line_a_request_and_nothing_secret() {
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
    let mut gone = server.connect().await;
    gone.send(request("GET /slow", "")).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
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
