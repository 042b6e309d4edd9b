//! Listings after validation.

use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordType};

use crate::cursor::{self, CursorPosition};
use crate::operation::{CountMode, ListSlice, Listing, MAX_SORT_PATHS, SortKey};
use crate::plan::predicate::{Predicate, plan_predicates, push_shapes, search_predicate};
use crate::plan::statement_shape::StatementShape;

/// A validated [`Listing`].
#[derive(Debug, Clone, Default)]
pub struct PlannedListing {
    pub predicates: Vec<Predicate>,
    /// Without the final `id`, which every order ends with.
    pub sort_keys: Vec<SortKey>,
    /// Keyset paging: the last record already seen.
    pub after: Option<CursorPosition>,
    /// The other end: the first record no longer wanted.
    pub before: Option<CursorPosition>,
    /// Count the limit from the end of the list.
    pub from_end: bool,
    /// Maximum number of records …
    pub limit: Option<i64>,
    /// … after skipping this number.
    pub offset: i64,
    pub count: CountMode,
    pub with_cursors: bool,
    /// Maximum number of records that a search may read.
    pub max_search_rows: Option<u32>,
}

/// See [`PlannedListing::row_bound`].
const ROW_BOUNDS: [i64; 5] = [8, 32, 128, 512, 2_048];

impl PlannedListing {
    /// The error for a search in the records of this type that would read too many.
    pub fn search_limit_error(&self, name: &str) -> Error {
        let max = self.max_search_rows.unwrap_or_default();
        Error::Limit(format!(
            "a search would read more records of {name} than limits.search-rows allows, which is {max}; add `@search` to \
             its text fields, or a filter by an indexed field"
        ))
    }

    pub fn has_limit_or_offset(&self) -> bool {
        self.limit.is_some() || self.offset > 0
    }

    /// A number that the rows up to the end of the page are at most, where they are found by related records: for a
    /// store whose statements have it as a constant. There are few, so that few statements differ by them.
    pub fn row_bound(&self) -> Option<i64> {
        if !self.predicates.iter().any(Predicate::needs_related) {
            return None;
        }
        // One more row says that the list goes on.
        let end = self.limit?.saturating_add(self.offset).saturating_add(1);
        ROW_BOUNDS.into_iter().find(|bound| *bound >= end)
    }

    /// Adds what decides the statements of the listing.
    pub fn push_shape(&self, shape: &mut StatementShape) {
        push_shapes(&self.predicates, shape);
        shape.push_number(self.sort_keys.len());
        for SortKey { value, descending } in &self.sort_keys {
            shape.push_flag(value.path().is_some());
            if let Some(path) = value.path() {
                shape.push_fields(path.references.iter().copied());
                path.value.push_shape(shape);
            }
            shape.push_flag(*descending);
        }
        shape.push_flag(self.has_limit_or_offset());
        shape.push_flag(self.with_cursors);
        shape.push_flag(self.max_search_rows.is_some());
        shape.push_number(match self.count {
            CountMode::Skip => 0,
            CountMode::Exact => 1,
            CountMode::UpTo(_) => 2,
        });
        shape.push_flag(self.from_end);
        for cursor in [&self.after, &self.before] {
            shape.push_bytes(&cursor.as_ref().map(CursorPosition::statement_shape).unwrap_or_default());
        }
    }
}

pub(super) fn plan_listing(model: &Model, record: &RecordType, listing: &Listing) -> Result<PlannedListing> {
    let mut predicates = plan_predicates(model, record, &listing.conditions)?;
    if let Some(search) = &listing.search {
        predicates.push(search_predicate(model, record, &search.text));
    }
    let path_count = listing.sort_keys.iter().filter(|key| key.value.own_field().is_none()).count();
    if path_count > MAX_SORT_PATHS {
        return Err(Error::Limit(format!(
            "too many sort keys through references and embedded values: {path_count}, but at most {MAX_SORT_PATHS} are \
             allowed"
        )));
    }
    let position = |name: &str, text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| cursor::decode(model, record, &listing.sort_keys, name, text)).transpose()
    };
    let is_indexed = record.has_open_index();
    let mut planned = PlannedListing {
        predicates,
        sort_keys: listing.sort_keys.clone(),
        count: listing.count,
        max_search_rows: listing.search.as_ref().and_then(|search| search.max_rows).filter(|_| !is_indexed),
        with_cursors: listing.with_cursors,
        ..PlannedListing::default()
    };
    match &listing.slice {
        ListSlice::All => {}
        ListSlice::Page { page, size } => {
            planned.limit = Some(*size);
            // An offset that overflows is past the end anyway.
            planned.offset = page.saturating_sub(1).saturating_mul(*size);
        }
        ListSlice::First { first, after } => {
            planned.limit = Some(*first);
            planned.after = position("after", after)?;
        }
        ListSlice::Between { after, before, count, from_end } => {
            planned.limit = Some(*count);
            planned.after = position("after", after)?;
            planned.before = position("before", before)?;
            planned.from_end = *from_end;
        }
        ListSlice::Range { offset, limit } => (planned.limit, planned.offset) = (*limit, *offset),
    }
    Ok(planned)
}
