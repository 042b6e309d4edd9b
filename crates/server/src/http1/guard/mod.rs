//! The guard between socket and hyper: hyper gets only validated heads, and every wait for the client has a limit.

pub(crate) mod connection_state;
pub(crate) mod guarded_stream;
mod handshake_head;
#[cfg(any(test, fuzzing))]
pub mod hyper_comparison;
mod input_state;
mod request_head;
