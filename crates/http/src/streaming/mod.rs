//! What long-lived responses share on all faces: taking over the connection, deadlines, wake-ups, buffered writes and headers.

pub mod deadline;
pub mod response;
pub mod upgrade;
pub mod wake_filter;
pub mod write_buffer;
