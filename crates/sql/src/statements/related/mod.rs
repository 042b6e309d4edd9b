//! Records that are found by their related records.

pub(crate) mod key_lists;
pub(crate) mod related_rows;
pub(crate) mod selected_rows;
