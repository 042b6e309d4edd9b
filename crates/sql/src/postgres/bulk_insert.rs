//! Many new records of one type in a few statements, for PostgreSQL, where each statement costs a round trip.

use crate::statements::dialect::Dialect;
use crate::statements::select::SqlParameter;
use crate::statements::write;
use trefoil_engine::Plan;
use trefoil_engine::plan::{PlanAction, PlannedSelection};
use trefoil_model::{CellValue, FieldId, FieldKind, Model, RecordType, RecordTypeId, StoredValue};

/// How many records go in one statement at most; a batch is a multiple of it or nearly so.
const MAX_ROWS: usize = 128;
/// PostgreSQL takes 65,535 parameters.
const MAX_PARAMETERS: usize = 60_000;
/// So many ids are drawn and thrown away to pass one that was chosen; the way of one that is further is the trigger's.
const MAX_SEQUENCE_GAP: i64 = 10_000_000;

/// New records that differ in nothing but their values.
pub struct BulkInsert<'p> {
    pub record: RecordTypeId,
    has_ids: bool,
    fields: Vec<FieldId>,
    pub rows: Vec<InsertRow<'p>>,
}

pub struct InsertRow<'p> {
    pub id: Option<i64>,
    /// In the order of fields.
    values: Vec<&'p StoredValue>,
    links: &'p [(FieldId, Vec<i64>)],
}

impl<'p> BulkInsert<'p> {
    /// `None` where the plans are of several kinds.
    pub fn from_plans(plans: &[&'p Plan]) -> Option<BulkInsert<'p>> {
        let mut all: Option<BulkInsert<'p>> = None;
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
            let all = all.get_or_insert_with(|| BulkInsert {
                record: *record,
                has_ids: id.is_some(),
                fields: fields().collect(),
                rows: Vec::with_capacity(plans.len()),
            });
            if all.record != *record
                || all.has_ids != id.is_some()
                || !fields().eq(all.fields.iter().copied())
            {
                return None;
            }
            all.rows.push(InsertRow {
                id: *id,
                values: values.into_iter().map(|(_, value)| value).collect(),
                links,
            });
        }
        all.filter(|all| all.parameters_per_row() > 0)
    }

    fn parameters_per_row(&self) -> usize {
        self.fields.len() + usize::from(self.has_ids)
    }

    /// The records of one statement each.
    pub fn statement_rows(&self) -> impl Iterator<Item = &[InsertRow<'p>]> {
        statement_chunks(&self.rows, self.parameters_per_row())
    }

    /// Gives the id and the version of each, in their order.
    pub fn insert_statement(&self, owner: &RecordType, rows: usize) -> String {
        write::insert_sql(Dialect::Postgres, owner, self.has_ids, &self.fields, &[], rows)
    }

    pub fn row_parameters<'r>(rows: &'r [InsertRow<'p>]) -> Vec<SqlParameter<'r>> {
        let each = |row: &'r InsertRow<'p>| {
            let id = row.id.map(|id| SqlParameter::Cell(CellValue::Int(id)));
            id.into_iter().chain(row.values.iter().map(|value| SqlParameter::Cell(value.as_cell())))
        };
        rows.iter().flat_map(each).collect()
    }

    /// Lets the sequence pass the greatest id that was chosen, its parameter, before anyone else can draw it.
    pub fn sequence_statement(&self, owner: &RecordType) -> Option<(String, i64)> {
        let greatest = self.rows.iter().filter_map(|row| row.id).max()?;
        let table = Dialect::Postgres.quote_name(&owner.table).replace('\'', "''");
        let name = format!("CAST(pg_get_serial_sequence('{table}', 'id') AS regclass)");
        let way = format!("CAST($1 AS bigint) - coalesce(pg_sequence_last_value({name}), 0)");
        let sql = format!(
            "SELECT count(nextval({name})) FROM generate_series(1, CASE WHEN {way} < {MAX_SEQUENCE_GAP} THEN {way} ELSE 0 END)"
        );
        Some((sql, greatest))
    }

    /// The links of all records whose ids these are: a statement for each field that has some, with both its lists.
    pub fn link_statements(&self, model: &Model, ids: &[i64]) -> Vec<(String, Vec<i64>, Vec<i64>)> {
        let owner = model.record(self.record);
        let link = |(position, field): (usize, &trefoil_model::Field)| {
            let FieldKind::Link { table, own_column, other_column, .. } = &field.kind else { return None };
            let pairs = ids.iter().zip(&self.rows).flat_map(|(id, row)| {
                let given = row.links.iter().filter(|(given, _)| *given == FieldId(position));
                given.flat_map(|(_, others)| others).map(|other| (*id, *other))
            });
            let (own, others): (Vec<i64>, Vec<i64>) = pairs.unzip();
            let [table, from, to] =
                [table, own_column, other_column].map(|name| Dialect::Postgres.quote_name(name));
            let sql = format!(
                "INSERT INTO {table} ({from}, {to}) SELECT * FROM unnest(CAST($1 AS bigint[]), CAST($2 AS bigint[])) \
                 ON CONFLICT DO NOTHING"
            );
            (!own.is_empty()).then_some((sql, own, others))
        };
        owner.fields.iter().enumerate().filter_map(link).collect()
    }
}

/// Records of so many parameters, those of one statement each. How many these are is a power of two: every number has a
/// text of its own, and each connection keeps the texts that it has prepared.
pub fn statement_chunks<T>(records: &[T], width: usize) -> impl Iterator<Item = &[T]> {
    let most = MAX_ROWS.min(MAX_PARAMETERS / width).max(1);
    let mut rest = records;
    std::iter::from_fn(move || {
        let power = rest.len().min(most).checked_ilog2()?;
        rest.split_off(..(1 << power))
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
    fn records_go_in_few_statements_of_few_texts() {
        assert_eq!(sizes(300, 3), [128, 128, 32, 8, 4]);
        assert_eq!(sizes(0, 3), [0; 0]);
        assert_eq!(sizes(150, 700), [64, 64, 16, 4, 2], "60,000 parameters are enough for 85");
        assert_eq!(sizes(2, 100_000), [1, 1]);
        let texts: BTreeSet<usize> = (0..=1_000).flat_map(|records| sizes(records, 3)).collect();
        assert_eq!(texts.into_iter().collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 128]);
    }
}
