//! Runs a planned operation and writes its JSON response from the rows of the store.

// The run, and the response that collects the results of its root fields.
mod abstract_response;
pub(crate) mod abstract_results;
pub(crate) mod execution;
pub(crate) mod hidden_fields;
pub(crate) mod pending_root;
pub(crate) mod response;
mod root_field_writer;
pub(crate) mod run;

// JSON from rows and values.
pub(crate) mod connection;
mod page_info;
pub(crate) mod path;
pub(crate) mod payload;
pub(crate) mod related_connection;
pub(crate) mod write;
