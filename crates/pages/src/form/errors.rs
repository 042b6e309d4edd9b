//! Puts each complaint beside the control it is about, and all of them into the summary.

use crate::view::{Control, Link};
use trefoil_model::error::{Segment, Violation};
use trefoil_resources::typed_values::WHOLE;

/// Where a complaint leads that no control is to blame for.
const TOP: &str = "#main";

/// The summary; each entry leads to its control.
pub fn place(controls: &mut [Control], violations: &[Violation]) -> Vec<Link> {
    violations.iter().map(|violation| complain(controls, violation)).collect()
}

/// The nearest control around what is wrong: a line of a list has none of its own.
fn complain(controls: &mut [Control], violation: &Violation) -> Link {
    let (path, message) = (&violation.path, sentence(&violation.message));
    for end in (1..=path.len()).rev() {
        let name = dotted(&path[..end]);
        let Some(control) = find(controls, &name) else { continue };
        let label = match path.get(end) {
            Some(Segment::Index(index)) => format!("{message} (number {})", index + 1),
            Some(Segment::Field(_)) | None => message,
        };
        control.errors.push(label.clone());
        return Link { label, href: format!("#{}", control.id) };
    }
    Link { label: message, href: TOP.to_owned() }
}

/// A message that stands for itself: some go on after other words elsewhere.
pub fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn dotted(path: &[Segment]) -> String {
    let steps = path.iter().map(|segment| match segment {
        Segment::Field(name) => name.clone(),
        Segment::Index(index) => index.to_string(),
    });
    steps.collect::<Vec<_>>().join(".")
}

fn find<'c>(controls: &'c mut [Control], name: &str) -> Option<&'c mut Control> {
    for control in controls {
        let own =
            control.name.strip_suffix(WHOLE).map_or(control.name.as_str(), |name| name.trim_end_matches('.'));
        if own == name {
            return Some(control);
        }
        if name.strip_prefix(own).is_some_and(|rest| rest.starts_with('.')) {
            return find(&mut control.children, name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(name: &str, children: Vec<Control>) -> Control {
        Control { name: name.to_owned(), id: format!("f-{name}"), children, ..Control::default() }
    }

    #[test]
    fn each_complaint_finds_the_nearest_control() {
        let lines = control("lines", vec![control("lines.0", vec![control("lines.0.price", vec![])])]);
        let mut controls = [control("name", vec![]), lines, control("tags._json", vec![])];
        let at = |path: &[Segment], message: &str| Violation {
            path: path.to_vec(),
            code: "X",
            message: message.into(),
        };
        let field = |name: &str| Segment::Field(name.to_owned());
        let violations = [
            at(&[field("name")], "a"),
            at(&[field("lines"), Segment::Index(0), field("price")], "b"),
            at(&[field("lines"), Segment::Index(0), field("other")], "c"),
            at(&[field("lines"), Segment::Index(7)], "d"),
            at(&[field("tags"), Segment::Index(2)], "e"),
            at(&[field("gone")], "f"),
            at(&[], "g"),
        ];
        let links = place(&mut controls, &violations);
        let hrefs: Vec<&str> = links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(
            hrefs,
            ["#f-name", "#f-lines.0.price", "#f-lines.0", "#f-lines", "#f-tags._json", "#main", "#main"]
        );
        assert_eq!(controls[1].errors, ["D (number 8)"]);
        assert_eq!(controls[1].children[0].errors, ["C"]);
        assert_eq!(controls[1].children[0].children[0].errors, ["B"]);
        assert_eq!(controls[2].errors, ["E (number 3)"]);
    }
}
