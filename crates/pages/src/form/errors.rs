//! Places each violation beside its control and in the summary of a form.

use trefoil_model::error::{PathSegment, Violation};
use trefoil_resources::forms::typed_values::JSON_CONTROL;

use crate::template_data::{ControlView, PageLink};

/// Link target of a violation without a control.
const PAGE_TOP: &str = "#main";

/// Attaches violations to controls and returns the summary; each entry links to its control.
pub fn attach_errors(controls: &mut [ControlView], violations: &[Violation]) -> Vec<PageLink> {
    violations.iter().map(|violation| attach_error(controls, violation)).collect()
}

/// Attaches to the nearest enclosing control: a line of a list has none of its own.
fn attach_error(controls: &mut [ControlView], violation: &Violation) -> PageLink {
    let (path, message) = (&violation.path, capitalize(&violation.message));
    for end in (1..=path.len()).rev() {
        let name = dotted_name(&path[..end]);
        let Some(control) = find_control(controls, &name) else { continue };
        let label = match path.get(end) {
            Some(PathSegment::Index(index)) => format!("{message} (item {})", index + 1),
            Some(PathSegment::Field(_)) | None => message,
        };
        control.errors.push(label.clone());
        let href = format!("#{}", control.id);
        let label = row_label(controls, path).map_or(label.clone(), |row| format!("{row}: {label}"));
        return PageLink { label, href };
    }
    PageLink { label: message, href: PAGE_TOP.to_owned() }
}

/// The label of the row that a path leads to: the same message may concern several.
fn row_label<'c>(controls: &'c [ControlView], path: &[PathSegment]) -> Option<&'c str> {
    let [PathSegment::Field(list), PathSegment::Index(row), ..] = path else { return None };
    let list = controls.iter().find(|control| control.add_label.is_some() && control.name == *list)?;
    Some(&list.children.get(*row)?.label)
}

/// The message with a capital letter, to stand alone.
pub fn capitalize(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn dotted_name(path: &[PathSegment]) -> String {
    let steps = path.iter().map(|segment| match segment {
        PathSegment::Field(name) => name.clone(),
        PathSegment::Index(index) => index.to_string(),
    });
    steps.collect::<Vec<_>>().join(".")
}

fn find_control<'c>(controls: &'c mut [ControlView], name: &str) -> Option<&'c mut ControlView> {
    for control in controls {
        let control_name = control
            .name
            .strip_suffix(JSON_CONTROL)
            .map_or(control.name.as_str(), |name| name.trim_end_matches('.'));
        if control_name == name {
            return Some(control);
        }
        if name.strip_prefix(control_name).is_some_and(|rest| rest.starts_with('.')) {
            return find_control(&mut control.children, name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(name: &str, children: Vec<ControlView>) -> ControlView {
        ControlView { name: name.to_owned(), id: format!("f-{name}"), children, ..ControlView::default() }
    }

    #[test]
    fn violations_attach_to_nearest_control() {
        let lines = control("lines", vec![control("lines.0", vec![control("lines.0.price", vec![])])]);
        let mut controls = [control("name", vec![]), lines, control("tags._json", vec![])];
        let violation = |path: &[PathSegment], message: &str| Violation {
            path: path.to_vec(),
            code: "X",
            message: message.into(),
        };
        let field = |name: &str| PathSegment::Field(name.to_owned());
        let violations = [
            violation(&[field("name")], "a"),
            violation(&[field("lines"), PathSegment::Index(0), field("price")], "b"),
            violation(&[field("lines"), PathSegment::Index(0), field("other")], "c"),
            violation(&[field("lines"), PathSegment::Index(7)], "d"),
            violation(&[field("tags"), PathSegment::Index(2)], "e"),
            violation(&[field("gone")], "f"),
            violation(&[], "g"),
        ];
        let links = attach_errors(&mut controls, &violations);
        let hrefs: Vec<&str> = links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(
            hrefs,
            ["#f-name", "#f-lines.0.price", "#f-lines.0", "#f-lines", "#f-tags._json", "#main", "#main"]
        );
        assert_eq!(controls[1].errors, ["D (item 8)"]);
        assert_eq!(controls[1].children[0].errors, ["C"]);
        assert_eq!(controls[1].children[0].children[0].errors, ["B"]);
        assert_eq!(controls[2].errors, ["E (item 3)"]);
    }
}
