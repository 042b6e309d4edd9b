//! A form as it was filled in: what was typed for which field, what it means, and what is not for any field.

use indexmap::IndexMap;

use crate::control_tree::Node;
use crate::field_values::Fields;
use crate::typed_values::Reader;
use trefoil_http::form_pairs::Pairs;
use trefoil_model::error::{Segment, Violation};
use trefoil_model::{FieldId, Kind, Model, RecordType};

/// Names that no field can have; `-find.` goes before the name of what is looked for, `-found.` where it was.
pub const KEY: &str = "-key";
pub const VERSION: &str = "-version";
pub const FIND: &str = "-find";
pub const ADD: &str = "-add";
pub const REMOVE: &str = "-remove";
pub const ENTER: &str = "-enter";
const FOUND: &str = "-found";

/// What was typed, by field.
#[derive(Debug, Clone, Default)]
pub struct Filled {
    pub nodes: IndexMap<FieldId, Node>,
    /// What was typed to look for something to refer to, by the name of the control.
    pub sought: IndexMap<String, String>,
    /// What of it the form shows already.
    pub found: IndexMap<String, String>,
    pub key: Option<String>,
    pub version: Option<String>,
    /// A button that sends the form without meaning it.
    pub pressed: Option<Press>,
    /// Fields that get no control.
    pub hidden: Vec<FieldId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Press {
    /// Look for what to refer to.
    Find,
    /// One group more in the list with this name.
    Add(String),
    /// Without the group of this name.
    Remove(String),
}

/// What a form means.
pub struct Meant {
    pub fields: Fields,
    /// Of fields that are not among the others: what was typed there is no value at all.
    pub violations: Vec<Violation>,
}

impl Filled {
    pub fn of(record: &RecordType, pairs: &Pairs) -> Filled {
        let mut filled = Filled::default();
        let mut is_by_enter = false;
        for (name, text) in pairs {
            is_by_enter |= name == ENTER;
            if filled.take(name, text) {
                continue;
            }
            let Some(id) = of_control(record, name) else { continue };
            let below = name.split('.').skip(1);
            filled.nodes.entry(id).or_default().add(below, text);
        }
        // The return key was most likely pressed where another thing stands to be looked for than was.
        let is_new =
            |(name, text): (&String, &String)| text != filled.found.get(name).map_or("", String::as_str);
        if is_by_enter && filled.sought.iter().any(is_new) {
            filled.pressed = Some(Press::Find);
        }
        filled
    }

    /// Whether it was one of our own names.
    fn take(&mut self, name: &str, text: &str) -> bool {
        match name {
            KEY => self.key = Some(text.to_owned()),
            VERSION => self.version = Some(text.to_owned()),
            FIND => self.pressed = Some(Press::Find),
            ADD => self.pressed = Some(Press::Add(text.to_owned())),
            REMOVE => self.pressed = Some(Press::Remove(text.to_owned())),
            ENTER => {}
            _ => match name.split_once('.') {
                Some((FIND, control)) => drop(self.sought.insert(control.to_owned(), text.to_owned())),
                Some((FOUND, control)) => drop(self.found.insert(control.to_owned(), text.to_owned())),
                Some(_) | None => return false,
            },
        }
        true
    }

    /// Does what a button says that only changes the form.
    pub fn press(&mut self, record: &RecordType) {
        let (name, add) = match self.pressed.take() {
            Some(Press::Add(name)) => (name, true),
            Some(Press::Remove(name)) => (name, false),
            Some(Press::Find) | None => return,
        };
        let Some(id) = of_control(record, &name) else { return };
        let mut segments: Vec<&str> = name.split('.').skip(1).collect();
        let removed = if add { None } else { segments.pop() };
        let list = segments
            .iter()
            .try_fold(self.nodes.entry(id).or_default(), |node, segment| node.below.get_mut(*segment));
        let Some(list) = list else { return };
        if let Some(removed) = removed {
            list.below.shift_remove(removed);
        }
        let mut items: Vec<Node> = list.items().into_iter().cloned().collect();
        if add {
            items.push(Node::default());
        }
        *list = Node::numbered(items);
    }

    /// Groups in which nothing was typed are no values, so those that are have the numbers that complaints give them.
    pub fn without_blank_groups(mut self) -> Filled {
        self.nodes.values_mut().for_each(close_ranks);
        self
    }

    pub fn read(&self, model: &Model, record: &RecordType) -> Meant {
        let mut meant = Meant { fields: Fields::new(), violations: Vec::new() };
        for (id, node) in &self.nodes {
            let mut reader = Reader::new(model);
            let value = reader.field(record.field(*id), node);
            if reader.violations.is_empty() {
                meant.fields.push((*id, value));
            }
            meant.violations.append(&mut reader.violations);
        }
        meant
    }
}

fn close_ranks(node: &mut Node) {
    node.below.values_mut().for_each(close_ranks);
    if node.items().len() == node.below.len() && !node.below.is_empty() {
        let items = node.items().into_iter().filter(|item| !item.is_blank()).cloned().collect();
        node.below = Node::numbered(items).below;
    }
}

/// The field that a control of a form is for; others are ignored.
pub fn of_control(record: &RecordType, name: &str) -> Option<FieldId> {
    let (first, inside) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let id = record.input_field(first).filter(|id| record.field(*id).is_writable())?;
    // What has no parts has no names inside: `name.txt` may well be a text.
    let has_parts = matches!(record.field(id).kind, Kind::Embedded(_) | Kind::List(_));
    (inside.is_none() || has_parts).then_some(id)
}

/// Whether a complaint is about this field or something inside of it.
pub fn is_about(violation: &Violation, name: &str) -> bool {
    matches!(violation.path.first(), Some(Segment::Field(first)) if first == name)
}
