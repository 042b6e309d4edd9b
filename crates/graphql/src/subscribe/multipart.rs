//! Encoding of `multipart/mixed;subscriptionSpec=1.0`, as Apollo's clients read it.
//!
//! A client recognises the end of a part by the boundary after it, so each part is sent with its closing boundary. The
//! event id is a parameter of the part's content type: MIME readers ignore unknown parameters, while some clients take a
//! body with keys other than `payload` and `errors` for an event, and others fail on an additional header.

use bytes::Bytes;

use crate::response_error::{self, ResponseError};

pub const CONTENT_TYPE: &str = "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0";

const BOUNDARY: &[u8] = b"\r\n--graphql";
const CLOSING: &[u8] = b"--\r\n";

/// The position before the first event.
pub fn start(id: &str) -> Bytes {
    [BOUNDARY, &heartbeat(id)].concat().into()
}

pub fn event(id: &str, payload: &[u8]) -> Bytes {
    encode_part(Some(id), &[b"{\"payload\":", payload, b"}"])
}

/// An empty object, which clients ignore.
pub fn heartbeat(id: &str) -> Bytes {
    encode_part(Some(id), &[b"{}"])
}

/// The end of a stream that failed: a transport error in Apollo's terms.
pub fn failure(failures: &[ResponseError]) -> Bytes {
    let mut errors = Vec::new();
    response_error::write_errors(&mut errors, failures);
    let part = encode_part(None, &[b"{\"payload\":null,\"errors\":", &errors, b"}"]);
    [&part, CLOSING].concat().into()
}

/// The whole body of a subscription that was rejected: request errors as in any other response.
pub fn rejection(failures: &[ResponseError]) -> Bytes {
    let body = response_error::rejection_body(failures);
    [BOUNDARY, &encode_part(None, &[b"{\"payload\":", &body, b"}"]), CLOSING].concat().into()
}

fn encode_part(id: Option<&str>, body: &[&[u8]]) -> Bytes {
    let parameter = id.map(|id| format!("; last-event-id=\"{id}\"")).unwrap_or_default();
    let head = format!("\r\ncontent-type: application/json; charset=utf-8{parameter}\r\n\r\n");
    [head.as_bytes(), &body.concat(), BOUNDARY].concat().into()
}
