//! The control of a field: which kind suits its type, and what it holds.

use std::collections::HashSet;

use crate::form::choices::{Choices, MOST, Offered};
use crate::form::value_texts::{DEEPEST, MOST_GROUPS, is_local, whole};
use crate::labels::is_long;
use crate::view::{Choice, Control, ControlKind, Find, Pair};
use trefoil_model::naming::names::label;
use trefoil_model::{Field, FieldId, Item, Kind, Model, RecordType, Rule, Scalar};
use trefoil_resources::control_tree::Node;
use trefoil_resources::form_input::{ADD, FIND, Filled, REMOVE};
use trefoil_resources::typed_values::{Reader, WHOLE};

/// More values than this are a list to open, not one to read.
const MOST_RADIOS: usize = 5;

/// More records than these are not shown by name.
const MOST_TICKS: usize = 200;

/// Makes the controls of one form.
pub struct Maker<'a> {
    pub model: &'a Model,
    pub choices: &'a Choices,
    /// The record is somebody: its name is what browsers may know.
    person: bool,
}

/// Where a control stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Its name, with those of the values around it.
    name: &'a str,
    /// How many embedded values are around it.
    depth: usize,
    /// What is around it need not be there, so it must be possible to leave this alone.
    open: bool,
}

impl<'a> Maker<'a> {
    pub fn new(model: &'a Model, record: &RecordType, choices: &'a Choices) -> Maker<'a> {
        let person = record.fields.iter().any(|field| is_email(field) || field.name == "email");
        Maker { model, choices, person }
    }

    /// One for every field that people fill in, as the schema orders them.
    pub fn controls(&self, record: &RecordType, filled: &Filled) -> Vec<Control> {
        let blank = Node::default();
        let fields = record.fields.iter().enumerate();
        let fields = fields.filter(|(i, field)| field.is_writable() && !filled.hidden.contains(&FieldId(*i)));
        let controls = fields.map(|(position, field)| {
            let node = filled.nodes.get(&FieldId(position)).unwrap_or(&blank);
            let place = Place { name: &field.input_name, depth: 0, open: false };
            match (&field.kind, self.choices.get(&FieldId(position))) {
                (Kind::Reference { .. }, Some(offered)) => reference(field, node, offered),
                (Kind::Link { .. }, Some(offered)) => link(field, node, offered),
                (
                    Kind::Id
                    | Kind::Scalar(_)
                    | Kind::Enum(_)
                    | Kind::Embedded(_)
                    | Kind::List(_)
                    | Kind::Reference { .. }
                    | Kind::Inverse { .. }
                    | Kind::Link { .. }
                    | Kind::Unstored,
                    _,
                ) => self.control(field, node, place),
            }
        });
        controls.collect()
    }

    fn control(&self, field: &Field, node: &Node, place: Place<'_>) -> Control {
        let control = Control { value: node.last().to_owned(), ..base(field, place.name) };
        match &field.kind {
            Kind::Scalar(Scalar::Boolean) => boolean(field, control, place),
            Kind::Scalar(scalar) => self.scalar(field, *scalar, control),
            Kind::Enum(name) => {
                let values = self.model.enums.get(name).map(|found| found.values.as_slice());
                one_of(values.unwrap_or_default(), control, place)
            }
            Kind::Embedded(name) if place.depth < DEEPEST && !is_direct(node) => {
                let open = place.open || !field.required;
                let children = self.children(name, node, Place { open, ..place });
                Control { kind: ControlKind::Group, children, ..control }
            }
            Kind::Embedded(_) => with_hint(Control { kind: ControlKind::Json, ..control }, JSON_HINT),
            Kind::List(item) => self.list(field, item, node, control, place),
            Kind::Id | Kind::Reference { .. } | Kind::Inverse { .. } | Kind::Link { .. } | Kind::Unstored => {
                control
            }
        }
    }

    fn scalar(&self, field: &Field, scalar: Scalar, control: Control) -> Control {
        let autocomplete = self.autocomplete(field);
        let value = control.value.as_str();
        let (kind, inputmode, hint) = match scalar {
            Scalar::String => (text_kind(field, value), None, ""),
            Scalar::Int | Scalar::Long => (ControlKind::Number, is_counted(field).then_some("numeric"), ""),
            Scalar::Float | Scalar::Decimal => {
                (ControlKind::Number, is_counted(field).then_some("decimal"), "")
            }
            Scalar::Date if value.is_empty() || is_date(value) => (ControlKind::Date, None, ""),
            Scalar::Date => (ControlKind::Text, None, "Such as 2026-01-31."),
            Scalar::DateTime if value.is_empty() || is_local(value) => {
                (ControlKind::DateTime, None, "In UTC.")
            }
            Scalar::DateTime => (ControlKind::Text, None, "In UTC, such as 2026-01-31T09:30."),
            Scalar::Url if is_sane(value) => (ControlKind::Url, None, ""),
            Scalar::Email if is_sane(value) => (ControlKind::Email, None, ""),
            Scalar::Json => (ControlKind::Json, None, JSON_HINT),
            Scalar::Id | Scalar::Uuid | Scalar::Boolean | Scalar::Url | Scalar::Email => {
                (ControlKind::Text, None, "")
            }
        };
        // One line would lose the others.
        let is_cut = kind != ControlKind::Json && value.contains(['\n', '\r']);
        let kind = if is_cut { ControlKind::Textarea } else { kind };
        with_hint(Control { kind, inputmode, autocomplete, ..control }, hint)
    }

    fn autocomplete(&self, field: &Field) -> Option<&'static str> {
        match field.name.as_str() {
            "name" | "fullName" if self.person => Some("name"),
            "phone" | "tel" | "telephone" | "mobile" | "phoneNumber" => Some("tel"),
            "url" | "website" | "homepage" => Some("url"),
            _ if is_email(field) || field.name == "email" => Some("email"),
            _ => None,
        }
    }

    fn children(&self, name: &str, node: &Node, place: Place<'_>) -> Vec<Control> {
        let fields = self.model.embedded.get(name).map(|found| found.fields.as_slice()).unwrap_or_default();
        let blank = Node::default();
        let kept = fields.iter().filter(|field| field.kind != Kind::Unstored);
        let children = kept.map(|field| {
            let name = format!("{}.{}", place.name, field.name);
            let place = Place { name: &name, depth: place.depth + 1, ..place };
            self.control(field, node.get(&field.name).unwrap_or(&blank), place)
        });
        children.collect()
    }

    fn list(&self, field: &Field, item: &Item, node: &Node, control: Control, place: Place<'_>) -> Control {
        if node.get(WHOLE).is_some() || matches!(item.kind, Kind::List(_)) {
            return in_json(node, control);
        }
        let lines = Control { kind: ControlKind::Textarea, value: node.texts.join("\n"), ..control.clone() };
        match &item.kind {
            Kind::Enum(_) if node.texts.iter().any(|text| text.contains('\n')) => {
                with_hint(lines, "One per line.")
            }
            Kind::Enum(name) => {
                let values = self.model.enums.get(name).map(|found| found.values.as_slice());
                let chosen: Vec<&str> = node.texts.iter().flat_map(|text| text.lines()).collect();
                let options = choices(values.unwrap_or_default(), &chosen);
                Control { kind: ControlKind::Checkboxes, value: String::new(), options, ..control }
            }
            Kind::Embedded(name) if place.depth < DEEPEST && !is_direct(node) => {
                if node.items().len() > MOST_GROUPS {
                    let value = Reader::new(self.model).field(field, node);
                    return in_json(&whole(&value), control);
                }
                self.groups(name, node, control, place)
            }
            Kind::Embedded(_) | Kind::Scalar(Scalar::Json) => {
                with_hint(Control { kind: ControlKind::Json, ..lines }, "JSON, one value a line.")
            }
            Kind::Scalar(_)
            | Kind::Id
            | Kind::List(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Link { .. }
            | Kind::Unstored => with_hint(lines, "One per line."),
        }
    }

    /// A blank one where there is none: it means nothing until something is typed.
    fn groups(&self, name: &str, node: &Node, control: Control, place: Place<'_>) -> Control {
        let blank = Node::default();
        let mut items = node.items();
        if items.is_empty() {
            items.push(&blank);
        }
        let groups = items.into_iter().enumerate().map(|(number, item)| {
            let name_of_group = format!("{}.{number}", place.name);
            let inside = Place { name: &name_of_group, depth: place.depth, open: true };
            Control {
                kind: ControlKind::Group,
                id: id(&name_of_group),
                label: format!("{} {}", label(name), number + 1),
                children: self.children(name, item, inside),
                less: Some(Pair { name: REMOVE.to_owned(), value: name_of_group.clone() }),
                name: name_of_group,
                ..Control::default()
            }
        });
        let more = Some(Pair { name: ADD.to_owned(), value: place.name.to_owned() });
        Control {
            kind: ControlKind::Groups,
            value: String::new(),
            children: groups.collect(),
            more,
            ..control
        }
    }
}

const JSON_HINT: &str = "JSON, such as {\"key\": [1, \"text\"]}.";

fn base(field: &Field, name: &str) -> Control {
    Control {
        name: name.to_owned(),
        id: id(name),
        label: label(&field.name),
        hint: field.description.clone(),
        // A list of records is never null; none of them is a choice like any other.
        optional: !field.required || matches!(field.kind, Kind::Link { .. }),
        ..Control::default()
    }
}

fn id(name: &str) -> String {
    format!("f-{}", name.replace('.', "-"))
}

/// What the schema says comes first.
fn with_hint(control: Control, more: &str) -> Control {
    let hint = match (control.hint, more) {
        (hint, "") => hint,
        (None, more) => Some(more.to_owned()),
        (Some(said), more) => Some(format!("{said} {more}")),
    };
    Control { hint, ..control }
}

/// One text for a value that has controls for its parts: somebody wrote JSON.
fn is_direct(node: &Node) -> bool {
    node.below.is_empty() && !node.is_blank()
}

fn in_json(node: &Node, control: Control) -> Control {
    let value = node.get(WHOLE).map_or(node.last(), Node::last).to_owned();
    let name = format!("{}.{WHOLE}", control.name);
    with_hint(Control { kind: ControlKind::Json, value, name, ..control }, "A list in JSON.")
}

fn text_kind(field: &Field, value: &str) -> ControlKind {
    if is_long(field) {
        ControlKind::Textarea
    } else if is_email(field) && is_sane(value) {
        ControlKind::Email
    } else {
        ControlKind::Text
    }
}

fn is_email(field: &Field) -> bool {
    let rule = field.rules.iter().any(|rule| matches!(rule, Rule::Email));
    rule || field.kind == Kind::Scalar(Scalar::Email)
}

/// Browsers change what does not look like an address when they show it.
fn is_sane(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_date(value: &str) -> bool {
    let shape = b"0000-00-00";
    let fits =
        |(byte, wanted): (u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == *wanted };
    value.len() == shape.len() && value.bytes().zip(shape).all(fits)
}

/// Never below zero: keyboards for digits alone have no minus.
fn is_counted(field: &Field) -> bool {
    let counted = |rule: &Rule| matches!(rule, Rule::Range { min: Some(min), .. } if !min.starts_with('-'));
    field.rules.iter().any(counted)
}

fn boolean(field: &Field, control: Control, place: Place<'_>) -> Control {
    let value = if control.value == "on" { "true".to_owned() } else { control.value.clone() };
    if field.required && !place.open {
        return Control { kind: ControlKind::Checkbox, value, ..control };
    }
    let choice = |text: &str, label: &str| Choice {
        value: text.to_owned(),
        label: label.to_owned(),
        chosen: value == text,
    };
    let options = vec![choice("", "Not set"), choice("true", "Yes"), choice("false", "No")];
    Control { kind: ControlKind::Select, options: with_typed(options, &value), ..control }
}

fn one_of(values: &[String], control: Control, place: Place<'_>) -> Control {
    let optional = control.optional || place.open;
    let few = values.len() <= MOST_RADIOS && !place.open;
    let mut options = choices(values, &[control.value.as_str()]);
    let nothing = control.value.is_empty();
    if optional || (!few && nothing) {
        let label = if optional { "Not set" } else { "Choose one" };
        options.insert(0, Choice { value: String::new(), label: label.to_owned(), chosen: nothing });
    }
    let kind = if few { ControlKind::Radios } else { ControlKind::Select };
    Control { kind, options, ..control }
}

/// The values of an enum; one that is chosen and none of them stays what it is.
fn choices(values: &[String], chosen: &[&str]) -> Vec<Choice> {
    let options = values.iter().map(|value| (value.clone(), label(value)));
    of_these(options, chosen)
}

/// All that can be chosen, and then what is chosen and none of them; sets, because a form can name very many.
fn of_these(options: impl Iterator<Item = (String, String)>, chosen: &[&str]) -> Vec<Choice> {
    let ticked: HashSet<&str> = chosen.iter().copied().collect();
    let mut known = HashSet::new();
    let mut choices: Vec<Choice> = Vec::new();
    for (value, label) in options {
        known.insert(value.clone());
        choices.push(Choice { chosen: ticked.contains(value.as_str()), value, label });
    }
    let others = chosen.iter().filter(|text| !text.is_empty() && known.insert((**text).to_owned()));
    choices.extend(others.map(|text| typed(text)));
    choices
}

/// What was typed by hand and is no choice is one all the same: it is for the engine to refuse it.
fn with_typed(mut options: Vec<Choice>, text: &str) -> Vec<Choice> {
    if !text.is_empty() && !options.iter().any(|option| option.value == text) {
        options.push(typed(text));
    }
    options
}

fn typed(text: &str) -> Choice {
    Choice { value: text.to_owned(), label: text.to_owned(), chosen: true }
}

fn reference(field: &Field, node: &Node, offered: &Offered) -> Control {
    let (control, chosen) = (base(field, &field.input_name), node.last().trim());
    let mut options = offered_choices(offered, &[chosen]);
    let label = if control.optional { "Not set" } else { "Choose one" };
    if control.optional || chosen.is_empty() {
        options
            .insert(0, Choice { value: String::new(), label: label.to_owned(), chosen: chosen.is_empty() });
    }
    let value = chosen.to_owned();
    let find = offered.more.then(|| find(&control.name, offered));
    Control { kind: ControlKind::Select, options, value, find, ..control }
}

/// Ticks, with what is ticked first where not all are listed; or ids one a line where too many are ticked.
fn link(field: &Field, node: &Node, offered: &Offered) -> Control {
    let control = base(field, &field.input_name);
    let chosen: Vec<&str> = node.texts.iter().flat_map(|text| text.lines()).map(str::trim).collect();
    if chosen.len() > MOST_TICKS {
        let value = node.texts.join("\n");
        let lines = Control { kind: ControlKind::Textarea, value, ..control };
        return with_hint(lines, &format!("The ids of {}, one per line.", offered.plural));
    }
    let mut options = offered_choices(offered, &chosen);
    let find = offered.more.then(|| find(&control.name, offered));
    if find.is_some() {
        options.sort_by_key(|option| !option.chosen);
    }
    Control { kind: ControlKind::Checkboxes, options, find, ..control }
}

fn offered_choices(offered: &Offered, chosen: &[&str]) -> Vec<Choice> {
    of_these(offered.options.iter().map(|(id, title)| (id.to_string(), title.clone())), chosen)
}

fn find(name: &str, offered: &Offered) -> Find {
    let (plural, sought) = (&offered.plural, offered.sought.trim());
    let note = match (sought.is_empty(), offered.found) {
        (true, _) => format!("Only the first {MOST} {plural} are listed. Use Find for the others."),
        (false, 0) => format!("No {plural} have \u{201c}{sought}\u{201d} in them."),
        (false, MOST) => format!("The first {MOST} {plural} with \u{201c}{sought}\u{201d} in them."),
        (false, 1) => "One was found.".to_owned(),
        (false, found) => format!("{found} were found."),
    };
    Find {
        name: format!("{FIND}.{name}"),
        value: offered.sought.clone(),
        button: Pair { name: FIND.to_owned(), value: name.to_owned() },
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_among_the_choices_once() {
        let values = ["1", "2"].map(|value| (value.to_owned(), format!("Number {value}")));
        let found = of_these(values.into_iter(), &["", "2", "x", "2", "x"]);
        let found: Vec<(&str, &str, bool)> =
            found.iter().map(|one| (one.value.as_str(), one.label.as_str(), one.chosen)).collect();
        assert_eq!(found, [("1", "Number 1", false), ("2", "Number 2", true), ("x", "x", true)]);
    }

    /// Each is looked for among the others by its hash: one by one this would take minutes.
    #[test]
    fn very_many_can_be_chosen() {
        let texts: Vec<String> = (0..200_000).map(|number| format!("a{number}")).collect();
        let chosen: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(of_these(std::iter::empty(), &chosen).len(), texts.len());
    }
}
