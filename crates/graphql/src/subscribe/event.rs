//! One event of a subscription in the forms that transports send, each made once for all who get it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use trefoil_http::errors::error_log::LogScope;
use trefoil_model::error::Cause;

use crate::subscribe::{multipart, sse};

/// Bytes of a part beside its payload.
const PART_OVERHEAD: usize = 128;

/// One answer.
#[derive(Debug)]
pub struct SubscriptionEvent {
    pub(crate) position: i64,
    /// The change that it tells of.
    pub id: Arc<str>,
    /// The whole answer, `{"data":…,"extensions":{"eventId":…}}`: the same bytes for everyone who asked the same.
    pub payload: Bytes,
    /// As an event stream has it; the payload is a part of these bytes.
    sse_block: Bytes,
    multipart_part: OnceLock<Bytes>,
    /// Of what failed in it …
    causes: Vec<Cause>,
    /// … which one of those who get it tells the log.
    logged: AtomicBool,
}

impl SubscriptionEvent {
    pub fn new(number: i64, id: Arc<str>, payload: &[u8], causes: Vec<Cause>) -> SubscriptionEvent {
        let payload = &*sse::one_line(payload);
        let (block, start) = sse::event(&id, payload);
        let payload = block.slice(start..start + payload.len());
        SubscriptionEvent {
            position: number,
            id,
            payload,
            sse_block: block,
            multipart_part: OnceLock::new(),
            causes,
            logged: AtomicBool::new(false),
        }
    }

    /// Tells the log what failed in it, under the request of the first whom it is sent to.
    pub fn log_causes(&self, scope: LogScope<'_>) {
        if !self.causes.is_empty() && !self.logged.swap(true, Ordering::Relaxed) {
            self.causes.iter().for_each(|cause| scope.cause_of_event(cause, Some(&self.id)));
        }
    }

    /// A block of an event stream.
    pub fn sse_block(&self) -> Bytes {
        self.sse_block.clone()
    }

    /// A part of a multipart body.
    pub fn multipart_part(&self) -> Bytes {
        self.multipart_part.get_or_init(|| multipart::event(&self.id, &self.payload)).clone()
    }

    /// About the most bytes it will ever take: it is asked before anybody wants a part.
    pub fn estimated_bytes(&self) -> usize {
        size_of::<SubscriptionEvent>()
            + self.id.len()
            + self.sse_block.len()
            + self.payload.len()
            + PART_OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_weighs_what_it_will_take_in_every_form() {
        let event = SubscriptionEvent::new(1, "0123456789abcdef-1".into(), &[b'x'; 10_000], Vec::new());
        let weight = event.estimated_bytes();
        assert!(weight >= event.sse_block().len() + event.multipart_part().len());
        assert_eq!(weight, event.estimated_bytes());
    }
}
