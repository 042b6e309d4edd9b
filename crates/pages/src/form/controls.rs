//! `ControlBuilder`: the control of each field, with the kind that suits its type and value.

use std::collections::HashSet;

use trefoil_model::naming::names::display_label;
use trefoil_model::{
    ControlWidth, EmbeddedType, EnumType, Field, FieldRule, ListItem, Model, RecordType, Scalar, ValueFormat,
    ValueType, ZoneOffsets,
};
use trefoil_resources::forms::form_input::{ADD_CONTROL, FIND_CONTROL, FormInput, REMOVE_CONTROL};
use trefoil_resources::forms::form_tree::ControlNode;
use trefoil_resources::forms::typed_values::{ControlReader, JSON_CONTROL};

use crate::form::choices::{MAX_OPTIONS, OfferedRecords, ReferenceChoices};
use crate::form::value_texts::{MAX_EMBEDDED_DEPTH, MAX_GROUPS, is_local_datetime, json_node, value_node};
use crate::labels::{grouped, is_long_text, ordered_fields};
use crate::template_data::{ChoiceOption, ControlKind, ControlView, FindView, NameValue};

/// An enum with more values is a select box.
const MAX_RADIOS: usize = 5;

/// With more chosen records than this a link shows ids, one per line, instead of names.
const MAX_CHECKBOXES: usize = 200;

/// Builds the controls of one form.
pub struct ControlBuilder<'a> {
    pub model: &'a Model,
    pub choices: &'a ReferenceChoices,
    /// What the names of all controls begin with: `lines.0.` in a row.
    prefix: String,
    /// The record is a person: browsers may autocomplete the name.
    is_person: bool,
}

/// The place of a control in a form.
#[derive(Clone, Copy)]
struct ControlPosition<'a> {
    /// Full name, including the enclosing values.
    name: &'a str,
    /// Number of enclosing embedded values.
    depth: usize,
    /// True if an enclosing value is optional, so that this control can be left empty.
    may_be_absent: bool,
}

impl<'a> ControlBuilder<'a> {
    pub fn new(model: &'a Model, record: &RecordType, choices: &'a ReferenceChoices) -> ControlBuilder<'a> {
        let is_person = record.fields.iter().any(|field| is_email(field) || field.name == "email");
        ControlBuilder { model, choices, prefix: String::new(), is_person }
    }

    /// Builds the controls of the row with this name.
    pub fn in_row(self, row_name: &str) -> ControlBuilder<'a> {
        ControlBuilder { prefix: format!("{row_name}."), ..self }
    }

    /// A control for every writable field, in the order of pages; the fields of a group are in one.
    pub fn build_controls(&self, record: &RecordType, input: &FormInput) -> Vec<ControlView> {
        let blank = ControlNode::default();
        let fields = ordered_fields(record).into_iter();
        let fields =
            fields.filter(|(id, field)| record.is_set_on_create(field) && !input.hidden_fields.contains(id));
        let controls = fields.map(|(id, field)| {
            let node = input.nodes.get(&id).unwrap_or(&blank);
            let name = format!("{}{}", self.prefix, field.input_name);
            let position = ControlPosition { name: &name, depth: 0, may_be_absent: false };
            let control = match self.choices.get(&id) {
                Some(offered) if field.kind.is_link() => link_control(field, &name, node, offered),
                Some(offered) if field.kind.is_reference() => reference_control(field, &name, node, offered),
                Some(_) | None => self.build_control(field, node, position),
            };
            (field.display.group.clone(), control)
        });
        let groups = grouped(controls).into_iter();
        groups.flat_map(|(label, controls)| self.in_group(label, controls)).collect()
    }

    fn in_group(&self, label: Option<String>, children: Vec<ControlView>) -> Vec<ControlView> {
        let (Some(label), Some(first)) = (label, children.first()) else { return children };
        let id = format!("{}-group", first.id);
        vec![ControlView { kind: ControlKind::Group, id, label, children, ..ControlView::default() }]
    }

    fn build_control(&self, field: &Field, node: &ControlNode, position: ControlPosition<'_>) -> ControlView {
        let control =
            ControlView { value: node.last_text().to_owned(), ..base_control(field, position.name) };
        match field.kind.value_type() {
            Some(ValueType::Scalar(Scalar::Boolean)) => boolean_control(field, control, position),
            Some(ValueType::Scalar(scalar)) => self.scalar_control(field, *scalar, control),
            Some(ValueType::Enum(name)) => enum_control(self.model.enums.get(name), control, position),
            Some(ValueType::Embedded(name)) if position.depth < MAX_EMBEDDED_DEPTH && !is_json_text(node) => {
                let may_be_absent = position.may_be_absent || !field.required;
                let children = self.child_controls(name, node, ControlPosition { may_be_absent, ..position });
                ControlView { kind: ControlKind::Group, children, ..control }
            }
            Some(ValueType::Embedded(_)) => {
                with_hint(ControlView { kind: ControlKind::Json, ..control }, JSON_HINT)
            }
            Some(ValueType::List(item)) => self.list_control(field, item, node, control, position),
            Some(ValueType::Key(_)) | None => control,
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
                (ControlKind::DateTime, None, "In %.")
            }
            Scalar::DateTime => (ControlKind::Text, None, "In %, such as 2026-01-31T09:30."),
            Scalar::LocalDateTime if value.is_empty() || is_local_datetime(value) => {
                (ControlKind::DateTime, None, "")
            }
            Scalar::LocalDateTime => (ControlKind::Text, None, "Such as 2026-01-31T09:30."),
            Scalar::Url if is_printable(value) => (ControlKind::Url, None, ""),
            Scalar::Email if is_printable(value) => (ControlKind::Email, None, ""),
            Scalar::Json => (ControlKind::Json, None, JSON_HINT),
            Scalar::Id | Scalar::Uuid | Scalar::Boolean | Scalar::Url | Scalar::Email => {
                (ControlKind::Text, None, "")
            }
        };
        // A single-line input would drop the other lines.
        let is_multiline = kind != ControlKind::Json && value.contains(['\n', '\r']);
        let kind = if is_multiline { ControlKind::Textarea } else { kind };
        let hint = hint.replace('%', &zone_phrase(self.model.time_zone()));
        with_hint(ControlView { kind, inputmode, autocomplete, ..control }, &hint)
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

    fn child_controls(
        &self,
        name: &str,
        node: &ControlNode,
        position: ControlPosition<'_>,
    ) -> Vec<ControlView> {
        let blank = ControlNode::default();
        let fields = self.model.embedded.get(name).into_iter().flat_map(EmbeddedType::stored_fields);
        let children = fields.map(|(field, _)| {
            let name = format!("{}.{}", position.name, field.name);
            let position = ControlPosition { name: &name, depth: position.depth + 1, ..position };
            let control = self.build_control(field, node.child(&field.name).unwrap_or(&blank), position);
            // A blank member of an optional value means its default.
            let default = field.default.as_ref().filter(|_| position.may_be_absent);
            match default.map(|default| value_node(self.model, &field.kind, default, position.depth)) {
                Some(default) => {
                    let placeholder = Some(default.last_text().to_owned()).filter(|text| !text.is_empty());
                    ControlView {
                        optional: true,
                        placeholder: control.placeholder.or(placeholder),
                        ..control
                    }
                }
                None => control,
            }
        });
        children.collect()
    }

    fn list_control(
        &self,
        field: &Field,
        item: &ListItem,
        node: &ControlNode,
        control: ControlView,
        position: ControlPosition<'_>,
    ) -> ControlView {
        if node.child(JSON_CONTROL).is_some() || matches!(item.value_type, ValueType::List(_)) {
            return json_control(node, control);
        }
        let lines =
            ControlView { kind: ControlKind::Textarea, value: node.texts.join("\n"), ..control.clone() };
        match &item.value_type {
            ValueType::Enum(_) if node.texts.iter().any(|text| text.contains('\n')) => {
                with_hint(lines, "One per line.")
            }
            ValueType::Enum(name) => {
                let chosen: Vec<&str> = node.texts.iter().flat_map(|text| text.lines()).collect();
                let options = enum_choices(self.model.enums.get(name), &chosen);
                ControlView { kind: ControlKind::Checkboxes, value: String::new(), options, ..control }
            }
            ValueType::Embedded(name) if position.depth < MAX_EMBEDDED_DEPTH && !is_json_text(node) => {
                if node.numbered_children().len() > MAX_GROUPS {
                    let value = ControlReader::new(self.model).read_field(field, node);
                    return json_control(&json_node(&value), control);
                }
                self.groups_control(name, node, control, position)
            }
            ValueType::Embedded(_) | ValueType::Scalar(Scalar::Json) => {
                with_hint(ControlView { kind: ControlKind::Json, ..lines }, "JSON, one value per line.")
            }
            ValueType::Key(_) | ValueType::Scalar(_) | ValueType::List(_) => {
                with_hint(lines, "One per line.")
            }
        }
    }

    /// Groups for the items, or a blank group if there are none: it is ignored until something is typed.
    fn groups_control(
        &self,
        name: &str,
        node: &ControlNode,
        control: ControlView,
        position: ControlPosition<'_>,
    ) -> ControlView {
        let blank = ControlNode::default();
        let mut items = node.numbered_children();
        if items.is_empty() {
            items.push(&blank);
        }
        let groups = items.into_iter().enumerate().map(|(number, item)| {
            let group_name = format!("{}.{number}", position.name);
            let group_position =
                ControlPosition { name: &group_name, depth: position.depth, may_be_absent: true };
            ControlView {
                kind: ControlKind::Group,
                id: control_id(&group_name),
                label: format!("{} {}", display_label(name), number + 1),
                children: self.child_controls(name, item, group_position),
                less: Some(NameValue { name: REMOVE_CONTROL.to_owned(), value: group_name.clone() }),
                name: group_name,
                ..ControlView::default()
            }
        });
        let more = Some(NameValue { name: ADD_CONTROL.to_owned(), value: position.name.to_owned() });
        ControlView {
            kind: ControlKind::Groups,
            value: String::new(),
            children: groups.collect(),
            more,
            ..control
        }
    }
}

/// "UTC", "the time of Europe/Berlin"
fn zone_phrase(zone: &ZoneOffsets) -> String {
    if zone.is_utc() { "UTC".to_owned() } else { format!("the time of {zone}") }
}

const JSON_HINT: &str = "JSON, such as {\"key\": [1, \"text\"]}.";

fn base_control(field: &Field, name: &str) -> ControlView {
    ControlView {
        name: name.to_owned(),
        id: control_id(name),
        label: field.label(),
        hint: field.display.hint.clone().or_else(|| field.description.clone()),
        placeholder: field.display.placeholder.clone(),
        width: match field.display.width {
            Some(ControlWidth::Narrow) => Some("narrow"),
            Some(ControlWidth::Medium) => Some("short"),
            Some(ControlWidth::Wide) | None => None,
        },
        // Links are never null, and choosing no record is valid.
        optional: !field.required || field.kind.is_link(),
        blank_message: { field.messages.iter() }
            .find_map(|(code, message)| (*code == "NOT_BLANK").then(|| message.clone())),
        ..ControlView::default()
    }
}

pub fn control_id(name: &str) -> String {
    format!("f-{}", name.replace('.', "-"))
}

/// Adds a hint after the description of the schema.
pub fn with_hint(control: ControlView, more: &str) -> ControlView {
    let hint = match (control.hint, more) {
        (hint, "") => hint,
        (None, more) => Some(more.to_owned()),
        (Some(hint), more) => Some(format!("{hint} {more}")),
    };
    ControlView { hint, ..control }
}

/// True if a value with several controls was submitted as one text, which is JSON.
fn is_json_text(node: &ControlNode) -> bool {
    node.children.is_empty() && !node.is_blank()
}

fn json_control(node: &ControlNode, control: ControlView) -> ControlView {
    let value = node.child(JSON_CONTROL).map_or(node.last_text(), ControlNode::last_text).to_owned();
    let name = format!("{}.{JSON_CONTROL}", control.name);
    with_hint(ControlView { kind: ControlKind::Json, value, name, ..control }, "A JSON array.")
}

fn text_kind(field: &Field, value: &str) -> ControlKind {
    if field.display.format == Some(ValueFormat::Code) {
        ControlKind::Json
    } else if field.display.format == Some(ValueFormat::Link) && is_printable(value) {
        ControlKind::Url
    } else if is_long_text(field) {
        ControlKind::Textarea
    } else if is_email(field) && is_printable(value) {
        ControlKind::Email
    } else {
        ControlKind::Text
    }
}

fn is_email(field: &Field) -> bool {
    let rule = field.rules.iter().any(|rule| matches!(rule, FieldRule::Email));
    rule || field.kind.scalar() == Some(Scalar::Email)
}

/// True if the text is printable ASCII: browsers change other texts in URL and email inputs.
fn is_printable(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_date(value: &str) -> bool {
    let pattern = b"0000-00-00";
    let fits = |(byte, expected): (u8, &u8)| {
        if *expected == b'0' { byte.is_ascii_digit() } else { byte == *expected }
    };
    value.len() == pattern.len() && value.bytes().zip(pattern).all(fits)
}

/// True if the field has a minimum of at least zero: numeric keyboards have no minus.
fn is_non_negative(field: &Field) -> bool {
    let is_bound =
        |rule: &FieldRule| matches!(rule, FieldRule::Range { min: Some(min), .. } if !min.starts_with('-'));
    field.rules.iter().any(is_bound)
}

fn boolean_control(field: &Field, control: ControlView, position: ControlPosition<'_>) -> ControlView {
    let value = if control.value == "on" { "true".to_owned() } else { control.value.clone() };
    if field.required && !position.may_be_absent {
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

fn enum_control(
    known: Option<&EnumType>,
    control: ControlView,
    position: ControlPosition<'_>,
) -> ControlView {
    let optional = control.optional || position.may_be_absent;
    let is_short = known.map_or(0, |known| known.values.len()) <= MAX_RADIOS && !position.may_be_absent;
    let mut options = enum_choices(known, &[control.value.as_str()]);
    let is_blank = control.value.is_empty();
    if optional || (!is_short && is_blank) {
        let label = if optional { "Not set" } else { "Choose one" };
        options.insert(0, ChoiceOption { value: String::new(), label: label.to_owned(), chosen: is_blank });
    }
    let kind = if is_short { ControlKind::Radios } else { ControlKind::Select };
    ControlView { kind, options, ..control }
}

/// The values of an enum, and chosen texts that are not among them.
fn enum_choices(known: Option<&EnumType>, chosen: &[&str]) -> Vec<ChoiceOption> {
    let options = known
        .into_iter()
        .flat_map(|known| known.values.iter().map(|value| (value.clone(), known.label(value))));
    build_choices(options, chosen)
}

/// The options, then chosen texts that are not among them. With sets, because a form can have very many.
fn build_choices(options: impl Iterator<Item = (String, String)>, chosen: &[&str]) -> Vec<ChoiceOption> {
    let chosen_set: HashSet<&str> = chosen.iter().copied().collect();
    let mut known = HashSet::new();
    let mut choices: Vec<ChoiceOption> = Vec::new();
    for (value, label) in options {
        known.insert(value.clone());
        choices.push(ChoiceOption { chosen: chosen_set.contains(value.as_str()), value, label });
    }
    let others = chosen.iter().filter(|text| !text.is_empty() && known.insert((**text).to_owned()));
    choices.extend(others.map(|text| typed_choice(text)));
    choices
}

/// Adds a typed text that is not an option, for the engine to reject.
fn with_typed_choice(mut options: Vec<ChoiceOption>, text: &str) -> Vec<ChoiceOption> {
    if !text.is_empty() && !options.iter().any(|option| option.value == text) {
        options.push(typed_choice(text));
    }
    options
}

fn typed_choice(text: &str) -> ChoiceOption {
    ChoiceOption { value: text.to_owned(), label: text.to_owned(), chosen: true }
}

fn reference_control(field: &Field, name: &str, node: &ControlNode, offered: &OfferedRecords) -> ControlView {
    let (control, chosen) = (base_control(field, name), node.last_text().trim());
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

/// Checkboxes, the chosen first if not all records are listed; or ids, one per line, if too many are chosen.
fn link_control(field: &Field, name: &str, node: &ControlNode, offered: &OfferedRecords) -> ControlView {
    let control = base_control(field, name);
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
    let (plural, search) = (&offered.plural, offered.search.trim());
    let note = match (search.is_empty(), offered.found_count) {
        (false, _) if offered.is_refused => {
            format!("There are too many {plural} to search. Find takes an id here.")
        }
        (true, _) => format!("Only the first {MAX_OPTIONS} {plural} are listed. Use Find for the others."),
        (false, 0) => format!("No {plural} contain \u{201c}{search}\u{201d}."),
        (false, MAX_OPTIONS) => {
            format!("The first {MAX_OPTIONS} {plural} that contain \u{201c}{search}\u{201d}.")
        }
        (false, 1) => "1 found.".to_owned(),
        (false, found) => format!("{found} found."),
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
    fn chosen_values_appear_once() {
        let values = ["1", "2"].map(|value| (value.to_owned(), format!("Number {value}")));
        let found = build_choices(values.into_iter(), &["", "2", "x", "2", "x"]);
        let found: Vec<(&str, &str, bool)> =
            found.iter().map(|one| (one.value.as_str(), one.label.as_str(), one.chosen)).collect();
        assert_eq!(found, [("1", "Number 1", false), ("2", "Number 2", true), ("x", "x", true)]);
    }

    /// A linear search for each would take minutes.
    #[test]
    fn many_chosen_values_are_fast() {
        let texts: Vec<String> = (0..200_000).map(|number| format!("a{number}")).collect();
        let chosen: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(build_choices(std::iter::empty(), &chosen).len(), texts.len());
    }
}
