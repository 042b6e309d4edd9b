//! Selections and listings: what was asked for, and the same after validation.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use trefoil_model::error::{Error, Result};
use trefoil_model::{Field, FieldId, Model, RecordType, RecordTypeId, Relation};

use crate::cursor::{self, CursorPosition};
use crate::operation::{CountMode, ListSlice, Listing, MAX_SORT_PATHS, Selection, SortKey};
use crate::plan::predicate::{Predicate, plan_predicates, push_shapes, search_predicate};
use crate::plan::statement_shape::StatementShape;

/// A selection with its plan, which is made once, however often requests use it. It is for one record type.
#[derive(Debug, Default)]
pub struct PreparedSelection {
    selection: Selection,
    planned: OnceLock<(RecordTypeId, Arc<PlannedSelection>)>,
}

impl PreparedSelection {
    pub fn new(selection: Selection) -> Arc<PreparedSelection> {
        Arc::new(PreparedSelection { selection, planned: OnceLock::new() })
    }

    /// The planned form, computed on first use. The plan for another record type would read and write its table.
    pub(super) fn plan(&self, model: &Model, record: RecordTypeId) -> Result<Arc<PlannedSelection>> {
        if let Some((_, planned)) = self.planned.get().filter(|(owner, _)| *owner == record) {
            return Ok(planned.clone());
        }
        let planned = Arc::new(plan_selection(model, record, &self.selection)?);
        // Fails only if there is a plan already.
        let _ = self.planned.set((record, planned.clone()));
        Ok(planned)
    }
}

impl Deref for PreparedSelection {
    type Target = Selection;

    fn deref(&self) -> &Selection {
        &self.selection
    }
}

/// A validated [`Selection`].
#[derive(Debug, Clone)]
pub struct PlannedSelection {
    pub columns: Vec<FieldId>,
    pub children: Vec<PlannedChild>,
    /// Read the version after the columns.
    pub includes_version: bool,
    pub statement_shape: StatementShape,
}

#[derive(Debug, Clone)]
pub struct PlannedChild {
    pub field: FieldId,
    pub listing: PlannedListing,
    pub selection: PlannedSelection,
}

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

fn plan_selection(model: &Model, record: RecordTypeId, selection: &Selection) -> Result<PlannedSelection> {
    let owner = model.record(record);
    let mut children = Vec::with_capacity(selection.children.len());
    for child in &selection.children {
        let target = relation_target(owner.field(child.field))?;
        children.push(PlannedChild {
            field: child.field,
            listing: plan_listing(model, model.record(target), &child.listing)?,
            selection: plan_selection(model, target, &child.selection)?,
        });
    }
    let includes_version = selection.includes_version;
    let statement_shape = selection_shape(record, &selection.columns, includes_version, &children);
    Ok(PlannedSelection { columns: selection.columns.clone(), children, includes_version, statement_shape })
}

/// The record type on the other side of a relation.
pub fn relation_target(field: &Field) -> Result<RecordTypeId> {
    let relation = field.kind.relation().map(Relation::target);
    relation.ok_or_else(|| Error::internal(format!("`{}` is not a relation", field.name)))
}

/// All that reading a record by its id depends on.
fn selection_shape(
    record: RecordTypeId,
    columns: &[FieldId],
    includes_version: bool,
    children: &[PlannedChild],
) -> StatementShape {
    let mut shape = StatementShape::of_kind(0, &StatementShape::default());
    shape.push_number(record.0);
    shape.push_fields(columns.iter().copied());
    shape.push_flag(includes_version);
    shape.push_number(children.len());
    for child in children {
        shape.push_number(child.field.0);
        child.listing.push_shape(&mut shape);
        shape.push_bytes(child.selection.statement_shape.as_bytes());
    }
    shape
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
    let is_indexed = record.search_fields().next().is_some();
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
