//! Places each violation beside its control and in the summary of a form.

use trefoil_model::error::{PathSegment, Violation};
use trefoil_resources::forms::typed_values::JSON_CONTROL;

use crate::template_data::{ControlView, PageLink};

/// Link target of a violation without a control.
const PAGE_TOP: &str = "#main";

/// Attaches violations to controls and returns the summary; each entry links to its control.
pub fn attach_errors(controls: &mut [ControlView], violations: &[Violation]) -> Vec<PageLink> {
    violations.iter().filter_map(|violation| attach_error(controls, violation)).collect()
}

/// Codes of what a blank text violates, which say less than that it is missing.
const TEXT_CODES: [&str; 4] = ["NOT_BLANK", "PATTERN", "LENGTH", "EMAIL"];

/// What a required control is told in which nothing was typed: that, once, or what the schema says of it.
fn blank_message(control: &ControlView, violation: &Violation) -> Option<String> {
    let is_blank =
        control.value.trim().is_empty() && control.children.is_empty() && control.options.is_empty();
    if control.optional || !is_blank || !TEXT_CODES.contains(&violation.code) {
        return None;
    }
    Some(control.blank_message.clone().unwrap_or_else(|| format!("{} is required", control.label)))
}

/// Attaches to the nearest enclosing control: a line of a list has none of its own.
/// `None` if the control says it already.
fn attach_error(controls: &mut [ControlView], violation: &Violation) -> Option<PageLink> {
    let (path, message) = (&violation.path, capitalize(&violation.message));
    for end in (1..=path.len()).rev() {
        let name = dotted_name(&path[..end]);
        let Some(control) = find_control(controls, &name) else { continue };
        let blank = blank_message(control, violation).filter(|_| end == path.len());
        if blank.is_some() && !control.errors.is_empty() {
            return None;
        }
        let message = blank.unwrap_or(message);
        let label = match path.get(end) {
            Some(PathSegment::Index(index)) => format!("{message} (item {})", index + 1),
            Some(PathSegment::Field(_)) | None => message,
        };
        control.errors.push(label.clone());
        let href = format!("#{}", control.id);
        let label = row_label(controls, path).map_or(label.clone(), |row| format!("{row}: {label}"));
        return Some(PageLink { label, href });
    }
    Some(PageLink { label: message, href: PAGE_TOP.to_owned() })
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
        // The controls of a group of fields are as they are without it.
        if control_name.is_empty() {
            if let Some(found) = find_control(&mut control.children, name) {
                return Some(found);
            }
            continue;
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
    fn a_blank_control_is_required_and_nothing_else() {
        let zip = ControlView { label: "Zip".to_owned(), ..control("zip", vec![]) };
        let violation = |code: &'static str, message: &str| Violation::new("zip", code, message);
        let shown = |control: &ControlView, violations: &[Violation]| {
            let mut controls = [control.clone()];
            let links = attach_errors(&mut controls, violations);
            assert_eq!(links.iter().map(|link| link.label.clone()).collect::<Vec<_>>(), controls[0].errors);
            controls[0].errors.clone()
        };
        let blank = violation("NOT_BLANK", "Zip must not be blank");
        let digits = violation("PATTERN", "Zip must be 5 digits");
        assert_eq!(shown(&zip, &[blank.clone(), digits.clone()]), ["Zip is required"]);
        assert_eq!(shown(&zip, &[digits.clone(), blank]), ["Zip is required"]);
        let own = ControlView { blank_message: Some("Where?".to_owned()), ..zip.clone() };
        assert_eq!(shown(&own, &[digits.clone(), violation("NOT_BLANK", "Where?")]), ["Where?"]);
        // Whatever words the rule has.
        assert_eq!(shown(&zip, &[violation("NOT_BLANK", "Zip darf nicht leer sein")]), ["Zip is required"]);
        let typed = ControlView { value: "x".to_owned(), ..zip.clone() };
        assert_eq!(shown(&typed, std::slice::from_ref(&digits)), ["Zip must be 5 digits"]);
        let optional = ControlView { optional: true, ..zip };
        assert_eq!(shown(&optional, &[digits]), ["Zip must be 5 digits"]);
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
