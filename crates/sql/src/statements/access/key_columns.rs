//! Columns with keys in what an actor sees, for joins with records that they see.

use trefoil_model::naming::names::key_column;
use trefoil_model::{Field, RecordType};

/// The column of a reference for joins with records that the actor can see: the column that is shown asks that of every
/// record, and no index has it.
pub fn joined_column(reference: &Field) -> String {
    if reference.may_be_hidden { key_column(&reference.column) } else { reference.column.clone() }
}

/// The column with the key of a list's owner; null where the list is hidden.
pub fn list_key(list: &Field) -> String {
    if list.may_be_hidden { key_column(&list.name) } else { "id".to_owned() }
}

/// The field whose values have the form of a quoted column: for a key column, the reference or the key of a list's owner.
pub fn field_of_column<'r>(owner: &'r RecordType, column: &str) -> Option<&'r Field> {
    let name = column.strip_prefix('"')?.strip_suffix('"')?;
    let stored = |name: &str| owner.fields.iter().find(|field| field.is_stored() && field.column == name);
    match name.strip_suffix(":key") {
        Some(name) => Some(stored(name).unwrap_or_else(|| owner.field(owner.id_field()))),
        None => stored(name),
    }
}
