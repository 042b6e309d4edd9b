//! Inserts many records of one type with few statements, since each statement costs a round trip.

use trefoil_engine::Plan;
use trefoil_engine::plan::{PlanAction, PlannedSelection};
use trefoil_model::{
    CellValue, Field, FieldId, Link, Model, RecordId, RecordType, RecordTypeId, StoredValue,
};

use crate::link_table_side::side_condition;
use crate::statements::dialect::Dialect;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write;

/// The maximum number of records in one statement. Batches are about a multiple of it.
const MAX_ROWS: usize = 128;
/// The maximum number of parameters in one statement; PostgreSQL allows 65,535.
const MAX_PARAMETERS: usize = 60_000;
/// The maximum number of ids to draw from the sequence to advance it past a chosen id. Larger gaps are left to the
/// trigger.
const MAX_SEQUENCE_GAP: i64 = 10_000_000;

/// New records of one type that set the same fields.
pub struct BulkInsert<'p> {
    pub record: RecordTypeId,
    has_ids: bool,
    fields: Vec<FieldId>,
    pub rows: Vec<InsertRow<'p>>,
}

/// One new record.
pub struct InsertRow<'p> {
    pub id: Option<&'p RecordId>,
    /// In the order of [`BulkInsert::fields`].
    values: Vec<&'p StoredValue>,
    links: &'p [(FieldId, Vec<RecordId>)],
}

impl<'p> BulkInsert<'p> {
    /// `None` if the plans differ in type or fields, or any is not a create or selects something.
    pub fn from_plans(plans: &[&'p Plan]) -> Option<BulkInsert<'p>> {
        let mut insert: Option<BulkInsert<'p>> = None;
        for plan in plans {
            let PlanAction::Create { record, id, values, links, selection } = &plan.action else {
                return None;
            };
            if selects_anything(selection) {
                return None;
            }
            let mut values: Vec<_> = values.iter().map(|(field, value)| (*field, value)).collect();
            values.sort_by_key(|(field, _)| *field);
            let fields = || values.iter().map(|(field, _)| *field);
            let insert = insert.get_or_insert_with(|| BulkInsert {
                record: *record,
                has_ids: id.is_some(),
                fields: fields().collect(),
                rows: Vec::with_capacity(plans.len()),
            });
            if insert.record != *record
                || insert.has_ids != id.is_some()
                || !fields().eq(insert.fields.iter().copied())
            {
                return None;
            }
            insert.rows.push(InsertRow {
                id: id.as_ref(),
                values: values.into_iter().map(|(_, value)| value).collect(),
                links,
            });
        }
        insert.filter(|insert| insert.parameters_per_row() > 0)
    }

    fn parameters_per_row(&self) -> usize {
        self.fields.len() + usize::from(self.has_ids)
    }

    /// The records in chunks of one statement each.
    pub fn statement_rows(&self) -> impl Iterator<Item = &[InsertRow<'p>]> {
        statement_chunks(&self.rows, self.parameters_per_row())
    }

    /// An insert of `rows` records that returns the id and version of each, in order.
    pub fn insert_statement(&self, owner: &RecordType, rows: usize) -> String {
        write::insert_sql(Dialect::Postgres, owner, self.has_ids, &self.fields, &[], rows)
    }

    pub fn row_parameters<'r>(rows: &'r [InsertRow<'p>]) -> Vec<SqlParameter<'r>> {
        let parameters = |row: &'r InsertRow<'p>| {
            let id = row.id.map(SqlParameter::id);
            id.into_iter().chain(row.values.iter().map(|value| SqlParameter::Cell(value.as_cell())))
        };
        rows.iter().flat_map(parameters).collect()
    }

    /// A statement that advances the sequence past the greatest chosen id, and that id as its parameter. It runs before
    /// the insert, so that no other session draws one of the ids.
    pub fn sequence_statement(&self, owner: &RecordType) -> Option<(String, i64)> {
        let number = |row: &InsertRow<'_>| row.id.and_then(|id| id.as_cell().to_i64());
        let greatest = self.rows.iter().filter_map(number).max()?;
        let table = Dialect::Postgres.quote_name(&owner.table).replace('\'', "''");
        let name = format!("CAST(pg_get_serial_sequence('{table}', 'id') AS regclass)");
        let gap = format!("CAST($1 AS bigint) - coalesce(pg_sequence_last_value({name}), 0)");
        let sql = format!(
            "SELECT count(nextval({name})) FROM generate_series(1, CASE WHEN {gap} < {MAX_SEQUENCE_GAP} THEN {gap} ELSE 0 END)"
        );
        Some((sql, greatest))
    }

    /// The statements that insert the links of the records with these ids, one per link field: (SQL, own ids, other
    /// ids).
    pub fn link_statements<'i>(
        &'i self,
        model: &Model,
        ids: impl Iterator<Item = &'i RecordId> + Clone,
    ) -> Vec<(String, Vec<CellValue<'i>>, Vec<CellValue<'i>>)> {
        let owner = model.record(self.record);
        let link = |(position, field): (usize, &Field)| {
            let link = field.kind.link()?;
            let Link { table, own_column, other_column, key_form, .. } = link;
            let pairs = ids.clone().zip(&self.rows).flat_map(|(id, row)| {
                let links = row.links.iter().filter(|(link_field, _)| *link_field == FieldId(position));
                links.flat_map(|(_, others)| others).map(|other| (id.as_cell(), other.as_cell()))
            });
            let (own, others): (Vec<_>, Vec<_>) = pairs.unzip();
            let [own_type, other_type] =
                [owner.key_form(), *key_form].map(|form| Dialect::Postgres.key_type(form));
            let [table, from, to] =
                [table, own_column, other_column].map(|name| Dialect::Postgres.quote_name(name));
            let sql = format!(
                "INSERT INTO {table} ({from}, {to}) SELECT * FROM unnest(CAST($1 AS {own_type}[]), CAST($2 AS {other_type}[])) \
                 WHERE {} ON CONFLICT DO NOTHING",
                side_condition(Dialect::Postgres, link)
            );
            (!own.is_empty()).then_some((sql, own, others))
        };
        owner.fields.iter().enumerate().filter_map(link).collect()
    }
}

/// Splits records of `width` parameters into chunks of one statement each. The sizes are powers of two: each size is a
/// different SQL text, which every connection keeps prepared.
pub fn statement_chunks<T>(records: &[T], width: usize) -> impl Iterator<Item = &[T]> {
    let max_rows = MAX_ROWS.min(MAX_PARAMETERS / width).max(1);
    let mut rest = records;
    std::iter::from_fn(move || {
        let exponent = rest.len().min(max_rows).checked_ilog2()?;
        rest.split_off(..(1 << exponent))
    })
}

pub fn selects_anything(selection: &PlannedSelection) -> bool {
    !selection.columns.is_empty() || !selection.children.is_empty() || selection.includes_version
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sizes(records: usize, width: usize) -> Vec<usize> {
        statement_chunks(&vec![(); records], width).map(<[()]>::len).collect()
    }

    #[test]
    fn chunk_sizes_are_powers_of_two() {
        assert_eq!(sizes(300, 3), [128, 128, 32, 8, 4]);
        assert_eq!(sizes(0, 3), [0; 0]);
        assert_eq!(sizes(150, 700), [64, 64, 16, 4, 2], "60,000 parameters are enough for 85");
        assert_eq!(sizes(2, 100_000), [1, 1]);
        let texts: BTreeSet<usize> = (0..=1_000).flat_map(|records| sizes(records, 3)).collect();
        assert_eq!(texts.into_iter().collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 128]);
    }
}
