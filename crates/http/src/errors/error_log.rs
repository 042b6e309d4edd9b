//! The lines of the log that say what went wrong for a request, each with the request's id.

use crate::response_headers::RequestId;
use trefoil_model::error::{Cause, Error};

/// Whose lines they are.
#[derive(Debug, Clone, Copy)]
pub struct LogScope<'a> {
    pub request: Option<&'a RequestId>,
    /// The id that a client gave to one operation of several on a socket.
    pub operation: Option<&'a str>,
}

/// Why a stream ended that its client had not ended.
#[derive(Debug, Clone)]
pub enum StreamEnd {
    ServerStopping,
    /// The client comes back and gets what it follows under the new schema.
    SchemaChanged,
    /// What was asked does not fit the new schema, for this reason.
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

    /// The cause of an answer, or a part of one, that says nothing but that there was an error.
    pub fn cause(self, cause: &Cause) {
        self.cause_of_event(cause, None);
    }

    /// The same for an event of a stream.
    pub fn cause_of_event(self, cause: &Cause, event_id: Option<&str>) {
        let (request_id, operation_id) = (self.request_id(), self.operation);
        tracing::error!(request_id, operation_id, event_id, %cause, "unexpected error");
    }

    pub fn stream_ended(self, transport: &str, end: &StreamEnd) {
        let (request_id, operation_id) = (self.request_id(), self.operation);
        let told = |reason: &str| {
            tracing::info!(request_id, operation_id, transport, reason, "stream ended");
        };
        match end {
            StreamEnd::ServerStopping => told("the server is stopping"),
            StreamEnd::SchemaChanged => told("the schema changed"),
            StreamEnd::DoesNotFit(why) => {
                let reason = format!("the schema changed, and the subscription does not fit it: {why}");
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
