//! A submitted form: the text of each field, and the form's own controls.

use indexmap::IndexMap;

use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::{FieldId, Model, RecordType, ValueType};

use crate::collection::NestedCollection;
use crate::field_values::FieldValues;
use crate::forms::edited_lists::{MAX_ROWS, RowPairs, edited_lists, split_rows};
use crate::forms::form_tree::{ControlNode, child_number};
use crate::forms::typed_values::ControlReader;

/// Names of controls that no field can have. `-find.NAME` and `-found.NAME` are the new and former search texts of NAME.
pub const KEY_CONTROL: &str = "-key";
pub const VERSION_CONTROL: &str = "-version";
pub const BASE_CONTROL: &str = "-base";
pub const FIND_CONTROL: &str = "-find";
pub const ADD_CONTROL: &str = "-add";
pub const REMOVE_CONTROL: &str = "-remove";
pub const ENTER_CONTROL: &str = "-enter";
const FOUND_CONTROL: &str = "-found";

/// Names of controls in the row of a stored record: `lines.0.-id`.
pub const ROW_ID_CONTROL: &str = "-id";
pub const ROW_DELETE_CONTROL: &str = "-delete";

/// The input of a form by field.
#[derive(Debug, Clone, Default)]
pub struct FormInput {
    pub nodes: IndexMap<FieldId, ControlNode>,
    /// Search texts for records to reference, by control name.
    pub searches: IndexMap<String, String>,
    /// The searches whose results the form already shows.
    pub shown_searches: IndexMap<String, String>,
    pub key: Option<String>,
    pub version: Option<String>,
    /// What the fields were when the form was made, as text.
    pub base: Option<String>,
    /// A button that submits the form without saving it.
    pub button: Option<FormButton>,
    /// Fields without a control.
    pub hidden_fields: Vec<FieldId>,
    /// The records that belong to this one, by list.
    pub child_rows: IndexMap<FieldId, Vec<ChildRow>>,
    /// The name of the row or list that a button has changed.
    pub changed_part: Option<String>,
}

/// One of the records that belong to the record of a form.
#[derive(Debug, Clone, Default)]
pub struct ChildRow {
    /// The id of a stored record, as text.
    pub id: Option<String>,
    /// A stored record that is to be deleted.
    pub is_deleted: bool,
    /// A stored record that does not belong to this one, or not any more.
    pub is_lost: bool,
    /// Its controls. The version is that of the record.
    pub input: FormInput,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormButton {
    /// Search for records to reference.
    Find,
    /// Add a group to the list with this name.
    Add(String),
    /// Remove the group with this name.
    Remove(String),
}

/// The typed values of a form.
pub struct FormValues {
    pub fields: FieldValues,
    /// Violations of fields whose text could not be read as a value.
    pub violations: Vec<Violation>,
}

impl FormInput {
    pub fn from_pairs(record: &RecordType, pairs: &FormPairs) -> FormInput {
        let mut input = FormInput::default();
        let mut by_enter = false;
        for (name, text) in pairs {
            by_enter |= name == ENTER_CONTROL;
            if input.take_control(name, text) {
                continue;
            }
            let Some(id) = control_field(record, name) else { continue };
            let rest = name.split('.').skip(1);
            input.nodes.entry(id).or_default().add_text(rest, text);
        }
        input.find_by_enter(by_enter);
        input
    }

    /// The same with the rows of the records that belong to this one.
    pub fn with_rows(model: &Model, record: &RecordType, pairs: &FormPairs) -> Result<FormInput> {
        let lists: Vec<NestedCollection> = edited_lists(model, record).collect();
        if lists.is_empty() {
            return Ok(FormInput::from_pairs(record, pairs));
        }
        let (own_pairs, by_list) = split_rows(record, &lists, &[FIND_CONTROL, FOUND_CONTROL], pairs);
        let mut input = FormInput::from_pairs(record, &own_pairs);
        for (list, found) in lists.iter().zip(by_list) {
            input.add_rows(model, record, list, found)?;
        }
        input.find_by_enter(pairs.iter().any(|(name, _)| name == ENTER_CONTROL));
        Ok(input)
    }

    fn add_rows(
        &mut self,
        model: &Model,
        record: &RecordType,
        list: &NestedCollection,
        found: RowPairs,
    ) -> Result<()> {
        let (list_name, child) = (&record.field(list.field).input_name, model.record(list.record));
        let rows = found.into_iter();
        let rows =
            rows.filter_map(|(number, pairs)| Some((number, ChildRow::from_pairs(child, list, pairs)?)));
        let (numbers, rows): (Vec<u64>, Vec<ChildRow>) = rows.unzip();
        self.place_button(list_name, &numbers);
        let count = rows.len();
        if count > MAX_ROWS {
            let text = format!("{count} rows of `{list_name}` are too many for one form: at most {MAX_ROWS}");
            return Err(Error::Limit(text));
        }
        if !rows.is_empty() {
            self.child_rows.insert(list.field, rows);
        }
        Ok(())
    }

    /// Rows have numbers in a form, which may have gaps, and positions here: a button is to name the position.
    fn place_button(&mut self, list_name: &str, numbers: &[u64]) {
        let Some(FormButton::Add(name) | FormButton::Remove(name)) = &mut self.button else { return };
        let in_list = name.strip_prefix(list_name).and_then(|rest| rest.strip_prefix('.'));
        let Some((number, group)) = in_list.map(|rest| rest.split_once('.').unwrap_or((rest, ""))) else {
            return;
        };
        let position =
            child_number(number).and_then(|number| numbers.iter().position(|known| *known == number));
        // No row has the position after the last one.
        let position = position.unwrap_or(numbers.len());
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        *name = format!("{list_name}.{position}{group}");
    }

    /// If Enter was pressed and a search text differs from the shown one, it was most likely pressed there.
    fn find_by_enter(&mut self, by_enter: bool) {
        let rows = self.child_rows.values().flatten();
        if by_enter && (self.has_new_search() || { rows }.any(|row| row.input.has_new_search())) {
            self.button = Some(FormButton::Find);
        }
    }

    fn has_new_search(&self) -> bool {
        let shown = |name: &String| self.shown_searches.get(name).map_or("", String::as_str);
        self.searches.iter().any(|(name, text)| text != shown(name))
    }

    /// Takes one of the form's own controls; false for other names.
    fn take_control(&mut self, name: &str, text: &str) -> bool {
        match name {
            KEY_CONTROL => self.key = Some(text.to_owned()),
            VERSION_CONTROL => self.version = Some(text.to_owned()),
            BASE_CONTROL => self.base = Some(text.to_owned()),
            FIND_CONTROL => self.button = Some(FormButton::Find),
            ADD_CONTROL => self.button = Some(FormButton::Add(text.to_owned())),
            REMOVE_CONTROL => self.button = Some(FormButton::Remove(text.to_owned())),
            ENTER_CONTROL => {}
            _ => match name.split_once('.') {
                Some((FIND_CONTROL, control)) => {
                    drop(self.searches.insert(control.to_owned(), text.to_owned()))
                }
                Some((FOUND_CONTROL, control)) => {
                    drop(self.shown_searches.insert(control.to_owned(), text.to_owned()))
                }
                Some(_) | None => return false,
            },
        }
        true
    }

    /// Applies a button that adds or removes a row or a group.
    pub fn apply_button(&mut self, model: &Model, record: &RecordType) {
        let (name, add) = match self.button.take() {
            Some(FormButton::Add(name)) => (name, true),
            Some(FormButton::Remove(name)) => (name, false),
            Some(FormButton::Find) | None => return,
        };
        let (first, rest) = name.split_once('.').unwrap_or((name.as_str(), ""));
        match edited_lists(model, record).find(|list| record.field(list.field).input_name == first) {
            Some(list) => self.apply_to_rows(model.record(list.record), list.field, first, rest, add),
            None => self.apply_to_groups(record, &name, add),
        }
    }

    /// Adds or removes a row of a list, or a group in one of its rows; `rest` is the name below that of the list.
    fn apply_to_rows(&mut self, child: &RecordType, list: FieldId, name: &str, rest: &str, add: bool) {
        let rows = self.child_rows.entry(list).or_default();
        let (number, group) = rest.split_once('.').unwrap_or((rest, ""));
        let number: Option<usize> = number.parse().ok().filter(|number| *number < rows.len());
        match (number, group) {
            (None, _) if add && rest.is_empty() && rows.len() < MAX_ROWS => {
                self.changed_part = Some(format!("{name}.{}", rows.len()));
                rows.push(ChildRow::default());
            }
            (Some(number), "") if !add => {
                if rows[number].id.is_some() {
                    rows[number].is_deleted = true;
                } else {
                    rows.remove(number);
                }
                self.changed_part = Some(name.to_owned());
            }
            (Some(number), group) => rows[number].input.apply_to_groups(child, group, add),
            (None, _) => {}
        }
    }

    fn apply_to_groups(&mut self, record: &RecordType, name: &str, add: bool) {
        let Some(id) = control_field(record, name) else { return };
        let mut segments: Vec<&str> = name.split('.').skip(1).collect();
        let removed = if add { None } else { segments.pop() };
        let list = segments
            .iter()
            .try_fold(self.nodes.entry(id).or_default(), |node, segment| node.children.get_mut(*segment));
        let Some(list) = list else { return };
        if let Some(removed) = removed {
            list.children.shift_remove(removed);
        }
        let mut items: Vec<ControlNode> = list.numbered_children().into_iter().cloned().collect();
        if add {
            items.push(ControlNode::default());
        }
        *list = ControlNode::from_items(items);
    }

    /// Drops blank groups, which are not values, so that groups have the numbers that violations use.
    pub fn without_blank_groups(mut self) -> FormInput {
        self.drop_blank_groups();
        self
    }

    fn drop_blank_groups(&mut self) {
        self.nodes.values_mut().for_each(drop_blank_groups);
        self.child_rows.values_mut().flatten().for_each(|row| row.input.drop_blank_groups());
    }

    /// The rows of a list.
    pub fn rows(&self, list: FieldId) -> &[ChildRow] {
        self.child_rows.get(&list).map(Vec::as_slice).unwrap_or_default()
    }

    /// Turns the rows into new ones, without those that were to be deleted.
    pub fn forget_stored_rows(&mut self) {
        for rows in self.child_rows.values_mut() {
            rows.retain(|row| !row.is_deleted);
            rows.iter_mut().for_each(ChildRow::forget_record);
        }
    }

    /// Leaves out fields that the actor may not set, and their controls.
    pub fn close_fields(&mut self, closed: Vec<FieldId>) {
        self.nodes.retain(|field, _| !closed.contains(field));
        self.hidden_fields.extend(closed);
    }

    pub fn read_values(&self, model: &Model, record: &RecordType) -> FormValues {
        let mut values = FormValues { fields: FieldValues::new(), violations: Vec::new() };
        for (id, node) in &self.nodes {
            let mut reader = ControlReader::new(model);
            let value = reader.read_field(record.field(*id), node);
            if reader.violations.is_empty() {
                values.fields.push((*id, value));
            }
            values.violations.append(&mut reader.violations);
        }
        values
    }
}

impl ChildRow {
    /// The row; `None` if no name is one of its controls. Other names are ignored, as in the form of a record alone.
    fn from_pairs(child: &RecordType, list: &NestedCollection, pairs: FormPairs) -> Option<ChildRow> {
        let (mut row, mut own_pairs, mut is_row) = (ChildRow::default(), FormPairs::new(), false);
        for (name, text) in pairs {
            let prefix = name.split_once('.').map_or(name.as_str(), |(first, _)| first);
            match prefix {
                ROW_ID_CONTROL => row.id = Some(text).filter(|text| !text.is_empty()),
                ROW_DELETE_CONTROL => row.is_deleted = text == "true",
                VERSION_CONTROL | FIND_CONTROL | FOUND_CONTROL => own_pairs.push((name, text)),
                // The reference to the record of the form is not a control: a row cannot be moved to another one.
                _ if control_field(child, &name).is_some_and(|id| Some(id) != list.reference()) => {
                    own_pairs.push((name, text));
                }
                _ => continue,
            }
            is_row = true;
        }
        row.input = FormInput { button: None, ..FormInput::from_pairs(child, &own_pairs) };
        is_row.then_some(row)
    }

    /// Turns the row into a new one.
    pub fn forget_record(&mut self) {
        self.id = None;
        self.input.version = None;
    }
}

/// The place of a row.
pub fn row_path(list_name: &str, row: usize) -> Vec<PathSegment> {
    vec![PathSegment::Field(list_name.to_owned()), PathSegment::Index(row)]
}

fn drop_blank_groups(node: &mut ControlNode) {
    node.children.values_mut().for_each(drop_blank_groups);
    if node.numbered_children().len() == node.children.len() && !node.children.is_empty() {
        let items = node.numbered_children().into_iter().filter(|item| !item.is_blank()).cloned().collect();
        node.children = ControlNode::from_items(items).children;
    }
}

/// The field of a control; `None` for unknown names.
pub fn control_field(record: &RecordType, name: &str) -> Option<FieldId> {
    let (first, inside) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let id = record.find_input_field(first).filter(|id| record.is_set_on_create(record.field(*id)))?;
    // Only fields with parts have dotted names: `name.txt` may be plain text.
    let has_parts = record.field(id).kind.value_type().is_some_and(ValueType::has_parts);
    (inside.is_none() || has_parts).then_some(id)
}

/// True if a violation is about this field or a part of it.
pub fn concerns_field(violation: &Violation, name: &str) -> bool {
    matches!(violation.path.first(), Some(PathSegment::Field(first)) if first == name)
}
