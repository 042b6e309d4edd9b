//! The format of a response: the `Accept` header against the formats that a path offers.

pub mod accept;
pub mod format;
