//! What a value is and which a field takes: values, coercion, rules, scalars, and their JSON and CSV text.

pub mod coerce;
pub mod csv_cell;
pub mod decimal;
pub mod example_values;
pub(crate) mod json_number;
pub mod json_text;
pub(crate) mod rule_checks;
pub mod scalars;
pub mod thousands;
pub(crate) mod value;
pub(crate) mod value_conversions;
pub(crate) mod value_reader;
