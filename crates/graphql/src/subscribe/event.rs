//! One event of a subscription in the encodings of all transports, each made once for all subscribers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use trefoil_engine::RecordImage;
use trefoil_engine::changes::{CommonVerdict, EventAccess, MemorySize};
use trefoil_http::errors::error_log::LogScope;
use trefoil_model::error::ErrorSource;

use crate::subscribe::{multipart, sse};

/// Bytes of a multipart part without its payload.
const PART_OVERHEAD: usize = 128;

/// One response of a subscription.
#[derive(Debug)]
pub struct SubscriptionEvent {
    pub(crate) position: i64,
    /// The id of the change.
    pub id: Arc<str>,
    /// The whole response, `{"data":…,"extensions":{"eventId":…}}`.
    pub payload: Bytes,
    /// The block of an event stream; `payload` is a slice of it.
    sse_block: Bytes,
    multipart_part: OnceLock<Bytes>,
    /// The image that tells who may see the event, where subscribers of several classes share it.
    image: Option<RecordImage>,
    common_verdict: CommonVerdict,
    /// The causes of its errors …
    causes: Vec<ErrorSource>,
    /// … and whether they were logged: only the first delivery logs them.
    logged: AtomicBool,
}

impl SubscriptionEvent {
    pub fn new(position: i64, id: Arc<str>, payload: &[u8], causes: Vec<ErrorSource>) -> SubscriptionEvent {
        let payload = &*sse::one_line(payload);
        let (sse_block, start) = sse::event(&id, payload);
        let payload = sse_block.slice(start..start + payload.len());
        SubscriptionEvent {
            position,
            id,
            payload,
            sse_block,
            multipart_part: OnceLock::new(),
            image: None,
            common_verdict: CommonVerdict::default(),
            causes,
            logged: AtomicBool::new(false),
        }
    }

    /// The same for subscribers of several classes, where there is an image to judge it by.
    pub(crate) fn with_image(self, image: Option<RecordImage>) -> SubscriptionEvent {
        SubscriptionEvent { image, ..self }
    }

    /// Whether a subscriber may see it. Without an image only those who may share it.
    pub(crate) fn is_for(&self, access: Option<&EventAccess>) -> bool {
        match (&self.image, access) {
            (None, None) => true,
            (Some(image), Some(access)) => access.allows(image, &self.common_verdict),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Logs the causes of its errors once, under the request of the first subscriber.
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

    /// An upper estimate, since the multipart encoding is only made later.
    pub fn estimated_bytes(&self) -> usize {
        size_of::<SubscriptionEvent>()
            + self.id.len()
            + self.sse_block.len()
            + self.payload.len()
            + PART_OVERHEAD
            + self.image.as_ref().map_or(0, MemorySize::memory_size)
    }
}

/// The events of a range of the log.
pub struct EventBatch {
    pub events: Vec<Arc<SubscriptionEvent>>,
    /// The last change number of the range.
    pub until: i64,
    /// The event id of `until`.
    pub id: Arc<str>,
    /// The schema was swapped: later events must be taken from a channel of the new one.
    pub schema_changed: bool,
}

impl MemorySize for EventBatch {
    fn memory_size(&self) -> usize {
        self.events.iter().map(|event| event.estimated_bytes() + 32).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimated_bytes_cover_all_encodings() {
        let event = SubscriptionEvent::new(1, "0123456789abcdef-1".into(), &[b'x'; 10_000], Vec::new());
        let estimate = event.estimated_bytes();
        assert!(estimate >= event.sse_block().len() + event.multipart_part().len());
        assert_eq!(estimate, event.estimated_bytes());
    }
}
