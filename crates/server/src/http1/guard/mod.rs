//! The guard between socket and hyper: hyper gets only validated heads, and every wait for the client has a limit.

#[cfg(any(test, fuzzing))]
pub mod agreement;
pub(crate) mod connection_state;
pub(crate) mod guarded_stream;
mod handshake_head;
mod input_state;
mod request_head;
