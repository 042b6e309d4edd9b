//! A submitted form: the text of each field, and the form's own controls.

use indexmap::IndexMap;

use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::{FieldId, Model, RecordType, ValueType};

use crate::field_values::FieldValues;
use crate::forms::form_tree::ControlNode;
use crate::forms::typed_values::ControlReader;

/// Names of controls that no field can have. `-find.NAME` and `-found.NAME` are the new and former search texts of NAME.
pub const KEY_CONTROL: &str = "-key";
pub const VERSION_CONTROL: &str = "-version";
pub const FIND_CONTROL: &str = "-find";
pub const ADD_CONTROL: &str = "-add";
pub const REMOVE_CONTROL: &str = "-remove";
pub const ENTER_CONTROL: &str = "-enter";
const FOUND_CONTROL: &str = "-found";

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
    /// A button that submits the form without saving it.
    pub button: Option<FormButton>,
    /// Fields without a control.
    pub hidden_fields: Vec<FieldId>,
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
    /// Violations of fields without a value, because their text is not one.
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
        // If Enter was pressed and a search text differs from the shown one, it was most likely pressed there.
        let is_new = |(name, text): (&String, &String)| {
            text != input.shown_searches.get(name).map_or("", String::as_str)
        };
        if by_enter && input.searches.iter().any(is_new) {
            input.button = Some(FormButton::Find);
        }
        input
    }

    /// Takes one of the form's own controls; false for other names.
    fn take_control(&mut self, name: &str, text: &str) -> bool {
        match name {
            KEY_CONTROL => self.key = Some(text.to_owned()),
            VERSION_CONTROL => self.version = Some(text.to_owned()),
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

    /// Applies a button that adds or removes a group.
    pub fn apply_button(&mut self, record: &RecordType) {
        let (name, add) = match self.button.take() {
            Some(FormButton::Add(name)) => (name, true),
            Some(FormButton::Remove(name)) => (name, false),
            Some(FormButton::Find) | None => return,
        };
        let Some(id) = control_field(record, &name) else { return };
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
        self.nodes.values_mut().for_each(drop_blank_groups);
        self
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
