//! Names and values in queries and forms: strict decoding of `name=value&…` and of multipart.

use std::borrow::Cow;

use http::StatusCode;
use memchr::memmem;

use crate::errors::problem::Problem;

/// In their original order; names may repeat.
pub type FormPairs = Vec<(String, String)>;

/// Decodes `name=value&…`. `what` names the input in errors: "the query", "the form".
pub fn parse_urlencoded(text: &str, what: &str) -> Result<FormPairs, Problem> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((percent_decode(name)?.into_owned(), percent_decode(value)?.into_owned()))
    };
    let malformed = || {
        let detail = format!(
            "{what} is malformed: each % must be followed by two hexadecimal digits, and the result must be UTF-8"
        );
        Problem::bad_request(if what == "the query" { "MALFORMED_QUERY" } else { "MALFORMED_BODY" }, detail)
    };
    parts.map(|part| pair(part).ok_or_else(malformed)).collect()
}

/// The names that can be decoded; others are skipped.
pub fn readable_names(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split('&').filter_map(|part| percent_decode(part.split_once('=').map_or(part, |(name, _)| name)))
}

/// Decodes `%` and `+`, or returns `None` if that is not possible.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => 16 * hex_digit(rest.next()?)? + hex_digit(rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Encodes a value for a query.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~,".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Parses `multipart/form-data`. A file is refused, since records have no file fields; a file control that was left
/// empty is skipped. By hand, because `multer` takes a boundary in the middle of a line for one and has one error for all that is cut off.
pub fn parse_multipart(content_type: &str, body: &[u8]) -> Result<FormPairs, Problem> {
    let malformed =
        |reason: &str| Problem::bad_request("MALFORMED_BODY", format!("the multipart body {reason}"));
    let boundary =
        header_parameter(content_type, "boundary").filter(|boundary| (1..=70).contains(&boundary.len()));
    let boundary = boundary.ok_or_else(|| malformed("has no boundary"))?;
    let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
    // Every delimiter starts with a line end, which the first one in the body lacks.
    let body = [b"\r\n", body].concat();
    let mut rest =
        after_match(&body, &delimiter).ok_or_else(|| malformed("does not contain its boundary"))?;
    let mut pairs = FormPairs::new();
    while !rest.starts_with(b"--") {
        let part = after_match(rest, b"\r\n").ok_or_else(|| malformed("ends after a boundary"))?;
        let end =
            memmem::find(part, &delimiter).ok_or_else(|| malformed("ends without the closing boundary"))?;
        match parse_part(&part[..end]).ok_or_else(|| malformed("has a malformed part"))? {
            FormPart::Text(name, text) => pairs.push((name, text)),
            FormPart::EmptyFile => {}
            FormPart::File(name) => return Err(file_problem(&name)),
        }
        rest = &part[end + delimiter.len()..];
    }
    Ok(pairs)
}

fn file_problem(name: &str) -> Problem {
    let detail = format!("`{name}` is a file, and records cannot hold files; send its value as text");
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
}

/// A part of a multipart form.
enum FormPart {
    Text(String, String),
    /// The name of a part with a file.
    File(String),
    /// What browsers send for a file control without a file.
    EmptyFile,
}

/// `None` if the part is malformed.
fn parse_part(part: &[u8]) -> Option<FormPart> {
    let (head, content) = match part.strip_prefix(b"\r\n") {
        Some(content) => (&b""[..], content),
        None => {
            let end = memmem::find(part, b"\r\n\r\n")?;
            (&part[..end], &part[end + 4..])
        }
    };
    let head = std::str::from_utf8(head).ok()?;
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let name = header_parameter(disposition, "name")?;
    let name = name.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n");
    Some(match header_parameter(disposition, "filename") {
        Some(file) if file.is_empty() && content.is_empty() => FormPart::EmptyFile,
        Some(_) => FormPart::File(name),
        None => FormPart::Text(name, String::from_utf8(content.to_vec()).ok()?),
    })
}

/// A parameter of a header such as `form-data; name="a"`.
fn header_parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header.split_once(';')?.1;
    loop {
        let (parameter, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (text, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if parameter.trim().trim_start_matches(';').trim().eq_ignore_ascii_case(name) {
            return Some(text.trim().to_owned());
        }
        rest = after;
    }
}

fn after_match<'b>(bytes: &'b [u8], pattern: &[u8]) -> Option<&'b [u8]> {
    memmem::find(bytes, pattern).map(|at| &bytes[at + pattern.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> FormPairs {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn urlencoded_round_trips_and_rejects_malformed() {
        let read = |text: &str| parse_urlencoded(text, "the query").ok();
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(read("a=1&&b&c=%C3%BC+%26%3d"), Some(pairs(&[("a", "1"), ("b", ""), ("c", "ü &=")])));
        assert_eq!(read("a=b=c&a=2"), Some(pairs(&[("a", "b=c"), ("a", "2")])));
        for wrong in ["a=%", "a=%4", "a=%zz", "%ff=1", "a=%C3", "a=%+1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        for text in ["Grüße & 100%", "a+b=c", "\0\n"] {
            assert_eq!(read(&format!("x={}", percent_encode(text))), Some(pairs(&[("x", text)])));
        }
    }

    #[test]
    fn multipart_form_is_parsed() {
        let media = "multipart/form-data; boundary=\"x y\"";
        let body = "preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nü\r\n2\r\n--x y\r\n\
                    content-type: text/plain\r\nCONTENT-DISPOSITION: form-data;name=b%22\r\n\r\n\r\n--x y\r\n\
                    Content-Disposition: form-data; name=\"f\"; filename=\"\"\r\n\r\n\r\n--x y--\r\nepilogue";
        let found = parse_multipart(media, body.as_bytes()).ok();
        assert_eq!(found, Some(pairs(&[("a", "ü\r\n2"), ("b\"", "")])));
        for (from, to) in
            [("filename=\"\"", "filename=\"n\""), ("\r\n\r\n\r\n--x y--", "\r\n\r\n1\r\n--x y--")]
        {
            let refused = parse_multipart(media, body.replace(from, to).as_bytes());
            assert_eq!(refused.err().map(|problem| problem.status.as_u16()), Some(415), "{to}");
        }
        assert_eq!(parse_multipart("multipart/form-data; boundary=b", b"--b--").ok(), Some(vec![]));
    }

    #[test]
    fn malformed_multipart_is_rejected() {
        let part = b"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
        let is_rejected =
            |end: &[u8]| parse_multipart("multipart/form-data; boundary=b", &[part, end].concat()).is_err();
        assert!(
            is_rejected(b"text")
                && is_rejected(b"\xff\r\n--b--")
                && is_rejected(b"x\r\n--b")
                && is_rejected(b"x\r\n--b\r\n\r\n--b--")
        );
        for media in
            ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"b"]
        {
            assert!(parse_multipart(media, b"--b--").is_err(), "{media}");
        }
        assert!(parse_multipart("multipart/form-data; boundary=b", b"nothing").is_err());
    }
}
