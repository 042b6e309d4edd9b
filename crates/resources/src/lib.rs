//! Records at their REST paths, shared by the JSON API and the HTML pages: collections by path, queries, bodies and forms
//! as typed values, writes with versions and idempotency keys, rows as JSON and CSV. Used by `trefoil-rest`,
//! `trefoil-pages` and `trefoil-server`.

// All resources of a schema, one collection, and one request for it.
pub mod collection;
pub mod request;
mod served_resources;

// The query of a list.
pub mod aggregate_query;
pub mod list_query;

// Bodies: bytes as text, text as records or forms, names as fields.
pub mod body_text;
pub mod field_values;
mod filter_params;
pub mod parsed_body;

pub mod forms;

// Writes, and records as JSON or CSV.
pub mod record_shape;
pub mod row_writer;
pub mod write;

// Plain lists of texts, which are not records.
pub mod plain_list;

pub use crate::served_resources::ServedResources;
