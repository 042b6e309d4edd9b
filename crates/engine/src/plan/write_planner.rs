//! Values of one write: coerced, completed by defaults and timestamps, every violation collected.

use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::{coerce, date_times};
use trefoil_model::{Field, FieldId, Model, RecordType, RecordTypeId, StoredValue, Value, ValueSource};

use crate::operation::MissingFields;

use crate::plan::predicate::under_field;
pub(crate) type StoredFields = Vec<(FieldId, StoredValue)>;
pub(crate) type LinkedIds = Vec<(FieldId, Vec<i64>)>;

/// Collects and validates the values of one write.
pub(crate) struct WritePlanner<'a> {
    model: &'a Model,
    record: &'a RecordType,
    now: jiff::Timestamp,
    values: StoredFields,
    links: LinkedIds,
    violations: Vec<Violation>,
}

impl<'a> WritePlanner<'a> {
    pub(crate) fn new(model: &'a Model, record: RecordTypeId, now: jiff::Timestamp) -> Self {
        let record = model.record(record);
        WritePlanner { model, record, now, values: Vec::new(), links: Vec::new(), violations: Vec::new() }
    }

    pub(crate) fn plan_create(mut self, fields: Vec<(FieldId, Value)>) -> Result<(StoredFields, LinkedIds)> {
        let is_given = self.accept_all(fields);
        self.fill_missing(&is_given);
        self.set_timestamps(&[ValueSource::CreationTime, ValueSource::UpdateTime]);
        self.finish()
    }

    pub(crate) fn plan_import(mut self, fields: Vec<(FieldId, Value)>) -> Result<(StoredFields, LinkedIds)> {
        let is_timestamp = |id: &FieldId| match self.record.field(*id).value_source {
            ValueSource::CreationTime | ValueSource::UpdateTime => true,
            ValueSource::Client | ValueSource::RecordVersion => false,
        };
        let (timestamps, client_fields): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(id, _)| is_timestamp(id));
        let is_given = self.accept_all(client_fields);
        self.fill_missing(&is_given);
        self.set_timestamps(&[ValueSource::CreationTime, ValueSource::UpdateTime]);
        for (id, value) in timestamps.iter().filter(|(_, value)| !value.is_null()) {
            self.values.retain(|(existing, _)| existing != id);
            self.accept_field(*id, self.record.field(*id), value);
        }
        self.finish()
    }

    pub(crate) fn plan_update(
        mut self,
        fields: Vec<(FieldId, Value)>,
        missing_fields: MissingFields,
    ) -> Result<(StoredFields, LinkedIds)> {
        let is_given = self.accept_all(fields);
        if missing_fields == MissingFields::Reset {
            self.fill_missing(&is_given);
        }
        if !(self.values.is_empty() && self.links.is_empty()) {
            self.set_timestamps(&[ValueSource::UpdateTime]);
        }
        self.finish()
    }

    fn finish(self) -> Result<(StoredFields, LinkedIds)> {
        if self.violations.is_empty() {
            Ok((self.values, self.links))
        } else {
            Err(Error::Invalid(self.violations))
        }
    }

    /// Validates the given fields; the result marks them by position.
    fn accept_all(&mut self, fields: Vec<(FieldId, Value)>) -> Vec<bool> {
        let mut is_given = vec![false; self.record.fields.len()];
        for (id, value) in fields {
            let field = self.record.field(id);
            if std::mem::replace(&mut is_given[id.0], true) {
                let message = format!("`{}` is given more than once", field.name);
                self.violations.push(Violation::new(&field.input_name, "TWICE", message));
            } else if field.value_source != ValueSource::Client {
                let message = format!("`{}` is set by the server and cannot be written", field.name);
                self.violations.push(Violation::new(&field.input_name, "READ_ONLY", message));
            } else {
                self.accept_field(id, field, &value);
            }
        }
        is_given
    }

    fn accept_field(&mut self, id: FieldId, field: &Field, value: &Value) {
        if field.kind.is_link() {
            let none = Value::List(Vec::new());
            match coerce::link_ids(field, if value.is_null() { &none } else { value }) {
                Ok(ids) => self.links.push((id, ids)),
                Err(violations) => self.violations.extend(under_field(field, violations)),
            }
            return;
        }
        match coerce::coerce_field(self.model, field, value) {
            Ok(stored) => self.values.push((id, stored)),
            Err(violations) => self.violations.extend(under_field(field, violations)),
        }
    }

    /// Gives each missing field its default, or null. Links stay as they are.
    fn fill_missing(&mut self, is_given: &[bool]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            let is_client_field =
                field.is_stored() && !field.kind.is_id() && field.value_source == ValueSource::Client;
            if is_given[i] || !is_client_field {
                continue;
            }
            match &field.default {
                Some(default) => self.accept_field(FieldId(i), field, default),
                None => self.accept_field(FieldId(i), field, &Value::Null),
            }
        }
    }

    fn set_timestamps(&mut self, kinds: &[ValueSource]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            if kinds.contains(&field.value_source) {
                self.values.push((FieldId(i), StoredValue::Text(date_times::format_timestamp(self.now))));
            }
        }
    }
}
