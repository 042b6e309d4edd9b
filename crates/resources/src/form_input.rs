//! A form as it was filled in: what was typed for which field, what it means, and what is not for any field.

use indexmap::IndexMap;

use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::{FieldId, FieldKind, Model, RecordType};

use crate::control_tree::ControlNode;
use crate::field_values::FieldValues;
use crate::typed_values::ControlReader;

/// Names that no field can have; `-find.` goes before the name of what is looked for, `-found.` where it was.
pub const KEY_CONTROL: &str = "-key";
pub const VERSION_CONTROL: &str = "-version";
pub const FIND_CONTROL: &str = "-find";
pub const ADD_CONTROL: &str = "-add";
pub const REMOVE_CONTROL: &str = "-remove";
pub const ENTER_CONTROL: &str = "-enter";
const FOUND_CONTROL: &str = "-found";

/// What was typed, by field.
#[derive(Debug, Clone, Default)]
pub struct FormInput {
    pub nodes: IndexMap<FieldId, ControlNode>,
    /// What was typed to look for something to refer to, by the name of the control.
    pub searches: IndexMap<String, String>,
    /// What of it the form shows already.
    pub shown_searches: IndexMap<String, String>,
    pub key: Option<String>,
    pub version: Option<String>,
    /// A button that sends the form without meaning it.
    pub button: Option<FormButton>,
    /// Fields that get no control.
    pub hidden_fields: Vec<FieldId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormButton {
    /// Look for what to refer to.
    Find,
    /// One group more in the list with this name.
    Add(String),
    /// Without the group of this name.
    Remove(String),
}

/// What a form means.
pub struct FormValues {
    pub fields: FieldValues,
    /// Of fields that are not among the others: what was typed there is no value at all.
    pub violations: Vec<Violation>,
}

impl FormInput {
    pub fn from_pairs(record: &RecordType, pairs: &FormPairs) -> FormInput {
        let mut filled = FormInput::default();
        let mut is_by_enter = false;
        for (name, text) in pairs {
            is_by_enter |= name == ENTER_CONTROL;
            if filled.take_control(name, text) {
                continue;
            }
            let Some(id) = control_field(record, name) else { continue };
            let below = name.split('.').skip(1);
            filled.nodes.entry(id).or_default().add_text(below, text);
        }
        // The return key was most likely pressed where another thing stands to be looked for than was.
        let is_new = |(name, text): (&String, &String)| {
            text != filled.shown_searches.get(name).map_or("", String::as_str)
        };
        if is_by_enter && filled.searches.iter().any(is_new) {
            filled.button = Some(FormButton::Find);
        }
        filled
    }

    /// Whether it was one of our own names.
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

    /// Does what a button says that only changes the form.
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

    /// Groups in which nothing was typed are no values, so those that are have the numbers that complaints give them.
    pub fn without_blank_groups(mut self) -> FormInput {
        self.nodes.values_mut().for_each(drop_blank_groups);
        self
    }

    pub fn read_values(&self, model: &Model, record: &RecordType) -> FormValues {
        let mut meant = FormValues { fields: FieldValues::new(), violations: Vec::new() };
        for (id, node) in &self.nodes {
            let mut reader = ControlReader::new(model);
            let value = reader.read_field(record.field(*id), node);
            if reader.violations.is_empty() {
                meant.fields.push((*id, value));
            }
            meant.violations.append(&mut reader.violations);
        }
        meant
    }
}

fn drop_blank_groups(node: &mut ControlNode) {
    node.children.values_mut().for_each(drop_blank_groups);
    if node.numbered_children().len() == node.children.len() && !node.children.is_empty() {
        let items = node.numbered_children().into_iter().filter(|item| !item.is_blank()).cloned().collect();
        node.children = ControlNode::from_items(items).children;
    }
}

/// The field that a control of a form is for; others are ignored.
pub fn control_field(record: &RecordType, name: &str) -> Option<FieldId> {
    let (first, inside) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let id = record.find_input_field(first).filter(|id| record.field(*id).is_writable())?;
    // What has no parts has no names inside: `name.txt` may well be a text.
    let has_parts = matches!(record.field(id).kind, FieldKind::Embedded(_) | FieldKind::List(_));
    (inside.is_none() || has_parts).then_some(id)
}

/// Whether a complaint is about this field or something inside of it.
pub fn concerns_field(violation: &Violation, name: &str) -> bool {
    matches!(violation.path.first(), Some(PathSegment::Field(first)) if first == name)
}
