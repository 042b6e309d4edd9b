//! The questions that find references and links which lead to nothing.

use trefoil_model::{FieldId, FieldKind, Model, RecordTypeId};

use crate::statements::dialect::Dialect;

/// One field of a record type that leads to others.
#[derive(Debug)]
pub struct DanglingQuery {
    pub field: FieldId,
    /// Of the records whose ids are the only parameter: the id of each with a loose end, and what is missing.
    pub sql: String,
}

pub fn dangling_queries(dialect: Dialect, model: &Model, record: RecordTypeId) -> Vec<DanglingQuery> {
    let owner = model.record(record);
    let given = dialect.integer_table(&dialect.parameter_mark(1), "v");
    let fields = owner.fields.iter().enumerate().filter_map(|(position, field)| {
        let (table, own, other, target) = match &field.kind {
            FieldKind::Reference { target, .. } => (&owner.table, "id", &field.column, target),
            FieldKind::Link { target, table, own_column, other_column } => {
                (table, own_column.as_str(), other_column, target)
            }
            FieldKind::Id
            | FieldKind::Scalar(_)
            | FieldKind::Enum(_)
            | FieldKind::Embedded(_)
            | FieldKind::List(_)
            | FieldKind::Inverse { .. }
            | FieldKind::Unstored => return None,
        };
        let [table, own, other] = [table, own, other].map(|name| dialect.quote_name(name));
        let target = dialect.quote_name(&model.record(*target).table);
        let sql = format!(
            "SELECT t.{own}, t.{other} FROM {given} JOIN {table} AS t ON t.{own} = v.value \
             WHERE t.{other} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {target} AS r WHERE r.\"id\" = t.{other}) \
             ORDER BY 1, 2"
        );
        Some(DanglingQuery { field: FieldId(position), sql })
    });
    fields.collect()
}
