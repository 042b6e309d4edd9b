//! Encoding of `text/event-stream`, by the distinct connections mode of graphql-sse.

use std::borrow::Cow;

use bytes::Bytes;

use crate::response_error::{ResponseError, rejection_body};

/// The data line is required: browsers do not dispatch an event without one.
const COMPLETE: &[u8] = b"event: complete\ndata:\n\n";

/// The position before the first event.
pub fn start(id: &str) -> Bytes {
    format!("id: {id}\n\n").into()
}

/// The block of an event and the offset of its payload, which must be on [`one_line`].
pub fn event(id: &str, payload: &[u8]) -> (Bytes, usize) {
    let head = format!("event: next\nid: {id}\ndata: ");
    let block = [head.as_bytes(), payload, b"\n\n"].concat();
    (block.into(), head.len())
}

/// A comment, so that proxies do not close an idle connection, and the position, so that a client whose filter matches
/// nothing can still resume from it.
pub fn heartbeat(id: &str) -> Bytes {
    format!(":\nid: {id}\n\n").into()
}

/// The end of a stream that failed.
pub fn failure(failures: &[ResponseError]) -> Bytes {
    single_event(&rejection_body(failures))
}

/// A single response and the end of the stream.
pub fn single_event(response_body: &[u8]) -> Bytes {
    [b"event: next\ndata: ".as_slice(), &one_line(response_body), b"\n\n", COMPLETE].concat().into()
}

/// JSON without line breaks, which would end the `data` line. Only JSON values stored by other programs contain any,
/// and only as white space: within strings they are escaped.
pub fn one_line(json: &[u8]) -> Cow<'_, [u8]> {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !json.iter().any(is_break) {
        return Cow::Borrowed(json);
    }
    json.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_in_json_become_spaces() {
        let single = single_event(b"{\r\n\"a\":\n\"\\n\"}");
        assert_eq!(single, &b"event: next\ndata: {  \"a\": \"\\n\"}\n\nevent: complete\ndata:\n\n"[..]);
    }
}
