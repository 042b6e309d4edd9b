//! Values of one write: coerced, completed by defaults and timestamps, every violation collected.

use trefoil_model::access::AccessVerdict;
use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::values::{coerce, date_times};
use trefoil_model::{
    Field, FieldId, KeyForm, KeySource, Model, RecordId, RecordType, RecordTypeId, Scalar, StoredValue,
    Value, ValueSource,
};

use crate::operation::{FillValue, FilledField, MissingFields};
use crate::plan::plan_context::{PlanContext, WriteOrigin};
use crate::plan::write_refusal::WriteRefusal;

use crate::plan::predicate::under_field;

/// The greatest id that a client may choose: all numbers up to it are exact in JavaScript.
const MAX_CHOSEN_ID: i64 = 9_007_199_254_740_991;

/// The same where ids are of GraphQL's type Int, which ends a million ids later.
const MAX_CHOSEN_INT_ID: i64 = i32::MAX as i64 - 1_000_000;

/// The validated values of one write.
#[derive(Default)]
pub(crate) struct PlannedValues {
    /// Of a new record; `None` if the store counts it up.
    pub id: Option<RecordId>,
    pub values: Vec<(FieldId, StoredValue)>,
    pub links: Vec<(FieldId, Vec<RecordId>)>,
}

/// Collects and validates the values of one write.
pub(crate) struct WritePlanner<'a> {
    pub(super) planning: PlanContext<'a>,
    model: &'a Model,
    pub(super) record_id: RecordTypeId,
    pub(super) record: &'a RecordType,
    /// Fields that get their content from other records of a nested write.
    supplied_fields: Vec<FieldId>,
    pub(super) planned: PlannedValues,
    pub(super) violations: Vec<Violation>,
    pub(super) refusal: WriteRefusal,
}

impl<'a> WritePlanner<'a> {
    pub(crate) fn new(planning: PlanContext<'a>, record: RecordTypeId) -> Self {
        WritePlanner {
            planning,
            model: planning.model,
            record_id: record,
            record: planning.model.record(record),
            supplied_fields: Vec::new(),
            planned: PlannedValues::default(),
            violations: Vec::new(),
            refusal: WriteRefusal::default(),
        }
    }

    /// These fields get their content from other records of a nested write.
    pub(crate) fn with_supplied(self, supplied_fields: Vec<FieldId>) -> Self {
        WritePlanner { supplied_fields, ..self }
    }

    pub(crate) fn plan_create(
        mut self,
        id: Option<RecordId>,
        fields: Vec<(FieldId, Value)>,
        filled_fields: &[FilledField],
    ) -> Result<PlannedValues> {
        self.planned.id = id;
        let mut is_given = self.accept_all(fields);
        self.complete_id();
        if self.planning.origin == WriteOrigin::Client {
            self.check_counted_id();
        }
        self.fill_fields(filled_fields.iter(), &mut is_given);
        self.fill_missing(&is_given);
        self.set_timestamps(&[ValueSource::CreationTime, ValueSource::UpdateTime]);
        self.fill_accounts(&[ValueSource::CreatingAccount, ValueSource::UpdatingAccount], &is_given);
        self.finish()
    }

    pub(crate) fn plan_import(
        mut self,
        id: Option<RecordId>,
        fields: Vec<(FieldId, Value)>,
    ) -> Result<PlannedValues> {
        self.planned.id = id;
        self.complete_id();
        let is_timestamp = |id: &FieldId| match self.record.field(*id).value_source {
            ValueSource::CreationTime | ValueSource::UpdateTime => true,
            ValueSource::Client
            | ValueSource::RecordVersion
            | ValueSource::CreatingAccount
            | ValueSource::UpdatingAccount => false,
        };
        let (timestamps, client_fields): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(id, _)| is_timestamp(id));
        let is_given = self.accept_all(client_fields);
        self.fill_missing(&is_given);
        self.set_timestamps(&[ValueSource::CreationTime, ValueSource::UpdateTime]);
        self.fill_accounts(&[ValueSource::CreatingAccount, ValueSource::UpdatingAccount], &is_given);
        for (id, value) in timestamps.iter().filter(|(_, value)| !value.is_null()) {
            self.planned.values.retain(|(existing, _)| existing != id);
            self.accept_field(*id, self.record.field(*id), value);
        }
        self.finish()
    }

    pub(crate) fn plan_update(
        mut self,
        fields: Vec<(FieldId, Value)>,
        filled_fields: &[FilledField],
        missing_fields: MissingFields,
    ) -> Result<PlannedValues> {
        let fields = self.without_shown_nulls(fields, missing_fields);
        let unsettable = self.unsettable_fields(&fields, missing_fields);
        let mut is_given = self.accept_all(fields);
        self.refuse_never_shown(&unsettable);
        if self.changes_record() {
            self.fill_fields(filled_fields.iter().filter(|filled| filled.on_update), &mut is_given);
        }
        if missing_fields == MissingFields::Reset {
            let is_kept: Vec<bool> = is_given
                .iter()
                .enumerate()
                .map(|(i, given)| *given || self.is_left_alone(FieldId(i)))
                .collect();
            self.fill_missing(&is_kept);
        }
        if self.changes_record() {
            self.set_timestamps(&[ValueSource::UpdateTime]);
            self.fill_accounts(&[ValueSource::UpdatingAccount], &is_given);
        }
        self.finish()
    }

    /// Who overwrites a record sends back what they were shown: a null that stands for a hidden value changes nothing.
    fn without_shown_nulls(
        &self,
        mut fields: Vec<(FieldId, Value)>,
        missing_fields: MissingFields,
    ) -> Vec<(FieldId, Value)> {
        if let (Some(view), MissingFields::Reset) = (self.planning.authority.view(), missing_fields) {
            let is_seen = |field| view.field_verdict(self.record_id, field) == AccessVerdict::Yes;
            fields.retain(|(field, value)| !value.is_null() || is_seen(*field));
        }
        fields
    }

    /// True for a field that is not reset: the actor may not see it in every record, or not set it.
    fn is_left_alone(&self, field: FieldId) -> bool {
        self.planning.authority.view().is_some_and(|view| {
            let update = view.of_type(self.record_id).fields[field.0].update.verdict();
            view.field_verdict(self.record_id, field) != AccessVerdict::Yes || update != AccessVerdict::Yes
        })
    }

    fn changes_record(&self) -> bool {
        let PlannedValues { values, links, .. } = &self.planned;
        !(values.is_empty() && links.is_empty() && self.supplied_fields.is_empty())
    }

    fn finish(mut self) -> Result<PlannedValues> {
        self.refusal.check()?;
        if self.violations.is_empty() { Ok(self.planned) } else { Err(Error::Invalid(self.violations)) }
    }

    /// Checks the id that the client chose, or generates one where the store does not count it up.
    fn complete_id(&mut self) {
        let field = self.record.field(self.record.id_field());
        match (&self.planned.id, self.record.key_source) {
            (Some(id), _) => self.violations.extend(coerce::chosen_id_violations(self.record, id)),
            (None, KeySource::Counter) => {}
            (None, KeySource::Generator) => self.planned.id = Some(RecordId::generate()),
            (None, KeySource::Client)
                if self.violations.iter().any(|violation| is_under(violation, field)) => {}
            (None, KeySource::Client) => {
                let message = format!("{} is required", field.label());
                self.violations.push(Violation::new(&field.input_name, "REQUIRED", message));
            }
        }
    }

    /// Counted ids continue after the greatest one, so one that a client chooses must leave room for the following.
    fn check_counted_id(&mut self) {
        let max = match self.record.key_form() {
            KeyForm::Digits => MAX_CHOSEN_ID,
            KeyForm::Number => MAX_CHOSEN_INT_ID,
            KeyForm::Uuid | KeyForm::Text => return,
        };
        let field = self.record.field(self.record.id_field());
        match self.planned.id {
            Some(RecordId::Number(id))
                if !(1..=max).contains(&id)
                    && !self.violations.iter().any(|violation| is_under(violation, field)) =>
            {
                let message = format!("{} must be between 1 and {max}", field.label());
                self.violations.push(Violation::new(&field.input_name, "RANGE", message));
            }
            Some(_) | None => {}
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
            } else if self.refuses_account(field) {
                // Said with all that the actor may not set.
            } else if field.value_source != ValueSource::Client && !field.value_source.is_account() {
                let message = format!("`{}` is set by the server and cannot be written", field.name);
                self.violations.push(Violation::new(&field.input_name, "READ_ONLY", message));
            } else {
                self.accept_field(id, field, &value);
            }
        }
        for id in self.supplied_fields.clone() {
            let field = self.record.field(id);
            self.refuses_account(field);
            if std::mem::replace(&mut is_given[id.0], true) {
                let message =
                    format!("`{}` follows from another record of this write; leave it out", field.input_name);
                self.violations.push(Violation::new(&field.input_name, "TWICE", message));
            }
        }
        is_given
    }

    pub(super) fn accept_field(&mut self, id: FieldId, field: &Field, value: &Value) {
        if let Some(form) = field.kind.key_form() {
            match RecordId::from_value(form, value) {
                Ok(id) => self.planned.id = Some(id),
                Err(_) if value.is_null() => {}
                Err(help) => {
                    let message = format!("{} {help}", field.label());
                    self.violations.push(Violation::new(&field.input_name, "TYPE", message));
                }
            }
            return;
        }
        if let Some(link) = field.kind.link() {
            let none = Value::List(Vec::new());
            match coerce::link_ids(link, field, if value.is_null() { &none } else { value }) {
                Ok(ids) => self.planned.links.push((id, ids)),
                Err(violations) => self.violations.extend(under_field(field, violations)),
            }
            return;
        }
        match coerce::coerce_field(self.model, field, value) {
            Ok(stored) => self.planned.values.push((id, stored)),
            Err(violations) => self.violations.extend(under_field(field, violations)),
        }
    }

    /// Gives fields that the operation fills their value, unless one is given.
    fn fill_fields<'f>(&mut self, filled: impl Iterator<Item = &'f FilledField>, is_given: &mut [bool]) {
        for FilledField { field: id, value, .. } in filled {
            if std::mem::replace(&mut is_given[id.0], true) {
                continue;
            }
            let field = self.record.field(*id);
            let value = match value {
                FillValue::CurrentTime => Value::String(self.current_time(field)),
                FillValue::CurrentDate => {
                    let PlanContext { limits, time, .. } = self.planning;
                    Value::String(limits.time_zone.day(time.get()))
                }
                FillValue::False => Value::Bool(false),
                FillValue::EmptyList => Value::List(Vec::new()),
            };
            self.accept_field(*id, field, &value);
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
            match (&field.default, &field.default_from) {
                (Some(default), _) => self.accept_field(FieldId(i), field, default),
                (None, Some(source)) => self.fill_from_actor(FieldId(i), field, source),
                (None, None) => self.accept_field(FieldId(i), field, &Value::Null),
            }
        }
    }

    /// The time of the request for a field, as it is stored: what clocks of the application show if the field has no zone.
    pub(super) fn current_time(&self, field: &Field) -> String {
        let PlanContext { limits, time, .. } = self.planning;
        match field.kind.scalar() == Some(Scalar::LocalDateTime) {
            true => limits.time_zone.clock_time(time.get()),
            false => date_times::format_timestamp(time.get()),
        }
    }

    fn set_timestamps(&mut self, kinds: &[ValueSource]) {
        for (i, field) in self.record.fields.iter().enumerate() {
            if kinds.contains(&field.value_source) {
                self.planned.values.push((FieldId(i), StoredValue::Text(self.current_time(field))));
            }
        }
    }
}

/// True if the violation is one of this field.
pub(super) fn is_under(violation: &Violation, field: &Field) -> bool {
    violation.path.first() == Some(&PathSegment::Field(field.input_name.clone()))
}
