//! Values of fields: their types, validation, and their text in JSON and CSV.

// The value types.
pub(crate) mod json_number;
pub(crate) mod record_id;
pub(crate) mod value;
pub(crate) mod value_conversions;
pub(crate) mod value_reader;

// Validation: type, null and rules of a field.
pub mod coerce;
pub mod date_times;
pub mod decimal;
pub mod decimal_sum;
pub(crate) mod pattern_words;
pub(crate) mod rule_checks;
pub mod scalars;

// Parts of times, in a time zone.
pub mod periods;

// Output.
pub mod csv_cell;
pub mod digit_grouping;
pub mod json_text;

// Values for documentation and forms.
pub mod example_values;
