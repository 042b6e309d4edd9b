//! The process around the faces: its life, its listeners, its connections, its log and its end.

mod banner;
pub mod beside;
mod chunks;
pub mod connection;
mod head;
pub mod life;
pub mod listen;
pub mod load;
mod log_lines;
pub mod logging;
pub mod seed;
pub mod shutdown;
mod start_error;
mod stream;
mod turn;
mod unreadable_tables;
mod watch;
mod wire;

pub use life::Running;
pub use start_error::StartError;
