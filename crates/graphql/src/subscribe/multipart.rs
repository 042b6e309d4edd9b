//! The words of `multipart/mixed;subscriptionSpec=1.0`, as Apollo's clients read them.
//!
//! A client knows a part only by the boundary behind it, so each part ends with that at once. The place stands in a
//! parameter of the part's content type: MIME has readers ignore parameters that they do not know, while a body with
//! anything but `payload` and `errors` in it is an event to some clients, and a further header an error to others.

use bytes::Bytes;

use crate::over_http::response;
use crate::response_error::{self, ResponseError};

pub const CONTENT_TYPE: &str = "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0";

const BOUNDARY: &[u8] = b"\r\n--graphql";
const CLOSING: &[u8] = b"--\r\n";

/// Before the first event: where it starts.
pub fn start(id: &str) -> Bytes {
    [BOUNDARY, &heartbeat(id)].concat().into()
}

pub fn event(id: &str, payload: &[u8]) -> Bytes {
    encode_part(Some(id), &[b"{\"payload\":", payload, b"}"])
}

/// A heartbeat: an empty object, which clients pass over.
pub fn heartbeat(id: &str) -> Bytes {
    encode_part(Some(id), &[b"{}"])
}

/// It cannot go on: what Apollo calls an error of the transport.
pub fn failure(failures: &[ResponseError]) -> Bytes {
    let mut errors = Vec::new();
    response_error::write_errors(&mut errors, failures);
    let part = encode_part(None, &[b"{\"payload\":null,\"errors\":", &errors, b"}"]);
    [&part, CLOSING].concat().into()
}

/// It never began: errors of the request, as the answer to any other request has them.
pub fn rejection(failures: &[ResponseError]) -> Bytes {
    let answer = response::rejection_body(failures);
    [BOUNDARY, &encode_part(None, &[b"{\"payload\":", &answer, b"}"]), CLOSING].concat().into()
}

fn encode_part(id: Option<&str>, body: &[&[u8]]) -> Bytes {
    let place = id.map(|id| format!("; last-event-id=\"{id}\"")).unwrap_or_default();
    let head = format!("\r\ncontent-type: application/json; charset=utf-8{place}\r\n\r\n");
    [head.as_bytes(), &body.concat(), BOUNDARY].concat().into()
}
