//! The process around the faces: its life, its listeners, its connections, its log and its end.

mod banner;
pub mod command_store;
pub mod embed;
mod file_watch;
mod home_text;
pub mod http1;
pub mod lifecycle;
pub mod listen;
pub mod load_application;
mod load_seed;
pub mod logging;
mod resource_router;
pub mod signals;
mod start_error;
mod unreadable_tables;

pub use crate::lifecycle::Running;
pub use crate::start_error::StartError;
