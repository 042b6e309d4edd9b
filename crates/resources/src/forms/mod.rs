//! Forms: controls as a tree, and their text as typed values.

pub mod edited_lists;
pub mod form_input;
pub mod form_tree;
pub mod typed_values;
