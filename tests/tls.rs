//! TLS ends in the server: real clients (curl, openssl) speak HTTPS with it, and its certificate is renewed while it runs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::postgres::Certificates;
use crate::support::{Process, command};

const SERVE: [&str; 8] =
    ["serve", "--database", "memory:", "--tls-cert", "server.crt", "--tls-key", "server.key", "--hsts=1h"];

fn start(folder: &Path) -> (Certificates, Process) {
    let certificates = Certificates::make(folder);
    (certificates, Process::start(folder, &SERVE))
}

/// What curl says to `https://localhost` with these arguments, with the head of the answer.
fn curl(folder: &Path, process: &Process, path: &str, arguments: &[&str]) -> String {
    let url = format!("https://localhost:{}{path}", process.address.port());
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--include", "--max-time", "20", "--ipv4", "--cacert", "ca.crt"]);
    let output = curl.args(arguments).arg(url).current_dir(folder).output().expect("curl runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What `openssl s_client` receives after these bytes, until it has said `words`.
fn exchange(folder: &Path, process: &Process, sent: &str, words: &str) -> String {
    let target = format!("127.0.0.1:{}", process.address.port());
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-CAfile", "ca.crt", "-verify_return_error", "-connect", &target])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    client.stdin.as_mut().expect("piped").write_all(sent.as_bytes()).expect("sent");
    let mut received = String::new();
    let mut output = client.stdout.take().expect("piped");
    let mut block = [0; 4096];
    while !received.contains(words) {
        let count = output.read(&mut block).expect("readable");
        assert!(count > 0, "it ended with {received:?}");
        received += &String::from_utf8_lossy(&block[..count]);
    }
    let _ = client.kill();
    let _ = client.wait();
    received
}

#[test]
fn every_face_is_served_over_both_versions_of_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, process) = start(folder.path());
    assert!(process.log().contains("listening on https://localhost:"), "{}", process.log());
    for version in [&["--tlsv1.2", "--tls-max", "1.2"][..], &["--tlsv1.3"]] {
        let answer = curl(folder.path(), &process, "/hello", version);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Hello"), "{version:?}: {answer}");
        assert!(answer.contains("strict-transport-security: max-age=3600\r\n"), "{answer}");
    }
    // The client would speak it: only the server's alert ends the handshake.
    let target = format!("127.0.0.1:{}", process.address.port());
    for (version, is_refused) in [("-tls1_1", true), ("-tls1_2", false)] {
        let client = Command::new("openssl")
            .args(["s_client", version, "-cipher", "DEFAULT@SECLEVEL=0", "-connect", &target])
            .stdin(Stdio::null())
            .output()
            .expect("openssl runs");
        let errors = String::from_utf8_lossy(&client.stderr).into_owned();
        assert_eq!(errors.contains("SSL alert number"), is_refused, "{version}: {errors}");
    }
    let query = r#"{"query": "{ getUserById(id: 1) { name } }"}"#;
    let answer = curl(folder.path(), &process, "/graphql", &["--json", query]);
    assert!(answer.contains(r#""getUserById":{"name":"#), "{answer}");
    // Addresses and cookies are those of HTTPS.
    let page = curl(folder.path(), &process, "/users", &["--header", "accept: text/html"]);
    let own = format!("https://localhost:{}/users", process.address.port());
    assert!(page.contains(&own) && !page.contains(&own.replace("https", "http")), "{page}");
    let form = ["--header", "accept: text/html", "--data", "name=Ann&email=ann@example.com"];
    let answer = curl(folder.path(), &process, "/users", &form);
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("SameSite=Lax; Secure"), "{answer}");
}

#[test]
fn streams_and_sockets_run_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, process) = start(folder.path());
    let stream = "GET /users HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    exchange(folder.path(), &process, stream, "text/event-stream");
    let socket = "GET /graphql HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                  Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n";
    let answer = exchange(folder.path(), &process, socket, "\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 101") && answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        "{answer}"
    );
}

#[test]
fn plain_http_and_silence_on_the_tls_port_end_soon() {
    let folder = tempfile::tempdir().expect("a folder");
    Certificates::make(folder.path());
    let process = Process::start(folder.path(), &[&SERVE[..], &["--limit-header-timeout", "1s"]].concat());
    let reply = process.client().send("GET", "/hello", &[], b"");
    assert_eq!((reply.status, reply.text().trim()), (400, "this port speaks HTTP over TLS; use https://"));
    let mut silent = TcpStream::connect(process.address).expect("it listens");
    silent.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let begin = Instant::now();
    assert_eq!(silent.read(&mut [0; 16]).expect("closed, not reset"), 0);
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let answer = curl(folder.path(), &process, "/hello", &[]);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_renewed_certificate_is_served_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificates, process) = start(folder.path());
    let old_authority = fs::read(&certificates.authority).expect("a file");
    fs::write(&certificates.certificate, "no certificate").expect("written");
    process.wait_for("it has no certificate in PEM");
    assert!(process.log().contains("still serving the previous certificate"), "{}", process.log());
    assert!(curl(folder.path(), &process, "/hello", &[]).contains("Hello"));

    // The new certificate has another authority, which the old one is not good for.
    Certificates::make(folder.path());
    process.wait_for("reloaded the TLS certificate");
    assert!(curl(folder.path(), &process, "/hello", &[]).contains("Hello"));
    fs::write(&certificates.authority, old_authority).expect("written");
    let refused = curl(folder.path(), &process, "/hello", &[]);
    assert!(refused.contains("curl: (60)"), "{refused}");
}

#[test]
fn unusable_files_are_named_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    Certificates::make(folder.path());
    fs::write(folder.path().join("text"), "no PEM").expect("written");
    for (flags, words) in [
        (&["--tls-cert", "server.crt"][..], "tls-cert needs tls-key"),
        (&["--tls-key", "server.key"], "tls-key needs tls-cert"),
        (&["--tls-cert", "absent", "--tls-key", "server.key"], "cannot use tls-cert absent"),
        (&["--tls-cert", "text", "--tls-key", "server.key"], "it has no certificate in PEM"),
        (&["--tls-cert", "server.crt", "--tls-key", "text"], "it has no private key in PEM"),
        (&["--tls-cert", "server.crt", "--tls-key", "ca.key"], "it is not the key of the certificate"),
    ] {
        let arguments = [&["serve", "--database", "memory:", "--port", "0"][..], flags].concat();
        let output = command(folder.path(), &arguments).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{flags:?}: {said}");
    }
}
