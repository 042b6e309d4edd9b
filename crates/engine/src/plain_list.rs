//! Plain lists: operations on ordered lists of texts.

use std::sync::Arc;

use trefoil_model::Model;
use trefoil_model::access::AccessRule;
use trefoil_model::error::{Error, Result};

use crate::access::AccessView;

/// An operation on one list. In a plan its texts are validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainListOperation {
    /// The name as `trefoil.toml` declares it: the path without the slash.
    pub list: Arc<str>,
    pub action: PlainListAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainListAction {
    /// Reads only the version.
    ReadVersion,
    /// Reads values in order, from the beginning or an earlier position, up to about `max_bytes`.
    Read {
        from: Option<PlainListPosition>,
        max_bytes: usize,
    },
    /// Reads `count` values from an index on.
    Slice {
        index: i64,
        count: i64,
    },
    Append {
        value: String,
        expected: ExpectedVersions,
    },
    Replace {
        index: i64,
        value: String,
        expected: ExpectedVersions,
    },
    /// Removes a value and returns it as the only row.
    Remove {
        index: i64,
        expected: ExpectedVersions,
    },
}

/// The versions at which a write is allowed; `None` allows any.
pub type ExpectedVersions = Option<VersionMatch>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionMatch {
    AnyOf(Vec<i64>),
    NoneOf(Vec<i64>),
}

/// The position where a partial read ended. Values appended after the first part was read are beyond `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainListPosition {
    pub after: i64,
    pub until: i64,
}

impl PlainListAction {
    pub fn is_write(&self) -> bool {
        match self {
            PlainListAction::ReadVersion | PlainListAction::Read { .. } | PlainListAction::Slice { .. } => {
                false
            }
            PlainListAction::Append { .. }
            | PlainListAction::Replace { .. }
            | PlainListAction::Remove { .. } => true,
        }
    }

    fn value(&self) -> Option<&str> {
        match self {
            PlainListAction::Append { value, .. } | PlainListAction::Replace { value, .. } => Some(value),
            PlainListAction::ReadVersion
            | PlainListAction::Read { .. }
            | PlainListAction::Slice { .. }
            | PlainListAction::Remove { .. } => None,
        }
    }
}

/// Refuses what the rules of the list do not let the actor do.
pub(crate) fn check_access(operation: &PlainListOperation, model: &Model, view: &AccessView) -> Result<()> {
    let require = |is_write| view.require_rule(model, list_rule(model, &operation.list, is_write));
    match operation.action {
        PlainListAction::Append { .. } => require(true),
        PlainListAction::ReadVersion | PlainListAction::Read { .. } | PlainListAction::Slice { .. } => {
            require(false)
        }
        // Whoever names a value by its place learns whether there is one, and which.
        PlainListAction::Replace { .. } | PlainListAction::Remove { .. } => {
            require(true)?;
            require(false)
        }
    }
}

/// The rule of a list; without one, nobody may do this.
pub(crate) fn list_rule<'m>(model: &'m Model, list: &str, is_write: bool) -> Option<&'m AccessRule> {
    let rules = model.access.as_ref()?.lists.get(list)?;
    if is_write { rules.write.as_ref() } else { rules.read.as_ref() }
}

/// Refuses blank texts and U+0000.
pub(crate) fn check_value(operation: PlainListOperation) -> Result<PlainListOperation> {
    match operation.action.value() {
        Some(value) if value.trim().is_empty() => {
            Err(Error::invalid("value", "NOT_BLANK", "the value must not be blank"))
        }
        Some(value) if value.contains('\0') => {
            Err(Error::invalid("value", "NUL", "the value must not contain the character U+0000"))
        }
        Some(_) | None => Ok(operation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_texts_and_nul_are_refused() {
        let is_accepted = |value: &str| {
            let action = PlainListAction::Append { value: value.into(), expected: None };
            check_value(PlainListOperation { list: "items".into(), action }).is_ok()
        };
        for value in ["milk", " milk ", "Grüße 你好", "a\nb", "0"] {
            assert!(is_accepted(value), "{value:?}");
        }
        for value in ["", " ", "\n\t", "\u{a0}\u{2003}", "a\0b"] {
            assert!(!is_accepted(value), "{value:?}");
        }
    }
}
