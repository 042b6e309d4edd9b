//! Two versions of a form beside each other: what somebody else has saved, where it differs.

use crate::view::{Control, ControlKind, Labelled, Shown};

/// Notes on each of `mine` what `theirs` says otherwise.
pub fn compare(mine: &mut [Control], theirs: &[Control]) {
    for control in mine {
        if let Some(other) = theirs.iter().find(|other| other.label == control.label) {
            note(control, other);
        }
    }
}

fn note(mine: &mut Control, theirs: &Control) {
    let is_group = matches!(mine.kind, ControlKind::Group | ControlKind::Groups);
    if is_group && mine.kind == theirs.kind && mine.children.len() == theirs.children.len() {
        mine.children.iter_mut().zip(&theirs.children).for_each(|(mine, theirs)| note(mine, theirs));
        return;
    }
    let (own, other) = (shown(mine), shown(theirs));
    if own != other {
        mine.theirs = Some(other);
    }
}

/// What a control says, as people read it.
fn shown(control: &Control) -> Shown {
    let chosen = || control.options.iter().filter(|option| option.chosen && !option.value.is_empty());
    let text = |text: &str| match text {
        "" => Shown::Nothing,
        // Browsers have a habit of their own for the ends of lines.
        text => Shown::Text { text: text.replace("\r\n", "\n"), cut: false },
    };
    match control.kind {
        ControlKind::Checkbox => Shown::Truth { yes: control.value == "true" },
        ControlKind::Radios | ControlKind::Select => {
            chosen().next().map_or(Shown::Nothing, |option| text(&option.label))
        }
        ControlKind::Checkboxes => {
            let mut items: Vec<&str> = chosen().map(|option| option.label.as_str()).collect();
            items.sort_unstable();
            if items.is_empty() {
                Shown::Nothing
            } else {
                Shown::List { items: items.into_iter().map(text).collect() }
            }
        }
        ControlKind::Group => Shown::Object {
            fields: control
                .children
                .iter()
                .map(|child| Labelled { label: child.label.clone(), value: shown(child) })
                .collect(),
        },
        ControlKind::Groups => Shown::List { items: control.children.iter().map(shown).collect() },
        ControlKind::Text
        | ControlKind::Textarea
        | ControlKind::Json
        | ControlKind::Email
        | ControlKind::Url
        | ControlKind::Date
        | ControlKind::DateTime
        | ControlKind::Number => text(&control.value),
    }
}
