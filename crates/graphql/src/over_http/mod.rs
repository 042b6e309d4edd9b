//! GraphQL over HTTP: reading requests, choosing media types and transports, writing responses.

pub(crate) mod json_input;
pub(crate) mod negotiate;
pub(crate) mod request;
pub(crate) mod response;
