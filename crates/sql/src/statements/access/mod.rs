//! What an actor may see and do, in SQL.

pub(crate) mod image_list;
pub(crate) mod read_statement;
pub(super) mod record_views;
pub(crate) mod rule_parameters;
pub(super) mod rule_sql;
pub(crate) mod unseen_row;
pub(crate) mod write_rules;

use trefoil_model::Field;
use trefoil_model::naming::names::key_column;

/// The column of a reference for joins with records that the actor can see: the column that is shown asks that of every
/// record, and no index has it.
pub(super) fn joined_column(reference: &Field) -> String {
    if reference.may_be_hidden { key_column(&reference.column) } else { reference.column.clone() }
}

/// The column with the key of a list's owner; null where the list is hidden.
pub(super) fn list_key(list: &Field) -> String {
    if list.may_be_hidden { key_column(&list.name) } else { "id".to_owned() }
}
