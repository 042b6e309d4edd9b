//! Headers, heartbeat and `Last-Event-ID` handling shared by all streaming responses.

use std::time::Duration;

use axum::response::Response;
use http::header::{CACHE_CONTROL, HeaderName};
use http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::streaming::upgrade::LongLivedBody;

pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Stops nginx from buffering the response.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The event id after which a client resumes. A header that is not text becomes `?`, which is never a valid id, so that
/// the client gets an error.
pub fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or("?"));
    id.filter(|id| !id.is_empty())
}

/// Ticks whenever a heartbeat is due.
pub fn heartbeat_interval(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Forbids proxies to buffer and caches to store the response.
pub fn unbuffered(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// An unbuffered response that lasts as long as its client stays.
pub fn long_lived(response: Response) -> Response {
    let mut response = unbuffered(response);
    response.extensions_mut().insert(LongLivedBody);
    response
}
