//! `--by FIELD`: which rows of a batch are records that are there already, and so change them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::export::told;
use crate::row_parser::Given;
use trefoil_engine::{Absent, Arrival, Condition, Listing, Long, Op, Operation, OwnedRow, Selection, Step};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, FilledBy, Kind, Model, RecordType, Scalar, Stored, TypeId, Value};

/// The field that tells which record a row is.
#[derive(Debug, Clone, Copy)]
pub struct By {
    pub record: TypeId,
    field: FieldId,
}

impl By {
    /// The error is a line for whoever named the field.
    pub fn named(model: &Model, record: TypeId, name: &str) -> Result<By, String> {
        let of = model.record(record);
        let usable = of.fields.iter().filter(|field| field.unique || field.kind == Kind::Id);
        let usable = usable.map(|field| format!("`{}`", field.input_name)).collect::<Vec<_>>().join(", ");
        match of.input_field(name) {
            Some(field) if of.field(field).unique || of.field(field).kind == Kind::Id => {
                Ok(By { record, field })
            }
            Some(_) => {
                Err(format!("--by {name}: the field is not @unique in `{}`; use one of {usable}", of.path))
            }
            None => Err(format!("--by {name}: `{}` has no such field; use one of {usable}", of.path)),
        }
    }

    /// What the row says it is; `None` where it does not say, or wrongly, which its creation will tell.
    fn key(self, model: &Model, given: &Given) -> Option<(Value, Stored)> {
        let Given::Record { id, fields } = given else { return None };
        let field = model.record(self.record).field(self.field);
        let value = match field.kind == Kind::Id {
            true => Value::Int((*id)?),
            false => fields.iter().find(|(given, _)| *given == self.field)?.1.clone(),
        };
        let stored = coerce::comparable(model, field, &value).ok()?;
        (stored != Stored::Null).then_some((value, stored))
    }

    /// How many rows from the first on are different records: the next one may be of a record that these make.
    pub fn distinct(self, model: &Model, rows: &[&Given]) -> usize {
        let mut seen = HashSet::new();
        let is_new = |given: &&&Given| match self.key(model, given) {
            Some((_, stored)) => seen.insert(self.same(model, &stored)),
            None => true,
        };
        rows.iter().take_while(is_new).count()
    }

    /// What two equal values have in common.
    fn same(self, model: &Model, stored: &Stored) -> String {
        let kind = &model.record(self.record).field(self.field).kind;
        match (kind, stored) {
            (Kind::Scalar(Scalar::Decimal), Stored::Text(digits)) if digits.contains('.') => {
                digits.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            (_, Stored::Text(text)) => text.clone(),
            (_, Stored::Int(number)) => number.to_string(),
            (_, Stored::Real(number)) => number.to_bits().to_string(),
            (_, Stored::Null) => String::new(),
        }
    }

    /// The ids of the records that are there, by what they are known by.
    pub async fn find(
        self,
        model: &Model,
        long: &mut Long<'_>,
        rows: &[&Given],
    ) -> Result<HashMap<String, i64>, String> {
        let values: Vec<Value> =
            rows.iter().filter_map(|given| self.key(model, given)).map(|(value, _)| value).collect();
        if values.is_empty() {
            return Ok(HashMap::new());
        }
        let columns = vec![model.record(self.record).id_field(), self.field];
        let selection = Arc::new(Selection::new(columns, Vec::new()));
        let condition = Condition { field: self.field, op: Op::In, value: Value::List(values) };
        let listing = Listing { conditions: vec![condition], ..Listing::default() };
        let operation = Operation::List { record: self.record, listing, selection: selection.clone() };
        let found = long.read(operation, selection).await.map_err(told)?;
        let pair = |row: OwnedRow| match row.cells.as_slice() {
            [Stored::Int(id), key] => Some((self.same(model, key), *id)),
            _ => None,
        };
        Ok(found.into_iter().filter_map(pair).collect())
    }

    /// The step that brings a row in; the error is what is wrong with it.
    pub fn step(self, model: &Model, there: &HashMap<String, i64>, row: Arrival) -> Result<Step, String> {
        let given = Given::Record { id: row.id, fields: row.fields };
        let found = self.key(model, &given).and_then(|(_, key)| there.get(&self.same(model, &key)).copied());
        let Given::Record { id, fields } = given else { return Err("a record is wanted".to_owned()) };
        let Some(known) = found else { return Ok(Step::Bring(Arrival { fields, ..row })) };
        if let Some(id) = id.filter(|id| *id != known) {
            return Err(format!("this record is there with the id {known}, and an id never changes: {id}"));
        }
        Ok(Step::Do(Operation::Update {
            record: self.record,
            id: known,
            fields: own(model.record(self.record), fields),
            absent: Absent::Keep,
            expected_version: None,
            selection: row.selection,
        }))
    }
}

/// Without what the server fills when a record changes.
fn own(record: &RecordType, fields: Vec<(FieldId, Value)>) -> Vec<(FieldId, Value)> {
    fields.into_iter().filter(|(field, _)| record.field(*field).filled_by == FilledBy::Client).collect()
}
