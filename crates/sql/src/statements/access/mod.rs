//! What an actor may see and do, in SQL.

pub(crate) mod check_statement;
mod guarded_select;
pub(crate) mod image_list;
pub(super) mod key_columns;
mod named_targets;
pub(crate) mod nested_rules;
mod old_fields;
mod proposed_record;
pub(crate) mod read_statement;
pub(super) mod record_views;
pub(crate) mod rule_parameters;
pub(super) mod rule_sql;
pub(crate) mod unchecked_writes;
pub(crate) mod unreadable_row;
pub(super) mod visible_rows;
pub(crate) mod write_rules;
