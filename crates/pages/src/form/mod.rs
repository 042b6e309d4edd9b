//! Forms for new and edited records: controls, values, errors, conflicts and double-submit keys.

pub(crate) mod choices;
pub(crate) mod conflict;
pub(crate) mod controls;
pub(crate) mod editable_record;
pub(crate) mod errors;
pub(crate) mod keys;
pub(crate) mod page;
pub(crate) mod submit;
pub(crate) mod value_texts;
