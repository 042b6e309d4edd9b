//! `--by FIELD`: which rows of a batch are records that are there already, and so change them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::export::error_text;
use crate::row_parser::RowContent;
use trefoil_engine::{
    BulkStep, BulkWrite, ComparisonOp, Condition, ImportRecord, Listing, MissingFields, Operation, OwnedRow,
    Selection,
};
use trefoil_model::values::coerce;
use trefoil_model::{
    FieldId, FieldKind, Model, RecordType, RecordTypeId, Scalar, StoredValue, Value, ValueSource,
};

/// The field that tells which record a row is.
#[derive(Debug, Clone, Copy)]
pub struct UpsertKey {
    pub record: RecordTypeId,
    field: FieldId,
}

impl UpsertKey {
    /// The error is a line for whoever named the field.
    pub fn for_field(model: &Model, record: RecordTypeId, name: &str) -> Result<UpsertKey, String> {
        let of = model.record(record);
        let usable = of.fields.iter().filter(|field| field.unique || field.kind == FieldKind::Id);
        let usable = usable.map(|field| format!("`{}`", field.input_name)).collect::<Vec<_>>().join(", ");
        match of.find_input_field(name) {
            Some(field) if of.field(field).unique || of.field(field).kind == FieldKind::Id => {
                Ok(UpsertKey { record, field })
            }
            Some(_) => {
                Err(format!("--by {name}: the field is not @unique in `{}`; use one of {usable}", of.path))
            }
            None => Err(format!("--by {name}: `{}` has no such field; use one of {usable}", of.path)),
        }
    }

    /// What the row says it is; `None` where it does not say, or wrongly, which its creation will tell.
    fn row_key(self, model: &Model, given: &RowContent) -> Option<(Value, StoredValue)> {
        let RowContent::Record { id, fields } = given else { return None };
        let field = model.record(self.record).field(self.field);
        let value = match field.kind == FieldKind::Id {
            true => Value::Int((*id)?),
            false => fields.iter().find(|(given, _)| *given == self.field)?.1.clone(),
        };
        let stored = coerce::comparable(model, field, &value).ok()?;
        (stored != StoredValue::Null).then_some((value, stored))
    }

    /// How many rows from the first on are different records: the next one may be of a record that these make.
    pub fn count_distinct(self, model: &Model, rows: &[&RowContent]) -> usize {
        let mut seen = HashSet::new();
        let is_new = |given: &&&RowContent| match self.row_key(model, given) {
            Some((_, stored)) => seen.insert(self.comparison_text(model, &stored)),
            None => true,
        };
        rows.iter().take_while(is_new).count()
    }

    /// What two equal values have in common.
    fn comparison_text(self, model: &Model, stored: &StoredValue) -> String {
        let kind = &model.record(self.record).field(self.field).kind;
        match (kind, stored) {
            (FieldKind::Scalar(Scalar::Decimal), StoredValue::Text(digits)) if digits.contains('.') => {
                digits.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            (_, StoredValue::Text(text)) => text.clone(),
            (_, StoredValue::Int(number)) => number.to_string(),
            (_, StoredValue::Real(number)) => number.to_bits().to_string(),
            (_, StoredValue::Null) => String::new(),
        }
    }

    /// The ids of the records that are there, by what they are known by.
    pub async fn find_existing(
        self,
        model: &Model,
        long: &mut BulkWrite<'_>,
        rows: &[&RowContent],
    ) -> Result<HashMap<String, i64>, String> {
        let values: Vec<Value> =
            rows.iter().filter_map(|given| self.row_key(model, given)).map(|(value, _)| value).collect();
        if values.is_empty() {
            return Ok(HashMap::new());
        }
        let columns = vec![model.record(self.record).id_field(), self.field];
        let selection = Arc::new(Selection::new(columns, Vec::new()));
        let condition = Condition { field: self.field, op: ComparisonOp::In, value: Value::List(values) };
        let listing = Listing { conditions: vec![condition], ..Listing::default() };
        let operation = Operation::List { record: self.record, listing, selection: selection.clone() };
        let found = long.read(operation, selection).await.map_err(error_text)?;
        let pair = |row: OwnedRow| match row.cells.as_slice() {
            [StoredValue::Int(id), key] => Some((self.comparison_text(model, key), *id)),
            _ => None,
        };
        Ok(found.into_iter().filter_map(pair).collect())
    }

    /// The step that brings a row in; the error is what is wrong with it.
    pub fn bulk_step(
        self,
        model: &Model,
        there: &HashMap<String, i64>,
        row: ImportRecord,
    ) -> Result<BulkStep, String> {
        let given = RowContent::Record { id: row.id, fields: row.fields };
        let found = self
            .row_key(model, &given)
            .and_then(|(_, key)| there.get(&self.comparison_text(model, &key)).copied());
        let RowContent::Record { id, fields } = given else { return Err("a record is wanted".to_owned()) };
        let Some(known) = found else { return Ok(BulkStep::Import(ImportRecord { fields, ..row })) };
        if let Some(id) = id.filter(|id| *id != known) {
            return Err(format!("this record is there with the id {known}, and an id never changes: {id}"));
        }
        Ok(BulkStep::Run(Operation::Update {
            record: self.record,
            id: known,
            fields: client_fields(model.record(self.record), fields),
            missing_fields: MissingFields::Keep,
            expected_version: None,
            selection: row.selection,
        }))
    }
}

/// Without what the server fills when a record changes.
fn client_fields(record: &RecordType, fields: Vec<(FieldId, Value)>) -> Vec<(FieldId, Value)> {
    fields.into_iter().filter(|(field, _)| record.field(*field).value_source == ValueSource::Client).collect()
}
