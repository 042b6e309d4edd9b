//! The text of a request body, decoded by charset and, for JSON, unquoted.

use axum::body::{Body, Bytes};
use encoding_rs::{Encoding, UTF_8};
use futures_util::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;

use trefoil_http::errors::problem::Problem;

/// The text of a plain client's body, of any content type but multipart.
pub fn body_text(headers: &HeaderMap, body: &[u8]) -> Result<String, Problem> {
    let media_type = media_type(headers);
    if media_type.starts_with("multipart/") {
        return Err(unsupported_media("multipart bodies are not supported here; send the text itself"));
    }
    let text = decode_body(headers, body)?;
    if is_json(&media_type) { text_from_json(text) } else { Ok(text) }
}

/// The body decoded by its charset.
pub fn decode_body(headers: &HeaderMap, body: &[u8]) -> Result<String, Problem> {
    decode_charset(content_type(headers).split(';').skip(1).map(str::trim).find_map(charset_parameter), body)
}

/// The header `Content-Type`, or an empty string.
pub fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The content type without its parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    content_type(headers).split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn charset_parameter(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("charset").then_some(value.trim().trim_matches('"'))
}

/// Decodes a body and removes a byte order mark.
fn decode_charset(charset: Option<&str>, body: &[u8]) -> Result<String, Problem> {
    let label = charset.unwrap_or("utf-8");
    let Some(named) = Encoding::for_label(label.as_bytes()) else {
        return Err(unsupported_media(&format!("unknown charset {label:?}; use UTF-8")));
    };
    // A mark overrides the charset only between the two byte orders of UTF-16.
    let (encoding, body) = match Encoding::for_bom(body) {
        Some((marked, mark)) if marked == named || (named != UTF_8 && marked != UTF_8 && is_utf16(named)) => {
            (marked, &body[mark..])
        }
        Some(_) | None => (named, body),
    };
    let is_ascii = ["us-ascii", "ascii"].iter().any(|name| label.eq_ignore_ascii_case(name));
    match encoding.decode_without_bom_handling_and_without_replacement(body) {
        Some(text) if !is_ascii || body.is_ascii() => Ok(text.into_owned()),
        Some(_) | None => {
            Err(Problem::bad_request("MALFORMED_BODY", format!("the body is not valid {label}")))
        }
    }
}

fn is_utf16(encoding: &Encoding) -> bool {
    encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE
}

fn is_json(media_type: &str) -> bool {
    ["application/json", "text/json"].contains(&media_type) || media_type.ends_with("+json")
}

/// The value of a JSON string; an error for an object or array; anything else is plain text.
fn text_from_json(text: String) -> Result<String, Problem> {
    let Ok(value) = serde_json::from_str::<&RawValue>(&text) else { return Ok(text) };
    match value.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(value.get()).map_err(|error| {
            Problem::bad_request("MALFORMED_BODY", format!("the body is not a valid JSON string: {error}"))
        }),
        Some(b'{' | b'[') => {
            let detail = "a list contains texts: send a JSON string or plain text, not an object or array";
            Err(Problem::bad_request("NOT_A_TEXT", detail))
        }
        Some(_) | None => Ok(text),
    }
}

pub fn unsupported_media(detail: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail)
}

/// Reads the whole body, because a connection with unread bytes cannot be reused.
pub async fn read_body(body: Body) -> Result<Bytes, Problem> {
    let body = axum::body::to_bytes(body, usize::MAX).await;
    // If a size or time limit cut the body off, the layers around this handler replace the error by a better one.
    body.map_err(|_| Problem::bad_request("MALFORMED_BODY", "the body is incomplete"))
}

/// Reads and drops a body, because a connection with unread bytes cannot be reused.
pub async fn drain_body(body: Body) {
    let mut body = body.into_data_stream();
    while let Some(Ok(_)) = body.next().await {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(media: &'static str, body: &[u8]) -> Result<String, u16> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static(media))]);
        body_text(&headers, body).map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn content_type_decides_the_decoding() {
        let accepted: &[(&'static str, &[u8], &str)] = &[
            ("", b"milk", "milk"),
            ("text/plain", "Grüße".as_bytes(), "Grüße"),
            ("application/x-www-form-urlencoded", b"a=b&c%20d", "a=b&c%20d"),
            ("application/octet-stream", b"milk", "milk"),
            ("nonsense", b"milk", "milk"),
            ("text/plain; charset=iso-8859-1", b"Gr\xfc\xdfe", "Grüße"),
            ("text/plain; Charset=\"ISO-8859-1\"", b"\xe9", "é"),
            ("text/plain; charset=utf-16", b"\xff\xfem\0\xfc\0", "mü"),
            ("text/plain; charset=utf-16", b"\xfe\xff\0m\0\xfc", "mü"),
            ("text/plain; charset=utf-16be", b"\0m\0\xfc", "mü"),
            ("text/plain; charset=utf-16le", b"m\0\xfc\0", "mü"),
            ("text/plain; charset=shift_jis", b"\x93\xfa", "日"),
            ("text/plain; charset=utf-8", b"\xef\xbb\xbfmilk", "milk"),
            ("application/json", b"\"milk\"", "milk"),
            ("application/json", b" \"gr\\u00fcn \\n\" ", "grün \n"),
            ("application/json; charset=utf-16", b"\xff\xfe\"\0m\0\"\0", "m"),
            ("application/vnd.x+json", b"\"milk\"", "milk"),
            ("application/json", b"milk", "milk"),
            ("application/json", b"42", "42"),
            ("application/json", b"null", "null"),
            ("application/json", b"{half", "{half"),
            ("text/plain", b"\"milk\"", "\"milk\""),
            ("text/plain", b"{}", "{}"),
        ];
        for (media, body, expected) in accepted {
            assert_eq!(read(media, body).as_deref(), Ok(*expected), "{media} {body:?}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let rejected: &[(&'static str, &[u8], u16)] = &[
            ("application/json", b"{\"a\": 1}", 400),
            ("application/json", b" [] ", 400),
            ("application/json", deep.as_bytes(), 400),
            ("application/json", b"\"\\ud800\"", 400),
            ("text/plain", b"\xff", 400),
            ("text/plain; charset=utf-8", b"\xff\xfem\0", 400),
            ("text/plain; charset=us-ascii", b"\xe9", 400),
            ("text/plain; charset=utf-16le", b"m", 400),
            ("text/plain; charset=klingon", b"milk", 415),
            ("multipart/form-data; boundary=x", b"--x--", 415),
            ("Multipart/Mixed", b"", 415),
        ];
        for (media, body, status) in rejected {
            assert_eq!(read(media, body), Err(*status), "{media}");
        }
    }
}
