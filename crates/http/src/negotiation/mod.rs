//! Which format a response gets: the Accept header weighed against what an address offers.

pub mod accept;
pub mod format;
