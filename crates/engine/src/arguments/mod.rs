//! The arguments of built-in operations: the role of each by its name, and how they become an operation.

// By name: what an argument is for, which ones have no effect, and what a type is sorted by.
pub mod argument_roles;
pub mod display_order;
pub mod warnings;

// From the values of a request to an operation.
pub mod aggregates;
pub(crate) mod conditions;
mod global_id_arguments;
pub(crate) mod numeric_strings;
mod operator_conditions;
pub(crate) mod operator_members;
mod parse;
mod parsed_arguments;
pub mod related_records;
pub mod sort_keys;
pub mod unique_fields;
mod unknown_names;
mod values;

pub use self::parse::{aggregate_from_arguments, fields_from_object, listing_from_arguments};
