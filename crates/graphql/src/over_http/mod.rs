//! GraphQL over HTTP: reading requests, choosing media types and transports, writing responses.

// Routes and their handlers.
pub(crate) mod handlers;

// Requests in a POST body or a query string.
pub(crate) mod json_input;
pub(crate) mod request;

// The transport by operation type and `Accept`, and the response itself.
pub(crate) mod negotiate;
pub(crate) mod response;
