//! Queries that find references and links to records that do not exist.

use trefoil_model::{FieldId, Model, RecordTypeId, Relation};

use crate::statements::dialect::Dialect;

/// The query for one reference or link field.
#[derive(Debug)]
pub struct DanglingQuery {
    pub field: FieldId,
    /// The only parameter is a list of ids. Each row is the id of such a record and the missing id it refers to.
    pub sql: String,
}

/// One query for each reference or link field of a record type.
pub fn dangling_queries(dialect: Dialect, model: &Model, record: RecordTypeId) -> Vec<DanglingQuery> {
    let owner = model.record(record);
    let ids = dialect.key_table(owner.key_form(), &dialect.parameter_mark(1), "v");
    let queries = owner.fields.iter().enumerate().filter_map(|(position, field)| {
        let (table, own, other) = match field.kind.relation()? {
            Relation::Reference(_) => (&owner.table, "id", &field.column),
            Relation::Link(link) => (&link.table, link.own_column.as_str(), &link.other_column),
            Relation::Inverse(_) => return None,
        };
        let [table, own, other] = [table, own, other].map(|name| dialect.quote_name(name));
        let target = model.record(field.kind.input_target()?);
        let own_id = dialect.read_key(owner.key_form(), &format!("t.{own}"));
        let missing_id = dialect.read_key(target.key_form(), &format!("t.{other}"));
        let target = dialect.quote_name(&target.table);
        let sql = format!(
            "SELECT {own_id}, {missing_id} FROM {ids} JOIN {table} AS t ON t.{own} = v.value \
             WHERE t.{other} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {target} AS r WHERE r.\"id\" = t.{other}) \
             ORDER BY 1, 2"
        );
        Some(DanglingQuery { field: FieldId(position), sql })
    });
    queries.collect()
}
