//! The part of a list that is wanted: its conditions, order and page.

use trefoil_model::RecordId;

use crate::operation::{Condition, SortKey};

/// The records of a list and their order.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Records meet all of them.
    pub conditions: Vec<Condition>,
    /// Matches records in which every word of a text occurs.
    pub search: Option<ListSearch>,
    /// Ties are broken by id, ascending.
    pub sort_keys: Vec<SortKey>,
    pub slice: ListSlice,
    /// Counts all matching records, whatever the slice.
    pub count: CountMode,
    /// Also reads what cursors need: the sort keys and the id follow the selected columns.
    pub with_cursors: bool,
}

impl Listing {
    /// The records with these ids.
    pub fn of_ids(ids: Vec<RecordId>) -> Listing {
        let slice = ListSlice::Range { offset: 0, limit: i64::try_from(ids.len()).ok() };
        Listing { conditions: vec![Condition::HasId(ids)], slice, ..Listing::default() }
    }

    /// Whether it is known to find nothing.
    pub fn is_of_no_ids(&self) -> bool {
        self.conditions.iter().any(|condition| matches!(condition, Condition::HasId(ids) if ids.is_empty()))
    }

    /// The number of cells that follow the selected columns, for cursors.
    pub fn cursor_cells(&self) -> usize {
        if self.with_cursors { self.sort_keys.len() + 1 } else { 0 }
    }
}

/// A search in the texts of a list; [`crate::list_window::limited_search`] makes it.
#[derive(Debug, Clone)]
pub struct ListSearch {
    pub text: String,
    /// Refused if it would have to read more records than this.
    pub max_rows: Option<u32>,
}

/// How the records of a list are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountMode {
    #[default]
    Skip,
    Exact,
    /// Counts up to one more than this number, which then means "more": the cost does not grow with the list.
    UpTo(u32),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum ListSlice {
    #[default]
    All,
    /// Pages count from 1.
    Page { page: i64, size: i64 },
    /// The first records after a cursor.
    First { first: i64, after: Option<String> },
    /// Some records between two cursors, counted from the beginning or from the end; in the order of the list.
    Between { after: Option<String>, before: Option<String>, count: i64, from_end: bool },
    /// Some records after the first `offset` ones, or all of them.
    Range { offset: i64, limit: Option<i64> },
}

impl ListSlice {
    /// The cursor after which the records begin.
    pub fn after(&self) -> Option<&str> {
        match self {
            ListSlice::First { after, .. } | ListSlice::Between { after, .. } => after.as_deref(),
            ListSlice::All | ListSlice::Page { .. } | ListSlice::Range { .. } => None,
        }
    }

    /// The greatest number of records in the slice; `None` if it has no limit.
    pub fn max_count(&self) -> Option<i64> {
        match self {
            ListSlice::All => None,
            ListSlice::Page { size: count, .. }
            | ListSlice::First { first: count, .. }
            | ListSlice::Between { count, .. } => Some(*count),
            ListSlice::Range { limit, .. } => *limit,
        }
    }

    /// The number of records before the slice; `None` if it begins at a cursor or ends at the end of the list.
    pub fn offset(&self) -> Option<i64> {
        match self {
            ListSlice::Page { page, size } => Some((page - 1).saturating_mul(*size)),
            ListSlice::Range { offset, .. } => Some(*offset),
            ListSlice::All
            | ListSlice::First { after: None, .. }
            | ListSlice::Between { after: None, from_end: false, .. } => Some(0),
            ListSlice::First { .. } | ListSlice::Between { .. } => None,
        }
    }

    /// The number of the page in which the slice begins, counted from 0. All records are on one page.
    pub fn page_index(&self) -> Option<i64> {
        match self {
            ListSlice::Page { page, .. } => Some(page - 1),
            ListSlice::All
            | ListSlice::First { .. }
            | ListSlice::Between { .. }
            | ListSlice::Range { .. } => Some(self.offset()? / self.max_count().unwrap_or(i64::MAX).max(1)),
        }
    }

    /// The same slice with one more record, at the end that it is not counted from: it tells whether the list goes on.
    pub fn with_one_more(&self) -> ListSlice {
        match self.clone() {
            ListSlice::All => ListSlice::All,
            ListSlice::Page { page, size } => ListSlice::Range {
                offset: page.saturating_sub(1).saturating_mul(size),
                limit: Some(size.saturating_add(1)),
            },
            ListSlice::First { first, after } => ListSlice::First { first: first.saturating_add(1), after },
            ListSlice::Between { after, before, count, from_end } => {
                ListSlice::Between { after, before, count: count.saturating_add(1), from_end }
            }
            ListSlice::Range { offset, limit } => {
                ListSlice::Range { offset, limit: limit.map(|limit| limit.saturating_add(1)) }
            }
        }
    }

    /// True if there are records before this slice.
    pub fn has_preceding(&self) -> bool {
        match self {
            ListSlice::All => false,
            ListSlice::Page { page, .. } => *page > 1,
            ListSlice::First { after, .. } | ListSlice::Between { after, .. } => after.is_some(),
            ListSlice::Range { offset, .. } => *offset > 0,
        }
    }
}
