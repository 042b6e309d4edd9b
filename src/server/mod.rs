//! The process around the faces: its listeners, its connections, its log and its end.

mod chunks;
mod clock;
pub mod connection;
mod head;
pub mod listen;
pub mod logging;
pub mod shutdown;
mod turn;
mod wire;
