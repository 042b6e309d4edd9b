//! The access log: one line and one measurement per request, when its response has ended or its client has gone.

use std::borrow::Cow;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request};
use http::{Method, StatusCode, Uri};
use http_body::{Body as _, Frame, SizeHint};

use trefoil_engine::ActorIdentity;
use trefoil_model::error::error_chain;

use crate::client_info::ClientInfo;
use crate::monitoring::health::is_probe;
use crate::monitoring::metrics::Metrics;
use crate::monitoring::refusals::RequestRefusals;
use crate::response_headers::RequestId;

/// The client left before the response; nginx's status for it, used in logs and metrics only.
const CLIENT_GONE_STATUS: u16 = 499;

/// Longer paths are cut in the log.
const MAX_PATH_BYTES: usize = 256;

/// The route template that matched, filled in by the router and read by the access log.
#[derive(Clone, Default)]
pub(crate) struct MatchedRoute(Arc<OnceLock<MatchedPath>>);

impl MatchedRoute {
    pub(crate) fn set(&self, path: &MatchedPath) {
        let _ = self.0.set(path.clone());
    }

    fn path(&self) -> Option<&str> {
        self.0.get().map(MatchedPath::as_str)
    }
}

/// The route label of a request in metrics.
pub(crate) enum LoggedRoute {
    Known(Cow<'static, str>),
    /// Filled in by the router.
    Matched(MatchedRoute),
}

impl LoggedRoute {
    fn name(&self) -> Option<&str> {
        match self {
            LoggedRoute::Known(name) => Some(name),
            LoggedRoute::Matched(matched) => matched.path(),
        }
    }
}

/// The log entry of one request. Dropping it writes the line, so that requests are logged however they end.
pub(crate) struct AccessLog {
    metrics: Arc<Metrics>,
    received_at: Instant,
    method: Method,
    /// The query string is never logged: it may contain secrets.
    uri: Uri,
    route: LoggedRoute,
    id: RequestId,
    client: Option<IpAddr>,
    /// Who asked, unless nobody is known.
    pub(crate) actor: Option<Arc<ActorIdentity>>,
    /// What was refused of the request.
    pub(crate) refusals: Option<RequestRefusals>,
    status: Option<StatusCode>,
    bytes: u64,
}

impl AccessLog {
    pub(crate) fn new(
        request: &Request,
        received_at: Instant,
        route: LoggedRoute,
        id: &RequestId,
        client: &ClientInfo,
        metrics: &Arc<Metrics>,
    ) -> Self {
        metrics.active_requests.inc();
        AccessLog {
            metrics: metrics.clone(),
            received_at,
            method: request.method().clone(),
            uri: request.uri().clone(),
            route,
            id: id.clone(),
            client: client.address,
            actor: None,
            refusals: None,
            status: None,
            bytes: 0,
        }
    }

    /// Moves the log entry into the body.
    pub(crate) fn attach_body(mut self, status: StatusCode, body: Body) -> LoggedBody {
        self.status = Some(status);
        if body.size_hint().exact().is_none() {
            // A stream may last for days, and the URI is a slice that keeps the whole request head in memory.
            self.uri = Uri::try_from(self.uri.path().to_owned()).unwrap_or_default();
        }
        LoggedBody { body, access_log: self }
    }

    /// The status is already sent, so an error in the body can only end the response.
    fn broke_off(&self, error: &axum::Error) {
        tracing::error!(
            request_id = self.id.as_str(),
            cause = error_chain(error),
            "the response was aborted"
        );
    }

    fn write_line(&self, status: u16, ms: f64) {
        // The id is formatted only if the line is written.
        let (method, bytes, id) = (self.method.as_str(), self.bytes, || self.id.as_str());
        let client = self.client.map(tracing::field::display);
        let actor = self.actor.as_ref().map(|actor| actor.name.as_str());
        let refused_by = self.refusals.as_ref().and_then(RequestRefusals::rules);
        let refused_by = refused_by.as_deref();
        let path = self.uri.path();
        let path = &path[..path.floor_char_boundary(MAX_PATH_BYTES)];
        if is_probe(path) {
            tracing::debug!(
                method,
                path,
                status,
                ms,
                bytes,
                request_id = id(),
                client,
                actor,
                refused_by,
                "request"
            );
        } else {
            tracing::info!(
                method,
                path,
                status,
                ms,
                bytes,
                request_id = id(),
                client,
                actor,
                refused_by,
                "request"
            );
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let took = self.received_at.elapsed();
        let status = self.status.map_or(CLIENT_GONE_STATUS, |status| status.as_u16());
        self.metrics.active_requests.dec();
        self.refusals.iter().for_each(|refusals| self.metrics.count_refusals(refusals));
        self.metrics.observe_request(&self.method, self.route.name(), status, took);
        self.write_line(status, (took.as_secs_f64() * 1e6).round() / 1e3);
    }
}

/// A response body with the log entry of its request.
pub struct LoggedBody {
    body: Body,
    access_log: AccessLog,
}

impl LoggedBody {
    pub fn request_id(&self) -> &RequestId {
        &self.access_log.id
    }
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.access_log.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Poll::Ready(Some(Err(error))) => self.access_log.broke_off(error),
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
