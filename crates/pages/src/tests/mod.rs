//! Sample data for every template, and tests that render templates and send forms back.

pub(crate) mod rendered;
pub(crate) mod round_trips;
pub(crate) mod sample_forms;
pub(crate) mod samples;
