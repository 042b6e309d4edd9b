//! Ambiguous or malformed requests: refused with the reason, and the connection is closed.

use super::{request, start, usual};

async fn refused(head: &str, status: u16, words: &str) {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send(head).await;
    let answer = line.answer().await;
    answer.is(status, words);
    assert_eq!(answer.field("connection"), Some("close"), "{head}");
    assert!(
        answer.field("x-request-id").is_some() && answer.field("content-security-policy").is_some(),
        "{head}"
    );
    assert!(line.is_closed().await, "{head}");
}

#[tokio::test]
async fn malformed_framing_is_400() {
    let table = [
        ("Transfer-Encoding: chunked, chunked", "only `chunked`"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3", "Content-Length and Transfer-Encoding cannot"),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", "Content-Length and Transfer-Encoding cannot"),
        ("Content-Length: 3\r\nContent-Length: 3", "duplicate Content-Length header"),
        ("Content-Length: 3\r\nContent-Length: 4", "duplicate Content-Length header"),
        ("Content-Length: three", "Content-Length is not a number"),
        ("Content-Length: 18446744073709551615", "Content-Length is not a number"),
        ("Host: b", "duplicate Host header"),
        ("Bad Name: x", "a header name is malformed"),
    ];
    for (field, words) in table {
        let head = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n0\r\n\r\n");
        refused(&head, 400, words).await;
    }
}

#[tokio::test]
async fn malformed_request_heads_are_refused() {
    refused("GET /hello HTTP/1.1\r\n\r\n", 400, "the Host header is missing").await;
    refused("GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "Host header is invalid").await;
    refused("GET http://b/hello HTTP/1.1\r\nHost: a\r\n\r\n", 400, "different hosts").await;
    refused("GET hello HTTP/1.1\r\nHost: a\r\n\r\n", 400, "must be a path or an http URL").await;
    refused("GET /hello?a\"b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "must be percent-encoded").await;
    refused("\rGET /hello HTTP/1.1\r\nHost: a\r\n\r\n", 400, "a carriage return but no line feed").await;
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1").await;
    refused("GET /hello x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "not a method, a target and a version").await;
    refused("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", 400, "has a fragment (#)").await;
    // Without the end of a line: a client of TLS waits for the answer.
    refused("\u{16}\u{3}\u{1} hello", 400, "HTTP without TLS").await;
}

/// The error of a refused request follows its `Accept` header like any other.
#[tokio::test]
async fn malformed_request_error_follows_accept() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send("POST /graphql HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").await;
    assert_eq!(line.answer().await.json()["errors"][0]["extensions"]["code"], "MALFORMED_REQUEST");
    let mut line = server.connect().await;
    line.send("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\nAccept: application/json\r\n\r\n").await;
    assert_eq!(line.answer().await.json()["status"], 400);
}

#[tokio::test]
async fn malformed_or_unfinished_body_is_400() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    line.answer().await.is(400, "its chunks are malformed");
    assert!(line.is_closed().await);
}

/// A request hidden behind the end of a body is a second request, not part of the first.
#[tokio::test]
async fn pipelined_request_follows_a_body() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n";
    line.send(
        [chunked, &request("POST /echo", "second"), &request("GET /hello", ""), "GET / HTTP/1.1\r\n\r\n"]
            .concat(),
    )
    .await;
    line.answer().await.is(200, "abc");
    line.answer().await.is(200, "second");
    line.answer().await.is(200, "Hello");
    line.answer().await.is(400, "the Host header is missing");
    assert!(line.is_closed().await);
}

#[tokio::test]
async fn request_may_arrive_byte_by_byte() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    let text = "\r\n".to_owned() + &request("POST /echo", "body");
    for byte in text.bytes() {
        line.send([byte]).await;
    }
    line.answer().await.is(200, "body");
}

#[tokio::test]
async fn http_1_0_and_absolute_urls_are_served() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    line.send("GET /hello HTTP/1.0\r\n\r\n").await;
    line.answer().await.is(200, "Hello");
    assert!(line.is_closed().await);
    let mut line = server.connect().await;
    line.send("GET http://a/hello HTTP/1.1\r\nHost: A\r\n\r\n").await;
    line.answer().await.is(200, "Hello");
}

#[tokio::test]
async fn upgrade_to_an_unknown_protocol_is_ignored() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    for _ in 0..2 {
        line.send(request(
            "GET /hello|Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: AAMA",
            "",
        ))
        .await;
        line.answer().await.is(200, "Hello");
    }
}

/// What a chunked body says, by the letter of RFC 9112, and what follows it; None when it is malformed or unfinished.
fn decoded(mut bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let line = take_line(&mut bytes)?;
        let size = line.split(|byte| *byte == b';').next()?;
        let digits = size.trim_ascii_end();
        let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) && !line.contains(&b'\n');
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| plain)?, 16).ok()?;
        if size == 0 {
            break;
        }
        body.extend_from_slice(bytes.get(..size)?);
        bytes = bytes.get(size..)?.strip_prefix(b"\r\n")?;
    }
    loop {
        match take_line(&mut bytes)? {
            b"" => return Some((body, bytes)),
            trailer if is_field(trailer) => (),
            _ => return None,
        }
    }
}

fn is_field(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let token = colon > 0 && line[..colon].iter().all(u8::is_ascii_alphanumeric);
    token && !line.contains(&0)
}

/// A line ends in CR LF, and neither is anywhere else in it.
fn take_line<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let (line, rest) = bytes.split_at(end);
    *bytes = rest.strip_prefix(b"\r\n")?;
    Some(line)
}

/// The end of a body is found twice, by Trefoil and by hyper. If they ever differed, a request could hide in a body.
#[tokio::test]
async fn damaged_chunks_cannot_smuggle_a_request() {
    let server = start(usual()).await;
    let valid = "4;a=b\r\nWiki\r\n6\r\npedia \r\n0E \r\nin \r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\n";
    let next = request("GET /hello", "");
    let spare = b"\r\n 09afAG;:x\0";
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let mut whole = 0;
    for _ in 0..400 {
        let mut body = valid.as_bytes().to_vec();
        for _ in 0..random(3) {
            let (at, byte) = (random(body.len()), spare[random(spare.len())]);
            match random(3) {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                _ => drop(body.remove(at)),
            }
        }
        let expected = decoded(&body).map(|(said, rest)| (said, rest.to_vec()));
        let mut line = server.connect().await;
        line.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        line.send([&body, next.as_bytes()].concat()).await;
        tokio::io::AsyncWriteExt::shutdown(&mut line.0).await.expect("half closed");
        let answer = line.answer().await;
        match expected {
            Some((said, rest)) => {
                assert_eq!((answer.status, &answer.body), (200, &said), "{}", body.escape_ascii());
                if rest.is_empty() {
                    whole += 1;
                    line.answer().await.is(200, "Hello");
                }
            }
            None => assert_eq!(answer.status, 400, "{}", body.escape_ascii()),
        }
    }
    assert!((100..300).contains(&whole), "{whole} of 400 were whole: the damage is too little or too much");
}
