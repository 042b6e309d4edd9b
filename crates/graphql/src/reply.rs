//! The context and the result of one GraphQL request, independent of its transport.

use trefoil_engine::{Actor, DataVersion, Engine, IdempotencyKey};
use trefoil_http::errors::error_log::LogScope;
use trefoil_model::error::Error;

use crate::response_error::{ErrorNotes, ResponseError};

/// The sender of a request and the conditions under which it runs.
#[derive(Default)]
pub struct RequestContext {
    pub actor: Actor,
    /// On behalf of the actor, if it was needed before.
    pub engine: Option<Engine>,
    pub key: Option<IdempotencyKey>,
    /// The request must not change anything: it is a GET, or comes from an origin that may only read.
    pub safe: bool,
}

/// The result of a request.
pub enum GraphqlReply {
    Executed(ExecutedResponse),
    /// Well-formed, but not executed.
    Rejected(Vec<ResponseError>),
    /// The store failed as a whole.
    Failed(Error),
    /// A mutation in a request that must not change anything.
    PostRequired,
}

/// The response of an operation that was executed.
pub struct ExecutedResponse {
    pub body: Vec<u8>,
    /// It has no `errors`.
    pub error_free: bool,
    /// The data version from before the read, if the response may be cached.
    pub data_version: Option<DataVersion>,
    /// The response of an earlier request with the same idempotency key.
    pub replayed: bool,
    /// Of its errors, for the log.
    pub notes: ErrorNotes,
}

impl GraphqlReply {
    /// Logs the causes of errors in the response. `Failed` is logged where it becomes a [`Problem`] response.
    ///
    /// [`Problem`]: trefoil_http::errors::problem::Problem
    pub(crate) fn log_causes(&self, scope: LogScope<'_>) {
        match self {
            GraphqlReply::Executed(executed) => executed.notes.log_causes(scope),
            GraphqlReply::Rejected(errors) => ErrorNotes::of(errors).log_causes(scope),
            GraphqlReply::Failed(_) | GraphqlReply::PostRequired => {}
        }
    }
}
