//! The words of `text/event-stream`, as graphql-sse in its distinct connections mode says them.

use bytes::Bytes;

use crate::faces::graphql::failure::Failure;
use crate::faces::graphql::response;

/// The data line is needed: browsers dispatch no event without one.
const COMPLETE: &[u8] = b"event: complete\ndata:\n\n";

/// Before the first event: where it starts.
pub fn start(id: &str) -> Bytes {
    format!("id: {id}\n\n").into()
}

/// The block of an event, and where in it the payload begins. JSON as we write it has no line breaks.
pub fn event(id: &str, payload: &[u8]) -> (Bytes, usize) {
    let head = format!("event: next\nid: {id}\ndata: ");
    let block = [head.as_bytes(), payload, b"\n\n"].concat();
    (block.into(), head.len())
}

/// A comment, so that nobody in between takes the silence for death, and the place, so that a client whose filter
/// matches nothing can still come back to where it was.
pub fn beat(id: &str) -> Bytes {
    format!(":\nid: {id}\n\n").into()
}

/// It cannot go on.
pub fn failed(failures: &[Failure]) -> Bytes {
    single(&response::rejection(failures))
}

/// One answer and the end.
pub fn single(answer: &[u8]) -> Bytes {
    [b"event: next\ndata: ", answer, b"\n\n", COMPLETE].concat().into()
}
