//! What a list is sorted by: a value of its records, or of the records that references lead to.

use trefoil_model::{FieldId, Model, RecordType};

use crate::operation::reference_path::ReferencePath;

/// The number of references and embedded values that a sort key may go through.
pub const MAX_SORT_DEPTH: usize = 3;

/// The number of sort keys of a list that may go through references and embedded values: each may join more tables.
pub const MAX_SORT_PATHS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    pub value: SortValue,
    pub descending: bool,
}

/// What records are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortValue {
    Path(ReferencePath),
    /// The weighted number of occurrences of the words of a search in the record itself; 0 without a search.
    Rank,
}

/// How a rank is named among sort keys. The best come first, and with `-` last.
pub const RANK_NAME: &str = "@rank";

impl SortKey {
    /// By a field of the record itself.
    pub fn by_field(field: FieldId, descending: bool) -> SortKey {
        SortKey { value: SortValue::Path(field.into()), descending }
    }

    /// Appends it, unless there is one by the same value already.
    pub fn append_to(self, sort_keys: &mut Vec<SortKey>) {
        if !sort_keys.iter().any(|known| known.value == self.value) {
            sort_keys.push(self);
        }
    }

    /// The key as `sort` spells it: `-user.name`.
    pub fn word(&self, model: &Model, record: &RecordType) -> String {
        let is_marked = self.descending != (self.value == SortValue::Rank);
        format!("{}{}", if is_marked { "-" } else { "" }, self.value.name(model, record))
    }
}

impl SortValue {
    pub fn path(&self) -> Option<&ReferencePath> {
        match self {
            SortValue::Path(path) => Some(path),
            SortValue::Rank => None,
        }
    }

    /// The field of the record itself, if the value is in its column.
    pub fn own_field(&self) -> Option<FieldId> {
        self.path().and_then(ReferencePath::own_field)
    }

    pub fn name(&self, model: &Model, record: &RecordType) -> String {
        self.path().map_or_else(|| RANK_NAME.to_owned(), |path| path.name(model, record))
    }
}
