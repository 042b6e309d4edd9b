//! The log line of a subscription: written when it ends, with the time it was open.

use std::time::Duration;

use serde_json::Value;

use super::{Body, shake_at};
use crate::support::Process;

/// Milliseconds of the first line that has these words.
fn ms(process: &Process, words: &[&str]) -> f64 {
    let log = process.log();
    let line = log.lines().find(|line| words.iter().all(|word| line.contains(word)));
    let line: Value =
        serde_json::from_str(line.unwrap_or_else(|| panic!("{words:?} in\n{log}"))).expect("JSON");
    let fields = line.get("fields").unwrap_or(&line);
    fields["ms"].as_f64().unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn sse_stream_is_logged_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(folder.path(), &["--database", "memory:"]);
    let path = "/graphql?query=subscription%7BuserCreated%7Bid%7D%7D";
    let mut body = Body::at(process.address, "GET", path, &[("Accept", "text/event-stream")], "");
    body.take("\n\n");
    std::thread::sleep(Duration::from_millis(300));
    assert!(!process.log().contains("\"/graphql\""), "not before its end");
    drop(body);
    process.wait_for("\"/graphql\"");
    assert!(ms(&process, &["\"/graphql\""]) >= 300.0);
}

#[tokio::test]
async fn websocket_is_logged_with_close_code_and_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let process =
        Process::start(folder.path(), &["--database", "memory:", "--limit-socket-init-timeout", "300ms"]);
    let headers = [("sec-websocket-protocol", "graphql-transport-ws"), ("x-request-id", "mine-7")];
    let (mut line, _) = shake_at(process.address, &headers).await.expect("the handshake");
    assert_eq!(line.closed().await.0, 4408);
    process.wait_for("socket closed");
    assert!(ms(&process, &["socket closed", "4408", "limits.socket-init-timeout", "mine-7"]) >= 300.0);
}
