//! The directives of Trefoil: their SDL definitions and the code that reads them.

mod definitions;
mod directive_reader;
mod display_directive;
mod literals;
mod rule_directives;

// Where they may stand, and what is suggested or done where they may not.
pub(crate) mod declaration;
pub(crate) mod foreign_directives;
pub(crate) mod misplaced;
pub(crate) mod outside_records;

pub(crate) use crate::sdl::directives::definitions::{
    ACCESS_DIRECTIVES, add_atomic_directive, is_builtin_directive,
};
pub use crate::sdl::directives::definitions::{
    ATOMIC_DIRECTIVE, BUILTIN_DIRECTIVES, BuiltinDirective, HELPER_TYPES, find_directive,
};
pub(crate) use crate::sdl::directives::directive_reader::{
    DirectiveReader, FieldDirectives, directive_argument, expected_kind, expected_kind_of_use,
};
pub(crate) use crate::sdl::directives::display_directive::DisplayPlace;
pub use crate::sdl::directives::rule_directives::compile_pattern;
