//! What all answers that go on have in common, whichever face gives them: how they pass, show life, and are come back to.

use std::time::Duration;

use axum::response::Response;
use http::header::{CACHE_CONTROL, HeaderName};
use http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::streaming::upgrade::LongLivedBody;

pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// nginx gathers a response before it passes it on, unless it is told not to.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Where a client comes back to. What is no text is no id that was ever given, which the client must learn.
pub fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or("?"));
    id.filter(|id| !id.is_empty())
}

/// Ticks whenever a sign of life is due.
pub fn heartbeat_interval(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Nobody on the way gathers or keeps it.
pub fn unbuffered(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The same for as long as its client stays.
pub fn long_lived(response: Response) -> Response {
    let mut response = unbuffered(response);
    response.extensions_mut().insert(LongLivedBody);
    response
}
