//! Tests of templates and forms, with sample data for every template.

mod rendered;
mod round_trips;

// Sample data.
pub(crate) mod sample_accounts;
pub(crate) mod sample_forms;
pub(crate) mod sample_summaries;
pub(crate) mod samples;
