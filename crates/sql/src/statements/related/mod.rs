//! Records that are found by their related records.

pub(crate) mod key_lists;
mod related_rows;
pub(crate) mod selected_rows;
