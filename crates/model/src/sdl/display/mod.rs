//! How pages show records: what the schema says with `@title` and `@display`.

pub(crate) mod record_displays;
pub(crate) mod record_titles;
