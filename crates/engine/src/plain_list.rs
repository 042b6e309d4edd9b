//! Plain lists: what can be asked of an ordered list of texts, and which texts it takes.

use std::sync::Arc;

use trefoil_model::error::{Error, Result};

/// One thing asked of one list. Once proven, its texts are ones that a list may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnList {
    /// The list as `trefoil.toml` declares it: its path without the slash.
    pub list: Arc<str>,
    pub act: ListAct,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListAct {
    /// The version and nothing else.
    Look,
    /// Values in order, from the beginning or from where an earlier part ended, up to about so many bytes.
    Read {
        from: Option<Place>,
        bytes: usize,
    },
    /// So many values from an index on.
    Slice {
        index: i64,
        count: i64,
    },
    Append {
        value: String,
        expected: Expected,
    },
    Replace {
        index: i64,
        value: String,
        expected: Expected,
    },
    /// The value that was removed is the one row.
    Remove {
        index: i64,
        expected: Expected,
    },
}

/// The versions that a list may be at for a write to happen; any when nothing is expected.
pub type Expected = Option<Versions>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    Among(Vec<i64>),
    Except(Vec<i64>),
}

/// Where a part of a list ended. Values appended after the first part was read lie beyond `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub after: i64,
    pub until: i64,
}

impl ListAct {
    pub fn writes(&self) -> bool {
        match self {
            ListAct::Look | ListAct::Read { .. } | ListAct::Slice { .. } => false,
            ListAct::Append { .. } | ListAct::Replace { .. } | ListAct::Remove { .. } => true,
        }
    }

    fn value(&self) -> Option<&str> {
        match self {
            ListAct::Append { value, .. } | ListAct::Replace { value, .. } => Some(value),
            ListAct::Look | ListAct::Read { .. } | ListAct::Slice { .. } | ListAct::Remove { .. } => None,
        }
    }
}

/// A list takes any text but a blank one.
pub(crate) fn prove(asked: OnList) -> Result<OnList> {
    match asked.act.value() {
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
            let act = ListAct::Append { value: value.into(), expected: None };
            prove(OnList { list: "items".into(), act }).is_ok()
        };
        for value in ["milk", " milk ", "Grüße 你好", "a\nb", "0"] {
            assert!(judged(value), "{value:?}");
        }
        for value in ["", " ", "\n\t", "\u{a0}\u{2003}", "a\0b"] {
            assert!(!judged(value), "{value:?}");
        }
    }
}
