//! Binds every root field to a built-in operation or a registered resolver.

// By the exact names, and the entry point.
mod exact_names;
mod resolver_names;
mod singleton_fields;

// By the words of a name and the declared type.
mod inputs_of_other_types;
mod named_arguments;
mod operation_name_binding;
mod related_arguments;
mod result_type;

// Over interfaces and unions.
mod abstract_binding;

// What a create operation fills in by itself.
mod filled_fields;

// Arguments of a type that never fits.
mod unfit_types;

// Why a root field has no resolver, and how to bind it.
mod explanation;

// The fields of pages that nothing answers.
mod page_warnings;

pub use exact_names::{bind_root_fields, logged_changes, subscribed_changes};
pub(crate) use filled_fields::{impossible_fields, missing_fields, sets_nothing};
pub use page_warnings::page_warnings;
pub(crate) use unfit_types::{UnfitArgument, unfit_arguments};
