//! Plain lists: what can be asked of an ordered list of texts, and which texts it takes.

use std::sync::Arc;

use trefoil_model::error::{Error, Result};

/// One thing asked of one list. Once proven, its texts are ones that a list may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainListOperation {
    /// The list as `trefoil.toml` declares it: its path without the slash.
    pub list: Arc<str>,
    pub action: PlainListAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainListAction {
    /// The version and nothing else.
    ReadVersion,
    /// Values in order, from the beginning or from where an earlier part ended, up to about so many bytes.
    Read {
        from: Option<PlainListPosition>,
        max_bytes: usize,
    },
    /// So many values from an index on.
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
    /// The value that was removed is the one row.
    Remove {
        index: i64,
        expected: ExpectedVersions,
    },
}

/// The versions that a list may be at for a write to happen; any when nothing is expected.
pub type ExpectedVersions = Option<VersionMatch>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionMatch {
    AnyOf(Vec<i64>),
    NoneOf(Vec<i64>),
}

/// Where a part of a list ended. Values appended after the first part was read lie beyond `until`.
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

/// A list takes any text but a blank one.
pub(crate) fn check_value(asked: PlainListOperation) -> Result<PlainListOperation> {
    match asked.action.value() {
        Some(value) if value.trim().is_empty() => {
            Err(Error::invalid("value", "NOT_BLANK", "the value must not be blank"))
        }
        Some(value) if value.contains('\0') => {
            Err(Error::invalid("value", "NUL", "the value must not contain the character U+0000"))
        }
        Some(_) | None => Ok(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blank_texts_and_nul_are_refused() {
        let judged = |value: &str| {
            let act = PlainListAction::Append { value: value.into(), expected: None };
            check_value(PlainListOperation { list: "items".into(), action: act }).is_ok()
        };
        for value in ["milk", " milk ", "Grüße 你好", "a\nb", "0"] {
            assert!(judged(value), "{value:?}");
        }
        for value in ["", " ", "\n\t", "\u{a0}\u{2003}", "a\0b"] {
            assert!(!judged(value), "{value:?}");
        }
    }
}
