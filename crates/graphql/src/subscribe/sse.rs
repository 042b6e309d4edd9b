//! The words of `text/event-stream`, as graphql-sse in its distinct connections mode says them.

use std::borrow::Cow;

use bytes::Bytes;

use crate::over_http::response;
use crate::response_error::ResponseError;

/// The data line is needed: browsers dispatch no event without one.
const COMPLETE: &[u8] = b"event: complete\ndata:\n\n";

/// Before the first event: where it starts.
pub fn start(id: &str) -> Bytes {
    format!("id: {id}\n\n").into()
}

/// The block of an event, and where in it the payload begins, which must be on [`one_line`].
pub fn event(id: &str, payload: &[u8]) -> (Bytes, usize) {
    let head = format!("event: next\nid: {id}\ndata: ");
    let block = [head.as_bytes(), payload, b"\n\n"].concat();
    (block.into(), head.len())
}

/// A comment, so that nobody in between takes the silence for death, and the place, so that a client whose filter
/// matches nothing can still come back to where it was.
pub fn heartbeat(id: &str) -> Bytes {
    format!(":\nid: {id}\n\n").into()
}

/// It cannot go on.
pub fn failure(failures: &[ResponseError]) -> Bytes {
    single_event(&response::rejection_body(failures))
}

/// One answer and the end.
pub fn single_event(answer: &[u8]) -> Bytes {
    [b"event: next\ndata: ".as_slice(), &one_line(answer), b"\n\n", COMPLETE].concat().into()
}

/// JSON without line breaks, which would end the line that it stands on. We write none, but a JSON value is passed on as
/// another program stored it. Within a text they are escaped, so that what is left is white space.
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
    fn line_breaks_of_others_do_not_end_a_line() {
        let single = single_event(b"{\r\n\"a\":\n\"\\n\"}");
        assert_eq!(single, &b"event: next\ndata: {  \"a\": \"\\n\"}\n\nevent: complete\ndata:\n\n"[..]);
    }
}
