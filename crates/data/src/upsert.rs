//! `--by FIELD`: finds the rows of a batch whose records exist already, to update those.

use std::collections::{HashMap, HashSet};

use trefoil_engine::{
    BulkStep, BulkWrite, Condition, ImportedRecord, Listing, MissingFields, Operation, OwnedRow,
    PreparedSelection, Selection,
};
use trefoil_model::values::coerce;
use trefoil_model::{
    FieldId, Model, RecordId, RecordType, RecordTypeId, Scalar, StoredValue, Value, ValueSource,
};

use crate::export::error_text;
use crate::row_parser::RowContent;

/// The field that identifies the record of a row.
#[derive(Debug, Clone, Copy)]
pub struct UpsertKey {
    pub record: RecordTypeId,
    field: FieldId,
}

impl UpsertKey {
    /// The key for a field, or why the field cannot be one.
    pub fn for_field(model: &Model, record: RecordTypeId, name: &str) -> Result<UpsertKey, String> {
        let record_type = model.record(record);
        let usable = record_type.fields.iter().filter(|field| field.unique || field.kind.is_id());
        let usable = usable.map(|field| format!("`{}`", field.input_name)).collect::<Vec<_>>().join(", ");
        // `id` means the key, whatever each type calls it.
        let field = match name {
            "id" => Some(record_type.id_field()),
            _ => record_type.find_input_field(name),
        };
        match field {
            Some(field) if record_type.field(field).unique || record_type.field(field).kind.is_id() => {
                Ok(UpsertKey { record, field })
            }
            Some(_) => Err(format!(
                "--by {name}: the field is not @unique in `{}`; use one of {usable}",
                record_type.path
            )),
            None => Err(format!(
                "--by {name}: `{}` has no field with this name; use one of {usable}",
                record_type.path
            )),
        }
    }

    /// The row's value of the key field; `None` if it is missing, or invalid, which the creation will report.
    fn row_key(self, model: &Model, content: &RowContent) -> Option<(Value, StoredValue)> {
        let RowContent::Record { id, fields } = content else { return None };
        let field = model.record(self.record).field(self.field);
        let value = match field.kind.is_id() {
            true => id.as_ref()?.to_value(),
            false => fields.iter().find(|(field, _)| *field == self.field)?.1.clone(),
        };
        let stored = coerce::coerce_comparable(model, field, &value).ok()?;
        (stored != StoredValue::Null).then_some((value, stored))
    }

    /// The number of leading rows with different keys: the next row may update a record that one of these creates.
    pub fn count_distinct(self, model: &Model, rows: &[&RowContent]) -> usize {
        let mut seen = HashSet::new();
        let is_new = |content: &&&RowContent| match self.row_key(model, content) {
            Some((_, stored)) => seen.insert(self.comparison_text(model, &stored)),
            None => true,
        };
        rows.iter().take_while(is_new).count()
    }

    /// The same text for equal values.
    fn comparison_text(self, model: &Model, stored: &StoredValue) -> String {
        let field = model.record(self.record).field(self.field);
        match (field.kind.scalar(), stored) {
            (_, StoredValue::Text(text)) if field.ignores_case => text.to_ascii_lowercase(),
            (Some(Scalar::Decimal), StoredValue::Text(digits)) if digits.contains('.') => {
                digits.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            (_, StoredValue::Text(text)) => text.clone(),
            (_, StoredValue::Int(number)) => number.to_string(),
            (_, StoredValue::Real(number)) => number.to_bits().to_string(),
            (_, StoredValue::Null) => String::new(),
        }
    }

    /// The ids of existing records by their key.
    pub async fn find_existing(
        self,
        model: &Model,
        bulk_write: &mut BulkWrite<'_>,
        rows: &[&RowContent],
    ) -> Result<HashMap<String, RecordId>, String> {
        let values: Vec<Value> =
            rows.iter().filter_map(|content| self.row_key(model, content)).map(|(value, _)| value).collect();
        if values.is_empty() {
            return Ok(HashMap::new());
        }
        let columns = vec![model.record(self.record).id_field(), self.field];
        let selection = PreparedSelection::new(Selection::new(columns, Vec::new()));
        let condition = Condition::one_of(self.field, Value::List(values));
        let listing = Listing { conditions: vec![condition], ..Listing::default() };
        let operation = Operation::List { record: self.record, listing, selection: selection.clone() };
        let found = bulk_write.read(operation, selection).await.map_err(error_text)?;
        let pair = |row: OwnedRow| match row.cells.as_slice() {
            [id, key] => Some((self.comparison_text(model, key), RecordId::from_cell(id.as_cell())?)),
            _ => None,
        };
        Ok(found.into_iter().filter_map(pair).collect())
    }

    /// The step that imports a row; the error is what is wrong with the row.
    pub fn bulk_step(
        self,
        model: &Model,
        existing: &HashMap<String, RecordId>,
        row: ImportedRecord,
    ) -> Result<BulkStep, String> {
        let content = RowContent::Record { id: row.id.clone(), fields: row.fields };
        let found = self
            .row_key(model, &content)
            .and_then(|(_, key)| existing.get(&self.comparison_text(model, &key)).cloned());
        let RowContent::Record { id, fields } = content else { return Err("expected a record".to_owned()) };
        let Some(existing_id) = found else { return Ok(BulkStep::Import(ImportedRecord { fields, ..row })) };
        if let Some(id) = id.filter(|id| *id != existing_id) {
            return Err(format!(
                "this record exists with the id {existing_id}, and its id cannot be changed to {id}"
            ));
        }
        Ok(BulkStep::Run(Operation::Update {
            record: self.record,
            id: existing_id,
            fields: client_fields(model.record(self.record), fields),
            filled_fields: Vec::new(),
            missing_fields: MissingFields::Keep,
            expected_version: None,
            selection: row.selection,
        }))
    }
}

/// Without the fields that the server sets when a record changes.
fn client_fields(record: &RecordType, fields: Vec<(FieldId, Value)>) -> Vec<(FieldId, Value)> {
    fields.into_iter().filter(|(field, _)| record.field(*field).value_source == ValueSource::Client).collect()
}
