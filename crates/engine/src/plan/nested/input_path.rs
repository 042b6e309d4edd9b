//! Paths into the input of a nested write.

use trefoil_model::error::{PathSegment, Violation};

pub(super) type InputPath = Vec<PathSegment>;

pub(super) fn joined(path: &InputPath, rest: &[PathSegment]) -> InputPath {
    path.iter().chain(rest).cloned().collect()
}

/// Violations at a path of the input.
pub(super) fn under_path(
    path: &[PathSegment],
    violations: Vec<Violation>,
) -> impl Iterator<Item = Violation> {
    violations.into_iter().map(move |mut violation| {
        violation.path.splice(0..0, path.iter().cloned());
        violation
    })
}
