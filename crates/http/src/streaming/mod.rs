//! Parts shared by long-lived responses: headers, takeover of the connection, deadlines, wake-ups and buffered writes.

pub mod deadline;
pub mod response;
pub mod upgrade;
pub mod wake_source;
pub mod write_buffer;
