//! SQL text for plans, pure: the dialects, select and write statements, programs compiled from plans, and what broken constraints mean.

pub mod compile;
pub(crate) mod constraint_errors;
pub(crate) mod dangling_references;
pub(crate) mod decimal_key;
pub mod dialect;
pub(crate) mod row_batch;
pub mod select;
pub(crate) mod write;
pub(crate) mod write_parts;
