//! One event of a subscription in the forms that transports send, each made once for all who get it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{multipart, sse};

/// One answer.
#[derive(Debug)]
pub struct Event {
    /// The change that it tells of.
    pub id: Arc<str>,
    /// As SSE sends it; the answer itself is a part of these bytes.
    block: Bytes,
    /// Where in them.
    payload: (usize, usize),
    part: OnceLock<Bytes>,
}

impl Event {
    /// `payload` is the whole answer: `{"data":…,"extensions":{"eventId":…}}`.
    pub fn new(id: Arc<str>, payload: &[u8]) -> Event {
        let (block, start) = sse::event(&id, payload);
        Event { id, block, payload: (start, start + payload.len()), part: OnceLock::new() }
    }

    /// The answer, the same bytes for everyone who asked the same.
    pub fn payload(&self) -> Bytes {
        self.block.slice(self.payload.0..self.payload.1)
    }

    /// A block of an event stream.
    pub fn block(&self) -> Bytes {
        self.block.clone()
    }

    /// A part of a multipart body.
    pub fn part(&self) -> Bytes {
        self.part.get_or_init(|| multipart::event(&self.id, &self.payload())).clone()
    }

    /// About the bytes it takes.
    pub fn weight(&self) -> usize {
        size_of::<Event>() + self.id.len() + self.block.len() + self.part.get().map_or(0, Bytes::len)
    }
}
