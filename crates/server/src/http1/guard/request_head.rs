//! Parses the head of a request: complete or partial, how its body is framed, or why it is refused.
//!
//! hyper parses the head again afterwards, with the same parser. It accepts or repairs heads that two servers in a row
//! could read differently (both `Transfer-Encoding` and `Content-Length`, a repeated `Host`), and refuses others without
//! a message. Here everything ambiguous is refused with a message.

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use http::{StatusCode, Uri};
use httparse::{Header, Request, Status};

use trefoil_config::{SettingSyntax, SizeSyntax};
use trefoil_http::Problem;

use crate::http1::guard::input_state::InputState;

/// hyper's limits.
const MAX_HEADERS: usize = 100;
const MAX_TARGET_BYTES: usize = u16::MAX as usize - 1;
const MAX_BODY_BYTES: u64 = u64::MAX - 2;

/// The result of parsing the bytes received so far.
#[derive(Debug)]
pub enum ParsedHead {
    Partial,
    /// The length of the head, and what follows it.
    Complete {
        length: usize,
        body: InputState,
    },
    Refused(Box<Problem>),
}

/// Parses a head of at most `limit` bytes.
pub fn parse_head(bytes: &[u8], limit: usize) -> ParsedHead {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = Request::new(&mut []);
    let result = match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(length)) if length > limit => Err(head_too_large(limit)),
        Ok(Status::Complete(length)) => {
            check_request(&request).map(|body| ParsedHead::Complete { length, body })
        }
        Ok(Status::Partial) if bytes.len() >= limit => Err(head_too_large(limit)),
        Ok(Status::Partial) => Ok(ParsedHead::Partial),
        Err(error) => Err(parse_problem(error, bytes)),
    };
    result.unwrap_or_else(|problem| ParsedHead::Refused(Box::new(problem.closing_connection())))
}

fn head_too_large(limit: usize) -> Problem {
    let detail =
        format!("the request line and headers are larger than {} (limits.headers)", SizeSyntax::show(&limit));
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADERS_TOO_LARGE", detail)
}

fn parse_problem(error: httparse::Error, head: &[u8]) -> Problem {
    if is_tls_hello(head) {
        return malformed_request("this port speaks HTTP without TLS; use http://");
    }
    let what = match error {
        httparse::Error::TooManyHeaders => {
            let detail = format!("more than {MAX_HEADERS} header fields");
            return Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADERS_TOO_LARGE", detail);
        }
        httparse::Error::Version if has_version(head) => {
            let detail = "only HTTP/1.1 and HTTP/1.0 are supported";
            return Problem::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "HTTP_VERSION", detail);
        }
        httparse::Error::HeaderName => "a header name is malformed (or a line is folded)",
        httparse::Error::HeaderValue => "a header value contains an invalid character",
        httparse::Error::NewLine => "a line ends with a carriage return but no line feed",
        httparse::Error::Token | httparse::Error::Status | httparse::Error::Version => {
            "the request line is not a method, a target and a version"
        }
    };
    malformed_request(what)
}

/// Whether the bytes begin as a TLS client does: a record of a handshake.
pub fn is_tls_hello(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x16, 0x03])
}

/// Whether the request line ends with a version after a method and a target.
fn has_version(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let version = line.split(|byte| *byte == b' ').nth(2);
    version.is_some_and(|version| version.starts_with(b"HTTP/"))
}

fn malformed_request(what: &str) -> Problem {
    Problem::bad_request("MALFORMED_REQUEST", what)
}

fn check_request(request: &Request<'_, '_>) -> Result<InputState, Problem> {
    let is_http_11 = request.version == Some(1);
    let host = single_header(request.headers, "host", "Host")?;
    match host {
        None if is_http_11 => return Err(malformed_request("the Host header is missing")),
        Some(host) if !is_host(host) => return Err(malformed_request("the Host header is invalid")),
        Some(_) | None => (),
    }
    check_target(request.method.unwrap_or(""), request.path.unwrap_or(""), host)?;
    body_start(request.headers, is_http_11)
}

/// The value of a header that may appear only once.
fn single_header<'b>(fields: &[Header<'b>], name: &str, shown: &str) -> Result<Option<&'b [u8]>, Problem> {
    let mut values = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    let first = values.next().map(|field| field.value);
    match values.next() {
        Some(_) => Err(malformed_request(&format!("duplicate {shown} header"))),
        None => Ok(first),
    }
}

fn body_start(fields: &[Header<'_>], is_http_11: bool) -> Result<InputState, Problem> {
    let length = single_header(fields, "content-length", "Content-Length")?;
    let coding = single_header(fields, "transfer-encoding", "Transfer-Encoding")?;
    if length.is_some() || coding.is_some() {
        single_header(fields, "content-type", "Content-Type")?;
    }
    match (length, coding) {
        (None, None) => Ok(InputState::Length(0)),
        (Some(_), Some(_)) => {
            Err(malformed_request("Content-Length and Transfer-Encoding cannot be used together"))
        }
        (None, Some(_)) if !is_http_11 => {
            Err(malformed_request("Transfer-Encoding is not allowed in HTTP/1.0"))
        }
        (None, Some(coding)) if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            Ok(InputState::ChunkSize)
        }
        (None, Some(_)) => {
            Err(malformed_request("unsupported Transfer-Encoding; only `chunked` is supported"))
        }
        (Some(length), None) => match parse_length(length) {
            Some(length) => Ok(InputState::Length(length)),
            None => Err(malformed_request("Content-Length is not a number of bytes")),
        },
    }
}

/// Digits only: `+5`, `5, 5` and numbers that do not fit are invalid.
fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)?
        .parse()
        .ok()
        .filter(|length| *length <= MAX_BODY_BYTES)
}

fn check_target(method: &str, target: &str, host: Option<&[u8]>) -> Result<(), Problem> {
    if target.len() > MAX_TARGET_BYTES {
        let detail = format!("the request target is longer than {MAX_TARGET_BYTES} bytes");
        return Err(Problem::new(StatusCode::URI_TOO_LONG, "HEADERS_TOO_LARGE", detail));
    }
    if target.starts_with('/') && target.bytes().all(is_plain_target_byte) {
        return Ok(());
    }
    // hyper would refuse these without a message.
    if target.contains('#') {
        return Err(malformed_request(
            "the request target has a fragment (#), which a client keeps to itself",
        ));
    }
    let Ok(uri) = Uri::try_from(target) else {
        return Err(malformed_request(
            "the request target contains a character that must be percent-encoded",
        ));
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str()).as_bytes();
    match (uri.scheme_str(), host) {
        (None, _) if target.starts_with('/') || (target == "*" && method == "OPTIONS") => Ok(()),
        (Some("http" | "https"), Some(host)) if host.eq_ignore_ascii_case(authority) => Ok(()),
        (Some("http" | "https"), None) if is_host(authority) => Ok(()),
        (Some("http" | "https"), Some(_)) => {
            Err(malformed_request("the request target and the Host header name different hosts"))
        }
        (Some("http" | "https"), None) => Err(malformed_request("the request target has no host")),
        (Some(_) | None, _) => Err(malformed_request("the request target must be a path or an http URL")),
    }
}

/// Whether `http::Uri` accepts the byte everywhere in a path and query.
fn is_plain_target_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/?&=-_.~%+,:;@!$'()*".contains(&byte)
}

/// Such as `example.org`, `localhost:8080`, `[::1]:80`.
fn is_host(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => ("", port),
        Some(_) => return false,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let bracketed = host.starts_with('[');
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&b);
    let is_name = bracketed || (!name.is_empty() && name.bytes().all(allowed));
    is_name && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_port(digits: &str) -> bool {
    digits.is_empty() || (digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok())
}

/// A valid request in place of the refused one, with the same method, path and `Accept` where those are safe.
pub fn substitute_head(refused: &[u8]) -> Vec<u8> {
    let mut lines = refused.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut line = lines.next().unwrap_or(b"").split(|byte| *byte == b' ');
    let method = line.next().filter(|method| is_usual_method(method)).unwrap_or(b"GET");
    let path = line.next().filter(|path| is_plain_path(path)).unwrap_or(b"/");
    let accept = lines.find(|line| is_plain_accept(line)).unwrap_or(b"accept: */*");
    let parts: [&[u8]; 6] =
        [method, b" ", path, b" HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n", accept, b"\r\n\r\n"];
    parts.concat()
}

fn is_usual_method(method: &[u8]) -> bool {
    [&b"GET"[..], b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"].contains(&method)
}

fn is_plain_path(path: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.~%".contains(byte);
    path.starts_with(b"/") && path.len() <= 1024 && path.iter().all(plain)
}

fn is_plain_accept(line: &[u8]) -> bool {
    let named = line.get(..7).is_some_and(|name| name.eq_ignore_ascii_case(b"accept:"));
    named && line.len() <= 1024 && line.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: &str) {
        let actual = match parse_head(head.as_bytes(), 1000) {
            ParsedHead::Partial => "partial".to_owned(),
            ParsedHead::Complete { body: InputState::Length(length), .. } => format!("length {length}"),
            ParsedHead::Complete { body, .. } => format!("{body:?}"),
            ParsedHead::Refused(problem) => format!("{} {}", problem.status.as_u16(), problem.detail),
        };
        assert!(actual.starts_with(expected), "{head:?} is {actual:?}, not {expected:?}");
    }

    #[test]
    fn body_framing_is_found_or_refused() {
        let table = [
            ("", "length 0"),
            ("Content-Length: 5\r\n", "length 5"),
            ("content-length: 18446744073709551613\r\n", "length 18446744073709551613"),
            ("Transfer-Encoding: Chunked\r\n", "ChunkSize"),
            ("Transfer-Encoding: chunked, chunked\r\n", "400 unsupported Transfer-Encoding"),
            ("Transfer-Encoding: gzip, chunked\r\n", "400 unsupported Transfer-Encoding"),
            ("Transfer-Encoding: xchunked\r\n", "400 unsupported Transfer-Encoding"),
            ("Transfer-Encoding: identity\r\n", "400 unsupported Transfer-Encoding"),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "400 duplicate Transfer-Encoding header",
            ),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                "400 Content-Length and Transfer-Encoding",
            ),
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                "400 Content-Length and Transfer-Encoding",
            ),
            ("Content-Length: 5\r\nContent-Length: 5\r\n", "400 duplicate Content-Length header"),
            (
                "Content-Length: 5\r\nContent-Type: text/plain\r\ncontent-type: text/html\r\n",
                "400 duplicate Content-Type header",
            ),
            ("Content-Length: 5, 5\r\n", "400 Content-Length is not a number"),
            ("Content-Length: +5\r\n", "400 Content-Length is not a number"),
            ("Content-Length: -1\r\n", "400 Content-Length is not a number"),
            ("Content-Length: 0x5\r\n", "400 Content-Length is not a number"),
            ("Content-Length:\r\n", "400 Content-Length is not a number"),
            ("Content-Length: 18446744073709551614\r\n", "400 Content-Length is not a number"),
            ("X : a\r\n", "400 a header name"),
            ("X: a\r\n b\r\n", "400 a header name"),
            ("X: a\0b\r\n", "400 a header value"),
            (": a\r\n", "400 a header name"),
        ];
        for (fields, expected) in table {
            check(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"), expected);
        }
    }

    #[test]
    fn host_is_required_once_and_valid() {
        let good = ["a", "a.example:80", "127.0.0.1", "[::1]", "[::1]:8080", "a:"];
        let bad = ["", "a b", "a/b", "user@a", "a:b", "a:99999", "[::1", "[x]", "a:80:80", "ä"];
        for host in good {
            check(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "length 0");
        }
        for host in bad {
            check(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "400 the Host header is invalid");
        }
        check("GET / HTTP/1.1\r\n\r\n", "400 the Host header is missing");
        check("GET / HTTP/1.0\r\n\r\n", "length 0");
        check("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "400 duplicate Host header");
    }

    #[test]
    fn target_is_path_or_own_url() {
        let table = [
            ("GET /a?b=c HTTP/1.1", "length 0"),
            ("OPTIONS * HTTP/1.1", "length 0"),
            ("GET * HTTP/1.1", "400 the request target must be a path"),
            ("GET http://A/x HTTP/1.1", "length 0"),
            ("GET HTTP://a HTTP/1.1", "length 0"),
            ("GET http://b/x HTTP/1.1", "400 the request target and the Host"),
            ("GET ftp://a/x HTTP/1.1", "400 the request target must be a path"),
            ("CONNECT a:80 HTTP/1.1", "400 the request target must be a path"),
            ("GET /a<b HTTP/1.1", "400 the request target contains"),
            ("GET /a\"b HTTP/1.1", "length 0"),
            ("GET /?a\"b HTTP/1.1", "400 the request target contains"),
            ("GET /a b HTTP/1.1", "400 the request line"),
            ("GET /#a HTTP/1.1", "400 the request target has a fragment"),
            ("GET / HTTP/2.0", "505"),
            ("PRI * HTTP/2.0", "505"),
            ("GET /", "400 the request line"),
            ("G(T / HTTP/1.1", "400 the request line"),
        ];
        for (line, expected) in table {
            check(&format!("{line}\r\nHost: a\r\n\r\n"), expected);
        }
    }

    #[test]
    fn size_and_header_count_are_limited() {
        check("GET / HT", "partial");
        check(&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(1000)), "431");
        check(&format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(1000)), "431");
        check(&format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a:\r\n".repeat(100)), "431 more than 100");
    }

    #[test]
    fn substitute_head_is_always_valid() {
        let table: [(&[u8], &str); 5] = [
            (b"", "GET / "),
            (b"POST /graphql HTTP/1.1\r\nHost: a\r\nHost: b\r\nAccept: a/b\r\n\r\n", "POST /graphql "),
            (b"GET /a\x01b HTTP/1.1\r\nAccept: a\x00\r\n\r\n", "GET / "),
            (b"CONNECT a:80 HTTP/1.1\r\n\r\n", "GET / "),
            (b"\xff\xfe\n\n", "GET / "),
        ];
        for (refused, start) in table {
            let head = substitute_head(refused);
            assert!(head.starts_with(start.as_bytes()), "{}", head.escape_ascii());
            let parsed = parse_head(&head, 4096);
            assert!(
                matches!(parsed, ParsedHead::Complete { length, .. } if length == head.len()),
                "{parsed:?}"
            );
        }
    }
}
