//! `ChildWrites`: what a submitted form does with the records that belong to its own.

use std::collections::HashSet;

use trefoil_engine::{RecordInput, RelatedInput};
use trefoil_model::error::{Error, PathSegment, Violation};
use trefoil_model::{Model, RecordId, RecordType};
use trefoil_resources::collection::NestedCollection;
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::forms::edited_lists::edited_lists;
use trefoil_resources::forms::form_input::{ChildRow, FormInput, FormValues, concerns_field, row_path};

use crate::form::editable_record::EditableRecord;
use crate::form::empty_rows::is_empty_row;
use crate::labels::noun_form;

/// The changes to the lists of a record, and the mistakes in their rows.
pub struct ChildWrites<'m> {
    model: &'m Model,
    record: &'m RecordType,
    lists: Vec<ListWrites>,
    pub violations: Vec<Violation>,
    /// A record that is to be changed or deleted was changed or deleted by someone else, or never belonged here.
    pub has_conflict: bool,
}

/// The changes to one list, each with the row that it is from.
struct ListWrites {
    list: NestedCollection,
    related: RelatedInput,
    created_rows: Vec<usize>,
    updated_rows: Vec<usize>,
    deleted_rows: Vec<usize>,
}

/// The place of a message on the page: the field or list, the row, the field in the row.
type PagePosition = (usize, usize, usize);

impl<'m> ChildWrites<'m> {
    /// `stored` is the record with the records that the rows name; `None` for a new record.
    pub fn read(
        model: &'m Model,
        record: &'m RecordType,
        input: &FormInput,
        stored: Option<&EditableRecord>,
    ) -> ChildWrites<'m> {
        let mut writes = ChildWrites::none(model, record);
        for list in edited_lists(model, record) {
            let stored = stored.map(|stored| {
                let of_list = stored.lists.iter().find(|known| known.list.field == list.field);
                of_list.map_or(&[][..], |stored| &stored.rows)
            });
            writes.read_list(list, input, stored);
        }
        writes
    }

    /// No changes.
    pub fn none(model: &'m Model, record: &'m RecordType) -> ChildWrites<'m> {
        ChildWrites { model, record, lists: Vec::new(), violations: Vec::new(), has_conflict: false }
    }

    fn read_list(
        &mut self,
        list: NestedCollection,
        input: &FormInput,
        stored: Option<&[(RecordId, EditableRecord)]>,
    ) {
        let mut writes = ListWrites {
            related: RelatedInput::new(list.field),
            list,
            created_rows: Vec::new(),
            updated_rows: Vec::new(),
            deleted_rows: Vec::new(),
        };
        let (child, mut seen) = (self.model.record(writes.list.record), HashSet::new());
        let noun = noun_form(&child.label());
        for (number, row) in input.rows(writes.list.field).iter().enumerate() {
            let Some(id_text) = &row.id else {
                self.read_new_row(&mut writes, child, number, row);
                continue;
            };
            let id = RecordId::from_text(child.key_form(), id_text).ok();
            let known = |(known, _): &&(RecordId, EditableRecord)| Some(known) == id.as_ref();
            match stored.map(|stored| stored.iter().find(known)) {
                Some(Some((id, _))) if !seen.insert(id) => {
                    self.complain(&writes, number, "TWICE", format!("this {noun} is in the form twice"));
                }
                Some(Some((id, stored))) => {
                    self.read_stored_row(&mut writes, child, number, row, (id, stored));
                }
                Some(None) => self.has_conflict = true,
                None => {
                    let message = format!("this {noun} belongs to another record");
                    self.complain(&writes, number, "NOT_RELATED", message);
                }
            }
        }
        self.lists.push(writes);
    }

    fn read_new_row(&mut self, writes: &mut ListWrites, child: &RecordType, number: usize, row: &ChildRow) {
        if row.is_deleted || is_empty_row(self.model, child, &writes.list, row) {
            return;
        }
        let fields = self.read_values(writes, child, number, row);
        writes.related.create.push(RecordInput { fields, ..RecordInput::default() });
        writes.created_rows.push(number);
    }

    fn read_stored_row(
        &mut self,
        writes: &mut ListWrites,
        child: &RecordType,
        number: usize,
        row: &ChildRow,
        (id, stored): (&RecordId, &EditableRecord),
    ) {
        // A row that is sent by hand needs no version, like a form. A malformed version matches no record.
        let version = row.input.version.as_ref().map(|version| version.trim().parse::<i64>());
        let is_current = version.is_none_or(|version| version == Ok(stored.version));
        if row.is_deleted {
            self.has_conflict |= !is_current;
            writes.related.delete.push(id.clone());
            writes.deleted_rows.push(number);
            writes.related.expected_versions.push((id.clone(), stored.version));
            return;
        }
        let before = self.violations.len();
        let mut fields = self.read_values(writes, child, number, row);
        fields.retain(|(field, _)| *field != child.id_field());
        let mut changed = stored.changed_fields(self.model, child, fields);
        changed.retain(|(field, value)| {
            let is_stored = stored.values.iter().any(|(known, now)| known == field && now == value);
            Some(*field) != writes.list.reference() && !is_stored
        });
        if changed.is_empty() && self.violations.len() == before {
            return;
        }
        self.has_conflict |= !is_current;
        let input = RecordInput { fields: changed, ..RecordInput::default() };
        writes.related.update.push((id.clone(), input));
        writes.updated_rows.push(number);
        writes.related.expected_versions.push((id.clone(), stored.version));
    }

    fn read_values(
        &mut self,
        writes: &ListWrites,
        child: &RecordType,
        number: usize,
        row: &ChildRow,
    ) -> FieldValues {
        let FormValues { fields, violations } = row.input.read_values(self.model, child);
        for mut violation in violations {
            violation.path.splice(0..0, row_path(self.list_name(writes), number));
            self.violations.push(violation);
        }
        fields
    }

    fn complain(&mut self, writes: &ListWrites, number: usize, code: &'static str, message: String) {
        let path = row_path(self.list_name(writes), number);
        self.violations.push(Violation { path, code, message });
    }

    fn list_name(&self, writes: &ListWrites) -> &'m str {
        &self.record.field(writes.list.field).input_name
    }

    /// The changes, for the lists that have any.
    pub fn related(&self) -> Vec<RelatedInput> {
        let lists = self.lists.iter().map(|writes| &writes.related);
        let is_changed = |related: &&RelatedInput| {
            !related.create.is_empty() || !related.update.is_empty() || !related.delete.is_empty()
        };
        lists.filter(is_changed).cloned().collect()
    }

    /// The error with its violations at their rows, in the order of the page.
    pub fn place_error(&self, mut error: Error) -> Error {
        if let Error::Invalid(violations) | Error::Conflict(violations) = &mut error
            && !self.lists.is_empty()
        {
            *violations = self.place(std::mem::take(violations));
        }
        error
    }

    pub fn place(&self, mut violations: Vec<Violation>) -> Vec<Violation> {
        violations.iter_mut().for_each(|violation| self.place_violation(violation));
        self.sort(&mut violations);
        violations
    }

    /// Replaces the place in the operation by that on the form: `lines.update[0].input.price` by `lines[3].price`.
    fn place_violation(&self, violation: &mut Violation) {
        let Some(writes) = self.list_of(violation) else { return };
        let row_of = |rows: &[usize], index: usize| rows.get(index).copied();
        let (row, length) = match &violation.path[1..] {
            [PathSegment::Index(index), ..] => (row_of(&writes.created_rows, *index), 1),
            [PathSegment::Field(member), PathSegment::Index(index), rest @ ..] => match member.as_str() {
                "update" => (row_of(&writes.updated_rows, *index), 2 + rest.len().min(1)),
                "delete" => (row_of(&writes.deleted_rows, *index), 2 + rest.len()),
                _ => return,
            },
            _ => return,
        };
        if let Some(row) = row {
            violation.path.splice(0..=length, row_path(self.list_name(writes), row));
        }
    }

    /// Sorts violations as their controls are on the page: the lists come after the fields.
    pub fn sort(&self, violations: &mut [Violation]) {
        violations.sort_by_key(|violation| self.page_position(violation));
    }

    fn page_position(&self, violation: &Violation) -> PagePosition {
        let fields = &self.record.fields;
        let position =
            |record: &RecordType, name: &str| record.fields.iter().position(|field| field.input_name == name);
        let Some(writes) = self.list_of(violation) else {
            let own = fields.iter().position(|field| concerns_field(violation, &field.input_name));
            return (own.unwrap_or(fields.len()), 0, 0);
        };
        let list = fields.len() + 1 + writes.list.field.0;
        match &violation.path[1..] {
            [PathSegment::Index(row), PathSegment::Field(field), ..] => {
                let child = self.model.record(writes.list.record);
                (list, *row, position(child, field).map_or(usize::MAX, |position| position + 1))
            }
            [PathSegment::Index(row), ..] => (list, *row, 0),
            _ => (list, 0, 0),
        }
    }

    /// True if both are about the same field, of the record or of a row.
    pub fn is_same_field(&self, one: &Violation, other: &Violation) -> bool {
        let length = if self.list_of(one).is_some() { 3 } else { 1 };
        one.path.iter().take(length).eq(other.path.iter().take(length))
    }

    fn list_of(&self, violation: &Violation) -> Option<&ListWrites> {
        self.lists.iter().find(|writes| concerns_field(violation, self.list_name(writes)))
    }
}

/// True if the write failed because a record in a row was changed or deleted while the form was being processed.
pub fn is_row_conflict(error: &Error) -> bool {
    error.violations().iter().any(|violation| ["STALE", "NOT_RELATED"].contains(&violation.code))
}
