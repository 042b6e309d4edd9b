//! The control of a field: which kind suits its type, and what it holds.

use std::collections::HashSet;

use trefoil_model::naming::names::display_label;
use trefoil_model::{Field, FieldId, FieldKind, FieldRule, ListItem, Model, RecordType, Scalar};
use trefoil_resources::control_tree::ControlNode;
use trefoil_resources::form_input::{ADD_CONTROL, FIND_CONTROL, FormInput, REMOVE_CONTROL};
use trefoil_resources::typed_values::{ControlReader, JSON_CONTROL};

use crate::form::choices::{MAX_OPTIONS, OfferedRecords, ReferenceChoices};
use crate::form::value_texts::{MAX_EMBEDDED_DEPTH, MAX_GROUPS, is_local_datetime, json_node};
use crate::labels::is_long_text;
use crate::view::{ChoiceOption, ControlKind, ControlView, FindView, NameValue};

/// More values than this are a list to open, not one to read.
const MAX_RADIOS: usize = 5;

/// More records than these are not shown by name.
const MAX_CHECKBOXES: usize = 200;

/// Makes the controls of one form.
pub struct ControlBuilder<'a> {
    pub model: &'a Model,
    pub choices: &'a ReferenceChoices,
    /// The record is somebody: its name is what browsers may know.
    is_person: bool,
}

/// Where a control stands.
#[derive(Clone, Copy)]
struct ControlPosition<'a> {
    /// Its name, with those of the values around it.
    name: &'a str,
    /// How many embedded values are around it.
    depth: usize,
    /// What is around it need not be there, so it must be possible to leave this alone.
    may_be_absent: bool,
}

impl<'a> ControlBuilder<'a> {
    pub fn new(model: &'a Model, record: &RecordType, choices: &'a ReferenceChoices) -> ControlBuilder<'a> {
        let person = record.fields.iter().any(|field| is_email(field) || field.name == "email");
        ControlBuilder { model, choices, is_person: person }
    }

    /// One for every field that people fill in, as the schema orders them.
    pub fn build_controls(&self, record: &RecordType, filled: &FormInput) -> Vec<ControlView> {
        let blank = ControlNode::default();
        let fields = record.fields.iter().enumerate();
        let fields =
            fields.filter(|(i, field)| field.is_writable() && !filled.hidden_fields.contains(&FieldId(*i)));
        let controls = fields.map(|(position, field)| {
            let node = filled.nodes.get(&FieldId(position)).unwrap_or(&blank);
            let place = ControlPosition { name: &field.input_name, depth: 0, may_be_absent: false };
            match (&field.kind, self.choices.get(&FieldId(position))) {
                (FieldKind::Reference { .. }, Some(offered)) => reference_control(field, node, offered),
                (FieldKind::Link { .. }, Some(offered)) => link_control(field, node, offered),
                (
                    FieldKind::Id
                    | FieldKind::Scalar(_)
                    | FieldKind::Enum(_)
                    | FieldKind::Embedded(_)
                    | FieldKind::List(_)
                    | FieldKind::Reference { .. }
                    | FieldKind::Inverse { .. }
                    | FieldKind::Link { .. }
                    | FieldKind::Unstored,
                    _,
                ) => self.build_control(field, node, place),
            }
        });
        controls.collect()
    }

    fn build_control(&self, field: &Field, node: &ControlNode, place: ControlPosition<'_>) -> ControlView {
        let control = ControlView { value: node.last_text().to_owned(), ..base_control(field, place.name) };
        match &field.kind {
            FieldKind::Scalar(Scalar::Boolean) => boolean_control(field, control, place),
            FieldKind::Scalar(scalar) => self.scalar_control(field, *scalar, control),
            FieldKind::Enum(name) => {
                let values = self.model.enums.get(name).map(|found| found.values.as_slice());
                enum_control(values.unwrap_or_default(), control, place)
            }
            FieldKind::Embedded(name) if place.depth < MAX_EMBEDDED_DEPTH && !is_json_text(node) => {
                let open = place.may_be_absent || !field.required;
                let children =
                    self.child_controls(name, node, ControlPosition { may_be_absent: open, ..place });
                ControlView { kind: ControlKind::Group, children, ..control }
            }
            FieldKind::Embedded(_) => {
                with_hint(ControlView { kind: ControlKind::Json, ..control }, JSON_HINT)
            }
            FieldKind::List(item) => self.list_control(field, item, node, control, place),
            FieldKind::Id
            | FieldKind::Reference { .. }
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => control,
        }
    }

    fn scalar_control(&self, field: &Field, scalar: Scalar, control: ControlView) -> ControlView {
        let autocomplete = self.autocomplete(field);
        let value = control.value.as_str();
        let (kind, inputmode, hint) = match scalar {
            Scalar::String => (text_kind(field, value), None, ""),
            Scalar::Int | Scalar::Long => {
                (ControlKind::Number, is_non_negative(field).then_some("numeric"), "")
            }
            Scalar::Float | Scalar::Decimal => {
                (ControlKind::Number, is_non_negative(field).then_some("decimal"), "")
            }
            Scalar::Date if value.is_empty() || is_date(value) => (ControlKind::Date, None, ""),
            Scalar::Date => (ControlKind::Text, None, "Such as 2026-01-31."),
            Scalar::DateTime if value.is_empty() || is_local_datetime(value) => {
                (ControlKind::DateTime, None, "In UTC.")
            }
            Scalar::DateTime => (ControlKind::Text, None, "In UTC, such as 2026-01-31T09:30."),
            Scalar::Url if is_printable(value) => (ControlKind::Url, None, ""),
            Scalar::Email if is_printable(value) => (ControlKind::Email, None, ""),
            Scalar::Json => (ControlKind::Json, None, JSON_HINT),
            Scalar::Id | Scalar::Uuid | Scalar::Boolean | Scalar::Url | Scalar::Email => {
                (ControlKind::Text, None, "")
            }
        };
        // One line would lose the others.
        let is_cut = kind != ControlKind::Json && value.contains(['\n', '\r']);
        let kind = if is_cut { ControlKind::Textarea } else { kind };
        with_hint(ControlView { kind, inputmode, autocomplete, ..control }, hint)
    }

    fn autocomplete(&self, field: &Field) -> Option<&'static str> {
        match field.name.as_str() {
            "name" | "fullName" if self.is_person => Some("name"),
            "phone" | "tel" | "telephone" | "mobile" | "phoneNumber" => Some("tel"),
            "url" | "website" | "homepage" => Some("url"),
            _ if is_email(field) || field.name == "email" => Some("email"),
            _ => None,
        }
    }

    fn child_controls(&self, name: &str, node: &ControlNode, place: ControlPosition<'_>) -> Vec<ControlView> {
        let fields = self.model.embedded.get(name).map(|found| found.fields.as_slice()).unwrap_or_default();
        let blank = ControlNode::default();
        let kept = fields.iter().filter(|field| field.kind != FieldKind::Unstored);
        let children = kept.map(|field| {
            let name = format!("{}.{}", place.name, field.name);
            let place = ControlPosition { name: &name, depth: place.depth + 1, ..place };
            self.build_control(field, node.child(&field.name).unwrap_or(&blank), place)
        });
        children.collect()
    }

    fn list_control(
        &self,
        field: &Field,
        item: &ListItem,
        node: &ControlNode,
        control: ControlView,
        place: ControlPosition<'_>,
    ) -> ControlView {
        if node.child(JSON_CONTROL).is_some() || matches!(item.kind, FieldKind::List(_)) {
            return json_control(node, control);
        }
        let lines =
            ControlView { kind: ControlKind::Textarea, value: node.texts.join("\n"), ..control.clone() };
        match &item.kind {
            FieldKind::Enum(_) if node.texts.iter().any(|text| text.contains('\n')) => {
                with_hint(lines, "One per line.")
            }
            FieldKind::Enum(name) => {
                let values = self.model.enums.get(name).map(|found| found.values.as_slice());
                let chosen: Vec<&str> = node.texts.iter().flat_map(|text| text.lines()).collect();
                let options = enum_choices(values.unwrap_or_default(), &chosen);
                ControlView { kind: ControlKind::Checkboxes, value: String::new(), options, ..control }
            }
            FieldKind::Embedded(name) if place.depth < MAX_EMBEDDED_DEPTH && !is_json_text(node) => {
                if node.numbered_children().len() > MAX_GROUPS {
                    let value = ControlReader::new(self.model).read_field(field, node);
                    return json_control(&json_node(&value), control);
                }
                self.groups_control(name, node, control, place)
            }
            FieldKind::Embedded(_) | FieldKind::Scalar(Scalar::Json) => {
                with_hint(ControlView { kind: ControlKind::Json, ..lines }, "JSON, one value a line.")
            }
            FieldKind::Scalar(_)
            | FieldKind::Id
            | FieldKind::List(_)
            | FieldKind::Reference { .. }
            | FieldKind::Inverse { .. }
            | FieldKind::Link { .. }
            | FieldKind::Unstored => with_hint(lines, "One per line."),
        }
    }

    /// A blank one where there is none: it means nothing until something is typed.
    fn groups_control(
        &self,
        name: &str,
        node: &ControlNode,
        control: ControlView,
        place: ControlPosition<'_>,
    ) -> ControlView {
        let blank = ControlNode::default();
        let mut items = node.numbered_children();
        if items.is_empty() {
            items.push(&blank);
        }
        let groups = items.into_iter().enumerate().map(|(number, item)| {
            let name_of_group = format!("{}.{number}", place.name);
            let inside = ControlPosition { name: &name_of_group, depth: place.depth, may_be_absent: true };
            ControlView {
                kind: ControlKind::Group,
                id: control_id(&name_of_group),
                label: format!("{} {}", display_label(name), number + 1),
                children: self.child_controls(name, item, inside),
                less: Some(NameValue { name: REMOVE_CONTROL.to_owned(), value: name_of_group.clone() }),
                name: name_of_group,
                ..ControlView::default()
            }
        });
        let more = Some(NameValue { name: ADD_CONTROL.to_owned(), value: place.name.to_owned() });
        ControlView {
            kind: ControlKind::Groups,
            value: String::new(),
            children: groups.collect(),
            more,
            ..control
        }
    }
}

const JSON_HINT: &str = "JSON, such as {\"key\": [1, \"text\"]}.";

fn base_control(field: &Field, name: &str) -> ControlView {
    ControlView {
        name: name.to_owned(),
        id: control_id(name),
        label: display_label(&field.name),
        hint: field.description.clone(),
        // A list of records is never null; none of them is a choice like any other.
        optional: !field.required || matches!(field.kind, FieldKind::Link { .. }),
        ..ControlView::default()
    }
}

fn control_id(name: &str) -> String {
    format!("f-{}", name.replace('.', "-"))
}

/// What the schema says comes first.
fn with_hint(control: ControlView, more: &str) -> ControlView {
    let hint = match (control.hint, more) {
        (hint, "") => hint,
        (None, more) => Some(more.to_owned()),
        (Some(said), more) => Some(format!("{said} {more}")),
    };
    ControlView { hint, ..control }
}

/// One text for a value that has controls for its parts: somebody wrote JSON.
fn is_json_text(node: &ControlNode) -> bool {
    node.children.is_empty() && !node.is_blank()
}

fn json_control(node: &ControlNode, control: ControlView) -> ControlView {
    let value = node.child(JSON_CONTROL).map_or(node.last_text(), ControlNode::last_text).to_owned();
    let name = format!("{}.{JSON_CONTROL}", control.name);
    with_hint(ControlView { kind: ControlKind::Json, value, name, ..control }, "A list in JSON.")
}

fn text_kind(field: &Field, value: &str) -> ControlKind {
    if is_long_text(field) {
        ControlKind::Textarea
    } else if is_email(field) && is_printable(value) {
        ControlKind::Email
    } else {
        ControlKind::Text
    }
}

fn is_email(field: &Field) -> bool {
    let rule = field.rules.iter().any(|rule| matches!(rule, FieldRule::Email));
    rule || field.kind == FieldKind::Scalar(Scalar::Email)
}

/// Browsers change what does not look like an address when they show it.
fn is_printable(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_date(value: &str) -> bool {
    let shape = b"0000-00-00";
    let fits =
        |(byte, wanted): (u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == *wanted };
    value.len() == shape.len() && value.bytes().zip(shape).all(fits)
}

/// Never below zero: keyboards for digits alone have no minus.
fn is_non_negative(field: &Field) -> bool {
    let counted =
        |rule: &FieldRule| matches!(rule, FieldRule::Range { min: Some(min), .. } if !min.starts_with('-'));
    field.rules.iter().any(counted)
}

fn boolean_control(field: &Field, control: ControlView, place: ControlPosition<'_>) -> ControlView {
    let value = if control.value == "on" { "true".to_owned() } else { control.value.clone() };
    if field.required && !place.may_be_absent {
        return ControlView { kind: ControlKind::Checkbox, value, ..control };
    }
    let choice = |text: &str, label: &str| ChoiceOption {
        value: text.to_owned(),
        label: label.to_owned(),
        chosen: value == text,
    };
    let options = vec![choice("", "Not set"), choice("true", "Yes"), choice("false", "No")];
    ControlView { kind: ControlKind::Select, options: with_typed_choice(options, &value), ..control }
}

fn enum_control(values: &[String], control: ControlView, place: ControlPosition<'_>) -> ControlView {
    let optional = control.optional || place.may_be_absent;
    let few = values.len() <= MAX_RADIOS && !place.may_be_absent;
    let mut options = enum_choices(values, &[control.value.as_str()]);
    let nothing = control.value.is_empty();
    if optional || (!few && nothing) {
        let label = if optional { "Not set" } else { "Choose one" };
        options.insert(0, ChoiceOption { value: String::new(), label: label.to_owned(), chosen: nothing });
    }
    let kind = if few { ControlKind::Radios } else { ControlKind::Select };
    ControlView { kind, options, ..control }
}

/// The values of an enum; one that is chosen and none of them stays what it is.
fn enum_choices(values: &[String], chosen: &[&str]) -> Vec<ChoiceOption> {
    let options = values.iter().map(|value| (value.clone(), display_label(value)));
    build_choices(options, chosen)
}

/// All that can be chosen, and then what is chosen and none of them; sets, because a form can name very many.
fn build_choices(options: impl Iterator<Item = (String, String)>, chosen: &[&str]) -> Vec<ChoiceOption> {
    let ticked: HashSet<&str> = chosen.iter().copied().collect();
    let mut known = HashSet::new();
    let mut choices: Vec<ChoiceOption> = Vec::new();
    for (value, label) in options {
        known.insert(value.clone());
        choices.push(ChoiceOption { chosen: ticked.contains(value.as_str()), value, label });
    }
    let others = chosen.iter().filter(|text| !text.is_empty() && known.insert((**text).to_owned()));
    choices.extend(others.map(|text| typed_choice(text)));
    choices
}

/// What was typed by hand and is no choice is one all the same: it is for the engine to refuse it.
fn with_typed_choice(mut options: Vec<ChoiceOption>, text: &str) -> Vec<ChoiceOption> {
    if !text.is_empty() && !options.iter().any(|option| option.value == text) {
        options.push(typed_choice(text));
    }
    options
}

fn typed_choice(text: &str) -> ChoiceOption {
    ChoiceOption { value: text.to_owned(), label: text.to_owned(), chosen: true }
}

fn reference_control(field: &Field, node: &ControlNode, offered: &OfferedRecords) -> ControlView {
    let (control, chosen) = (base_control(field, &field.input_name), node.last_text().trim());
    let mut options = record_choices(offered, &[chosen]);
    let label = if control.optional { "Not set" } else { "Choose one" };
    if control.optional || chosen.is_empty() {
        options.insert(
            0,
            ChoiceOption { value: String::new(), label: label.to_owned(), chosen: chosen.is_empty() },
        );
    }
    let value = chosen.to_owned();
    let find = offered.has_more.then(|| find_view(&control.name, offered));
    ControlView { kind: ControlKind::Select, options, value, find, ..control }
}

/// Ticks, with what is ticked first where not all are listed; or ids one a line where too many are ticked.
fn link_control(field: &Field, node: &ControlNode, offered: &OfferedRecords) -> ControlView {
    let control = base_control(field, &field.input_name);
    let chosen: Vec<&str> = node.texts.iter().flat_map(|text| text.lines()).map(str::trim).collect();
    if chosen.len() > MAX_CHECKBOXES {
        let value = node.texts.join("\n");
        let lines = ControlView { kind: ControlKind::Textarea, value, ..control };
        return with_hint(lines, &format!("The ids of {}, one per line.", offered.plural));
    }
    let mut options = record_choices(offered, &chosen);
    let find = offered.has_more.then(|| find_view(&control.name, offered));
    if find.is_some() {
        options.sort_by_key(|option| !option.chosen);
    }
    ControlView { kind: ControlKind::Checkboxes, options, find, ..control }
}

fn record_choices(offered: &OfferedRecords, chosen: &[&str]) -> Vec<ChoiceOption> {
    build_choices(offered.options.iter().map(|(id, title)| (id.to_string(), title.clone())), chosen)
}

fn find_view(name: &str, offered: &OfferedRecords) -> FindView {
    let (plural, sought) = (&offered.plural, offered.search.trim());
    let note = match (sought.is_empty(), offered.found_count) {
        (true, _) => format!("Only the first {MAX_OPTIONS} {plural} are listed. Use Find for the others."),
        (false, 0) => format!("No {plural} have \u{201c}{sought}\u{201d} in them."),
        (false, MAX_OPTIONS) => {
            format!("The first {MAX_OPTIONS} {plural} with \u{201c}{sought}\u{201d} in them.")
        }
        (false, 1) => "One was found.".to_owned(),
        (false, found) => format!("{found} were found."),
    };
    FindView {
        name: format!("{FIND_CONTROL}.{name}"),
        value: offered.search.clone(),
        button: NameValue { name: FIND_CONTROL.to_owned(), value: name.to_owned() },
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_among_the_choices_once() {
        let values = ["1", "2"].map(|value| (value.to_owned(), format!("Number {value}")));
        let found = build_choices(values.into_iter(), &["", "2", "x", "2", "x"]);
        let found: Vec<(&str, &str, bool)> =
            found.iter().map(|one| (one.value.as_str(), one.label.as_str(), one.chosen)).collect();
        assert_eq!(found, [("1", "Number 1", false), ("2", "Number 2", true), ("x", "x", true)]);
    }

    /// Each is looked for among the others by its hash: one by one this would take minutes.
    #[test]
    fn very_many_can_be_chosen() {
        let texts: Vec<String> = (0..200_000).map(|number| format!("a{number}")).collect();
        let chosen: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(build_choices(std::iter::empty(), &chosen).len(), texts.len());
    }
}
