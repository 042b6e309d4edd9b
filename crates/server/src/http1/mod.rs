//! The HTTP/1 connection: accepting, checking heads and bodies before hyper sees them, timeouts, and hand-over to streams and WebSockets.

pub(crate) mod chunked_body;
pub mod connection;
pub(crate) mod connection_state;
pub(crate) mod guarded_stream;
pub(crate) mod request_head;
pub(crate) mod streamed_body;
