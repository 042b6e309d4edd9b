//! Forms for new and edited records.

// Requests: showing and submitting a form.
pub(crate) mod submit;

// The page with the form.
pub(crate) mod page;

// The control of each field.
pub(crate) mod controls;

// The records that belong to the edited one, in rows.
pub(crate) mod child_rows;

// The defaults of controls.
pub(crate) mod defaults;

// The records that references and links offer.
pub(crate) mod choices;

// A stored record, and what a form changes in it.
pub(crate) mod editable_record;

// New rows in which nothing was typed.
pub(crate) mod empty_rows;

// What a form does with the records that belong to its own.
pub(crate) mod child_writes;

// What the actor may not set or see.
pub(crate) mod closed_fields;

// Who changed a field.
mod field_hashes;

// Stored values as the texts of controls.
pub(crate) mod value_texts;

// Errors beside controls and in the summary.
pub(crate) mod errors;

// Values saved concurrently, shown beside one's own.
pub(crate) mod conflict;

// Keys that make a double submit one write.
pub(crate) mod keys;
