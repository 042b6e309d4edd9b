//! Parses the head of a request: complete or partial, how its body is framed, or why it is refused.
//!
//! hyper parses the head again afterwards. It accepts or repairs heads that two servers in a row could read differently
//! (both `Transfer-Encoding` and `Content-Length`, a repeated `Host`), and refuses others without a message. Here
//! everything ambiguous is refused with a message.

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use http::StatusCode;
use httparse::{Header, Request, Status};

use trefoil_config::{SettingSyntax, SizeSyntax};
use trefoil_http::Problem;

/// The same as hyper's limit.
const MAX_HEADERS: usize = 100;

/// The result of parsing the bytes received so far.
#[derive(Debug)]
pub enum ParsedHead {
    Partial,
    Complete { length: usize, framing: BodyFraming },
    Refused(Box<Problem>),
}

/// How the end of the body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    Length(u64),
    Chunked,
}

/// Parses a head of at most `limit` bytes.
pub fn parse_head(bytes: &[u8], limit: usize) -> ParsedHead {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = Request::new(&mut []);
    let result = match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(length)) if length > limit => Err(head_too_large(limit)),
        Ok(Status::Complete(length)) => {
            check_request(&request).map(|framing| ParsedHead::Complete { length, framing })
        }
        Ok(Status::Partial) if bytes.len() >= limit => Err(head_too_large(limit)),
        Ok(Status::Partial) => Ok(ParsedHead::Partial),
        Err(error) => Err(parse_problem(error)),
    };
    result.unwrap_or_else(|problem| ParsedHead::Refused(Box::new(problem.closing_connection())))
}

fn head_too_large(limit: usize) -> Problem {
    let detail =
        format!("the request line and headers are larger than {} (limits.headers)", SizeSyntax::show(&limit));
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADERS_TOO_LARGE", detail)
}

fn parse_problem(error: httparse::Error) -> Problem {
    let what = match error {
        httparse::Error::TooManyHeaders => {
            let detail = format!("more than {MAX_HEADERS} header fields");
            return Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADERS_TOO_LARGE", detail);
        }
        httparse::Error::Version => {
            let detail = "only HTTP/1.1 and HTTP/1.0 are supported";
            return Problem::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "HTTP_VERSION", detail);
        }
        httparse::Error::HeaderName => "a header name is malformed (or a line is folded)",
        httparse::Error::HeaderValue => "a header value contains an invalid character",
        httparse::Error::NewLine => "a line ends with a carriage return but no line feed",
        httparse::Error::Token | httparse::Error::Status => "the request line is malformed",
    };
    malformed_request(what)
}

fn malformed_request(what: &str) -> Problem {
    Problem::bad_request("MALFORMED_REQUEST", what)
}

fn check_request(request: &Request<'_, '_>) -> Result<BodyFraming, Problem> {
    let is_http_11 = request.version == Some(1);
    let host = single_header(request.headers, "host", "Host")?;
    match host {
        None if is_http_11 => return Err(malformed_request("the Host header is missing")),
        Some(host) if !is_host(host) => return Err(malformed_request("the Host header is invalid")),
        Some(_) | None => (),
    }
    check_target(request.method.unwrap_or(""), request.path.unwrap_or(""), host)?;
    body_framing(request.headers, is_http_11)
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

fn body_framing(fields: &[Header<'_>], is_http_11: bool) -> Result<BodyFraming, Problem> {
    let length = single_header(fields, "content-length", "Content-Length")?;
    let coding = single_header(fields, "transfer-encoding", "Transfer-Encoding")?;
    if length.is_some() || coding.is_some() {
        single_header(fields, "content-type", "Content-Type")?;
    }
    match (length, coding) {
        (None, None) => Ok(BodyFraming::Length(0)),
        (Some(_), Some(_)) => {
            Err(malformed_request("Content-Length and Transfer-Encoding cannot be used together"))
        }
        (None, Some(_)) if !is_http_11 => {
            Err(malformed_request("Transfer-Encoding is not allowed in HTTP/1.0"))
        }
        (None, Some(coding)) if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            Ok(BodyFraming::Chunked)
        }
        (None, Some(_)) => {
            Err(malformed_request("unsupported Transfer-Encoding; only `chunked` is supported"))
        }
        (Some(length), None) => match parse_length(length) {
            Some(length) => Ok(BodyFraming::Length(length)),
            None => Err(malformed_request("Content-Length is not a number of bytes")),
        },
    }
}

/// Digits only: `+5`, `5, 5` and numbers that do not fit are invalid.
fn parse_length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

fn check_target(method: &str, target: &str, host: Option<&[u8]>) -> Result<(), Problem> {
    // These are refused by `http::Uri`; refusing them here means that hyper never has to.
    if target.bytes().any(|b| b"<>\\^`".contains(&b)) {
        return Err(malformed_request(
            "the request target contains a character that must be percent-encoded",
        ));
    }
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok(());
    }
    let scheme_end =
        target.find("://").filter(|end| ["http", "https"].contains(&&*target[..*end].to_ascii_lowercase()));
    let Some(end) = scheme_end else {
        return Err(malformed_request("the request target must be a path or an http URL"));
    };
    let authority = target[end + 3..].split(['/', '?', '#']).next().unwrap_or("");
    match host {
        Some(host) if !host.eq_ignore_ascii_case(authority.as_bytes()) => {
            Err(malformed_request("the request target and the Host header name different hosts"))
        }
        Some(_) => Ok(()),
        None if is_host(authority.as_bytes()) => Ok(()),
        None => Err(malformed_request("the request target has no host")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: &str) {
        let actual = match parse_head(head.as_bytes(), 1000) {
            ParsedHead::Partial => "partial".to_owned(),
            ParsedHead::Complete { framing: BodyFraming::Length(length), .. } => format!("length {length}"),
            ParsedHead::Complete { framing: BodyFraming::Chunked, .. } => "chunked".to_owned(),
            ParsedHead::Refused(problem) => format!("{} {}", problem.status.as_u16(), problem.detail),
        };
        assert!(actual.starts_with(expected), "{head:?} is {actual:?}, not {expected:?}");
    }

    #[test]
    fn body_framing_is_found_or_refused() {
        let table = [
            ("", "length 0"),
            ("Content-Length: 5\r\n", "length 5"),
            ("content-length: 18446744073709551615\r\n", "length 18446744073709551615"),
            ("Transfer-Encoding: Chunked\r\n", "chunked"),
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
            ("Content-Length: 18446744073709551616\r\n", "400 Content-Length is not a number"),
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
            ("GET /a b HTTP/1.1", "505"),
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
}
