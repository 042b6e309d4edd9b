//! HTTP/1 connections: accepting, the guard in front of hyper, and takeover by streams and WebSockets.

pub mod connection;
mod connection_slot;
pub mod guard;
mod streamed_body;
