//! Log lines about failed requests and ended streams, each with the request id.

use trefoil_model::error::{Error, ErrorSource};

use crate::monitoring::refusals::RequestRefusals;
use crate::response_headers::RequestId;

/// The request and operation that a log line belongs to.
#[derive(Debug, Clone, Copy)]
pub struct LogScope<'a> {
    pub request: Option<&'a RequestId>,
    /// The id that the client gave to one of several operations on a WebSocket.
    pub operation: Option<&'a str>,
}

/// Why the server ended a stream.
#[derive(Debug, Clone)]
pub enum StreamEnd {
    ServerStopping,
    /// The client reconnects and continues under the new schema.
    SchemaChanged,
    /// The subscription is invalid under the new schema, for this reason.
    DoesNotFit(String),
    Failed(Error),
}

impl From<Error> for StreamEnd {
    fn from(error: Error) -> Self {
        StreamEnd::Failed(error)
    }
}

impl<'a> LogScope<'a> {
    pub fn of(request: Option<&'a RequestId>) -> LogScope<'a> {
        LogScope { request, operation: None }
    }

    /// Logs the cause of an error that the client sees only as "unexpected".
    pub fn cause(self, cause: &ErrorSource) {
        self.cause_of_event(cause, None);
    }

    /// The same for an event of a stream.
    pub fn cause_of_event(self, cause: &ErrorSource, event_id: Option<&str>) {
        let (request_id, operation_id) = (self.request_id(), self.operation);
        tracing::error!(request_id, operation_id, event_id, %cause, "unexpected error");
    }

    /// Logs what was refused of an operation that has no log line of its own.
    pub fn refused(self, refusals: &RequestRefusals) {
        if let Some(refused_by) = refusals.rules() {
            let (request_id, operation_id) = (self.request_id(), self.operation);
            tracing::info!(request_id, operation_id, refused_by, "operation refused");
        }
    }

    pub fn stream_ended(self, transport: &str, end: &StreamEnd) {
        let (request_id, operation_id) = (self.request_id(), self.operation);
        let log = |reason: &str| {
            tracing::info!(request_id, operation_id, transport, reason, "stream ended");
        };
        match end {
            StreamEnd::ServerStopping => log("the server is stopping"),
            StreamEnd::SchemaChanged => log("the schema changed"),
            StreamEnd::DoesNotFit(why) => {
                let reason = format!("the schema changed and the subscription is no longer valid: {why}");
                tracing::warn!(request_id, operation_id, transport, reason, "stream ended");
            }
            StreamEnd::Failed(error) => {
                let reason = error.to_string();
                match error.cause() {
                    Some(cause) => {
                        tracing::error!(request_id, operation_id, transport, reason, %cause, "stream ended");
                    }
                    None => tracing::warn!(request_id, operation_id, transport, reason, "stream ended"),
                }
            }
        }
    }

    fn request_id(self) -> Option<&'a str> {
        self.request.map(RequestId::as_str)
    }
}
