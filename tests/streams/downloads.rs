//! A long download stops when its credential ends, and cannot be taken for a whole one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::site::StreamSite;
use crate::support::Process;

/// More than sockets hold.
const PAGES: usize = 3_000;
const LETTERS: usize = 10_000;

fn begin(server: &Process, path: &str, credential: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {credential}\r\n", server.address);
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("the server reads");
    let mut part = [0; 4_096];
    stream.read_exact(&mut part).expect("a beginning");
    assert!(part.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&part));
    stream
}

/// How much more comes, and whether it ends as a whole body does.
fn rest(mut stream: TcpStream) -> (usize, bool) {
    let mut rest = Vec::new();
    // A connection that is reset has ended, too.
    let _ = stream.read_to_end(&mut rest);
    (rest.len(), rest.ends_with(b"\r\n0\r\n\r\n"))
}

#[test]
fn downloads_stop_when_their_credential_ends() {
    for site in StreamSite::both() {
        let server = site.serve();
        let pages = if site.is_postgres() {
            format!("INSERT INTO pages (text) SELECT repeat('x', {LETTERS}) FROM generate_series(1, {PAGES})")
        } else {
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {PAGES}) \
                 INSERT INTO pages (text) SELECT replace(hex(zeroblob({LETTERS} / 2)), '0', 'x') FROM n"
            )
        };
        assert_eq!(site.sql(&pages), "");
        for path in ["/pages?format=ndjson", "/pages?format=csv"] {
            let key = site.key("reader", &["--role", "EDITOR"]);
            let (length, is_whole) = rest(begin(&server, path, &key));
            assert!(is_whole && length > PAGES * LETTERS, "{path}: {length}");
            let stream = begin(&server, path, &key);
            site.revoke("reader");
            std::thread::sleep(Duration::from_millis(1_500));
            let (length, is_whole) = rest(stream);
            assert!(!is_whole && length < PAGES * LETTERS, "{path}: {length} of {}", PAGES * LETTERS);
        }
    }
}
