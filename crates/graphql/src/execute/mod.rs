//! Runs a planned operation and writes its JSON response from the rows of the store.

pub(crate) mod connection;
pub(crate) mod path;
pub(crate) mod response;
pub(crate) mod run;
pub(crate) mod write;
