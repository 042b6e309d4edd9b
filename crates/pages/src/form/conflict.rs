//! Marks the controls of a form whose value was changed concurrently by someone else.

use trefoil_resources::forms::form_input::{ROW_DELETE_CONTROL, ROW_ID_CONTROL};

use crate::template_data::{ControlKind, ControlView, DisplayValue, LabelledValue};

/// Sets `theirs` on each disputed control of `mine` whose value differs from the saved one.
pub fn mark_differences(mine: &mut [ControlView], saved: &[ControlView], is_disputed: &dyn Fn(&str) -> bool) {
    for control in mine {
        let of_group = saved.iter().find(|saved| control.name.is_empty() && saved.id == control.id);
        match of_group {
            Some(saved) => mark_differences(&mut control.children, &saved.children, is_disputed),
            None if is_disputed(&control.name) => mark_in(control, saved),
            None => {}
        }
    }
}

fn mark_in(control: &mut ControlView, saved: &[ControlView]) {
    if let Some(other) = saved.iter().find(|other| other.label == control.label) {
        mark_difference(control, other);
    }
}

/// The same for the rows of lists, which are found by their ids.
pub fn mark_row_differences(mine: &mut [ControlView], saved: &[ControlView]) {
    let saved_rows = || saved.iter().flat_map(|list| &list.children);
    for row in mine.iter_mut().flat_map(|list| &mut list.children) {
        let name = row.name.split('.').next().unwrap_or_default().to_owned();
        let is_same = |saved: &&ControlView| {
            row_id(saved).is_some()
                && row_id(saved) == row_id(row)
                && saved.name.starts_with(&format!("{name}."))
        };
        if let Some(saved) = saved_rows().find(is_same) {
            let values = row.children.iter_mut().filter(|control| is_value(control));
            values.for_each(|control| mark_in(control, &saved.children));
        }
    }
}

fn row_id(row: &ControlView) -> Option<&str> {
    let id = row.children.iter().find(|control| control.name.ends_with(ROW_ID_CONTROL))?;
    Some(&id.value)
}

/// True if the control is for a field, and not one of the row itself.
fn is_value(control: &ControlView) -> bool {
    control.kind != ControlKind::Hidden && !control.name.ends_with(ROW_DELETE_CONTROL)
}

fn mark_difference(mine: &mut ControlView, saved: &ControlView) {
    let is_group = matches!(mine.kind, ControlKind::Group | ControlKind::Groups);
    if is_group && mine.kind == saved.kind && mine.children.len() == saved.children.len() {
        mine.children.iter_mut().zip(&saved.children).for_each(|(mine, saved)| mark_difference(mine, saved));
        return;
    }
    let (own, other) = (control_value(mine), control_value(saved));
    if own != other {
        mine.theirs = Some(other);
    }
}

/// The value of a control, formatted for people.
fn control_value(control: &ControlView) -> DisplayValue {
    let chosen = || control.options.iter().filter(|option| option.chosen && !option.value.is_empty());
    let text = |text: &str| match text {
        "" => DisplayValue::Nothing,
        // Browsers send lines with CRLF.
        text => DisplayValue::Text { text: text.replace("\r\n", "\n"), cut: false },
    };
    match control.kind {
        ControlKind::Checkbox => DisplayValue::Boolean { yes: control.value == "true" },
        ControlKind::Radios | ControlKind::Select => {
            chosen().next().map_or(DisplayValue::Nothing, |option| text(&option.label))
        }
        ControlKind::Checkboxes => {
            let mut items: Vec<&str> = chosen().map(|option| option.label.as_str()).collect();
            items.sort_unstable();
            if items.is_empty() {
                DisplayValue::Nothing
            } else {
                DisplayValue::List { items: items.into_iter().map(text).collect() }
            }
        }
        ControlKind::Group => DisplayValue::Object {
            fields: control
                .children
                .iter()
                .map(|child| LabelledValue { label: child.label.clone(), value: control_value(child) })
                .collect(),
        },
        ControlKind::Groups => {
            DisplayValue::List { items: control.children.iter().map(control_value).collect() }
        }
        ControlKind::Text
        | ControlKind::Hidden
        | ControlKind::Username
        | ControlKind::Password
        | ControlKind::Textarea
        | ControlKind::Json
        | ControlKind::Email
        | ControlKind::Url
        | ControlKind::Date
        | ControlKind::DateTime
        | ControlKind::Number => text(&control.value),
    }
}
