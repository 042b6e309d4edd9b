//! HTTP/1 connections: accepting, validation before hyper, timeouts, and takeover by streams and WebSockets.

// The accept loop and the state of a connection.
pub mod connection;
pub(crate) mod connection_state;

// Validation of the bytes that hyper reads.
pub(crate) mod chunked_body;
pub(crate) mod guarded_stream;
pub(crate) mod request_head;

// Long-lived responses.
pub(crate) mod streamed_body;
