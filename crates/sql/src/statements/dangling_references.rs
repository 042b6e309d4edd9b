//! The questions that find references and links which lead to nothing.

use crate::statements::dialect::Dialect;
use trefoil_model::{FieldId, Kind, Model, TypeId};

/// One field of a record type that leads to others.
#[derive(Debug)]
pub struct Question {
    pub field: FieldId,
    /// Of the records whose ids are the only parameter: the id of each with a loose end, and what is missing.
    pub sql: String,
}

pub fn questions(dialect: Dialect, model: &Model, record: TypeId) -> Vec<Question> {
    let owner = model.record(record);
    let given = dialect.integers(&dialect.parameter(1), "v");
    let fields = owner.fields.iter().enumerate().filter_map(|(position, field)| {
        let (table, own, other, target) = match &field.kind {
            Kind::Reference { target, .. } => (&owner.table, "id", &field.column, target),
            Kind::Link { target, table, own_column, other_column } => {
                (table, own_column.as_str(), other_column, target)
            }
            Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Inverse { .. }
            | Kind::Unstored => return None,
        };
        let [table, own, other] = [table, own, other].map(|name| dialect.quote(name));
        let target = dialect.quote(&model.record(*target).table);
        let sql = format!(
            "SELECT t.{own}, t.{other} FROM {given} JOIN {table} AS t ON t.{own} = v.value \
             WHERE t.{other} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {target} AS r WHERE r.\"id\" = t.{other}) \
             ORDER BY 1, 2"
        );
        Some(Question { field: FieldId(position), sql })
    });
    fields.collect()
}
