//! The parts of the plain lists that SQLite and PostgreSQL share: the head of a list, its checks, and rows of one value.

use trefoil_engine::plain_list::{ExpectedVersions, VersionMatch};
use trefoil_engine::{Outcome, PlainListPosition, Row};
use trefoil_model::CellValue;
use trefoil_model::error::{Error, Result};

/// A row of `trefoil_lists`: one list without its values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListHead {
    pub id: i64,
    pub version: i64,
    pub length: i64,
    /// Greater than every position so far.
    pub next_position: i64,
}

impl ListHead {
    pub fn outcome(self, remaining: Option<PlainListPosition>) -> Outcome {
        Outcome::PlainList { version: self.version, length: self.length, remaining }
    }

    pub fn check_version(&self, expected: &ExpectedVersions) -> Result<()> {
        let found = self.version;
        let (versions, matches) = match expected {
            Some(VersionMatch::AnyOf(versions)) => (versions, versions.contains(&found)),
            Some(VersionMatch::NoneOf(versions)) => (versions, !versions.contains(&found)),
            None => return Ok(()),
        };
        if matches {
            Ok(())
        } else {
            Err(Error::Stale { expected: versions.first().copied().unwrap_or(0), found })
        }
    }

    /// Fails unless the list has a value at `index`.
    pub fn check_index(&self, list: &str, index: i64) -> Result<()> {
        if (0..self.length).contains(&index) { Ok(()) } else { Err(index_not_found(list, index)) }
    }
}

pub(crate) fn list_not_found(list: &str) -> Error {
    Error::not_found(format!("the list /{list}"))
}

pub(crate) fn index_not_found(list: &str, index: i64) -> Error {
    Error::not_found(format!("index {index} of /{list}"))
}

/// The size of a value in a response, including quotes and separator.
pub(crate) fn value_bytes(value: CellValue<'_>) -> usize {
    match value {
        CellValue::Text(text) => text.len() + 4,
        CellValue::Null | CellValue::Int(_) | CellValue::Real(_) | CellValue::Unreadable => 4,
    }
}

/// A row of one cell: a value of a list.
pub(crate) struct ListValueRow<'a>(pub CellValue<'a>);

impl Row for ListValueRow<'_> {
    fn cell(&self, _column: usize) -> CellValue<'_> {
        self.0
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
