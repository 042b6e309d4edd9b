//! The rows of a listing as one statement. If they are found by related records, it has two parts, of which one runs: for
//! few such records and for many.

use trefoil_engine::plan::{PlannedListing, Predicate};
use trefoil_model::{ComparisonOp, FieldId, Model, RecordType};

use crate::statements::dialect::Dialect;
use crate::statements::indexed_predicate::{is_index_order, is_indexed_predicate};
use crate::statements::related::selected_rows::{LimitMarks, RowLimits, SelectedRows};
use crate::statements::search::search_by_id::SearchedRows;
use crate::statements::select::SelectBuilder;
use crate::statements::where_clause::{WhereBuilder, chooses_ids};

/// How deep relations may lead: SQLite copies a list to each place that names it.
const MAX_DEPTH: usize = 3;

impl SelectBuilder<'_> {
    /// Selects the rows; `select` returns what is selected, and the order.
    pub(in crate::statements) fn rows_sql(
        self,
        owner: &RecordType,
        listing: &PlannedListing,
        limits: RowLimits,
        select: impl Fn(&WhereBuilder<'_>) -> (String, Option<String>),
    ) -> String {
        let new_filter = || {
            let table = self.table_alias(owner);
            WhereBuilder::for_listing(self.dialect, self.model, owner, listing, table)
        };
        let rows = |filter: &WhereBuilder<'_>| {
            let (selected, order) = select(filter);
            SelectedRows { selected, from: filter.from().to_owned(), terms: filter.terms.clone(), order }
        };
        // A count up to a limit may never reach it, so it must not look for matches in the order of the list.
        let is_page = limits == RowLimits::LimitAndOffset;
        let place = is_page.then(|| key_place(self.model, owner, listing)).flatten();
        let mut filter = new_filter();
        if place.is_some() {
            filter.look_up_related(None);
        }
        filter.add_listing(listing);
        let marks = match limits {
            RowLimits::None => return rows(&filter).sql(None, ""),
            RowLimits::Limit => LimitMarks { limit: filter.next_parameter(), offset: String::new() },
            RowLimits::LimitAndOffset => LimitMarks {
                limit: filter.next_parameter(),
                offset: format!(" OFFSET {}", filter.next_parameter()),
            },
        };
        if place.is_none() {
            let is_walked = is_page && is_walked_search(self.dialect, listing);
            let Some(words) = filter.indexed_words().filter(|_| is_walked) else {
                return rows(&filter).sql(None, &marks.clause());
            };
            let mut walked = new_filter();
            walked.order_by_id();
            walked.add_listing(listing);
            let search = SearchedRows {
                owner,
                indexed: rows(&filter),
                walked: rows(&walked),
                predicate_count: listing.predicates.len(),
                words,
            };
            return search.sql(&marks);
        }
        let mut listed = new_filter();
        listed.look_up_related(place);
        listed.add_listing(listing);
        listed.key_lists().choose(
            &rows(&listed),
            &rows(&filter),
            &marks,
            constant_row_bound(self.dialect, listing),
        )
    }
}

/// The number of rows that the statement for a page has as a constant: see `KeyLists::choose`.
pub(in crate::statements) fn constant_row_bound(dialect: Dialect, listing: &PlannedListing) -> Option<i64> {
    listing.row_bound().filter(|_| dialect == Dialect::Postgres)
}

/// True if a page of a search may be found in the order of the list.
fn is_walked_search(dialect: Dialect, listing: &PlannedListing) -> bool {
    dialect == Dialect::Postgres && listing.sort_keys.is_empty() && !listing.from_end
}

/// The related records that are found first, counted among those that a record must have. `None` if one statement serves
/// few and many: without such records, where the ids are known or are found by words, and where all are read to sort them.
fn key_place(model: &Model, owner: &RecordType, listing: &PlannedListing) -> Option<usize> {
    let predicates = &listing.predicates;
    let is_found_otherwise = |predicate: &Predicate| {
        chooses_ids(owner, predicate)
            || matches!(
                predicate,
                Predicate::Words { .. } | Predicate::IndexedWords { .. } | Predicate::ShownWords { .. }
            )
    };
    if !is_index_order(owner, listing) || predicates.iter().any(is_found_otherwise) {
        return None;
    }
    let mut required = Vec::new();
    add_required(predicates, &mut required);
    let related: Vec<(&RecordType, &[Predicate])> = required
        .into_iter()
        .filter_map(|(relation, predicates)| {
            let relation = owner.field(relation).kind.relation()?;
            Some((model.record(relation.target()), predicates))
        })
        .collect();
    if related.iter().any(|(_, predicates)| relation_depth(predicates) >= MAX_DEPTH) {
        return None;
    }
    // Databases know that there is one.
    if related.iter().any(|(target, predicates)| predicates.iter().any(|inner| is_single(target, inner))) {
        return None;
    }
    let is_fast = |(target, predicates): &(&RecordType, &[Predicate])| {
        predicates
            .iter()
            .any(|inner| matches!(inner, Predicate::Related { .. }) || is_indexed_predicate(target, inner))
    };
    let fast = related.iter().position(is_fast);
    fast.or_else(|| (!related.is_empty()).then_some(0))
}

/// Adds the related records that a record must have, in the order of their terms.
fn add_required<'p>(predicates: &'p [Predicate], into: &mut Vec<(FieldId, &'p [Predicate])>) {
    for predicate in predicates {
        if let Predicate::Related { relation, predicates } = predicate {
            into.push((*relation, predicates));
        } else if let Predicate::All(predicates) = predicate {
            add_required(predicates, into);
        }
    }
}

/// How many relations follow each other.
fn relation_depth(predicates: &[Predicate]) -> usize {
    let mut required = Vec::new();
    add_required(predicates, &mut required);
    required.iter().map(|(_, predicates)| 1 + relation_depth(predicates)).max().unwrap_or(0)
}

/// True if at most one record meets the predicate.
fn is_single(target: &RecordType, predicate: &Predicate) -> bool {
    let Predicate::Compare { path, op: ComparisonOp::Eq, .. } = predicate else { return false };
    let field = target.field(path.field);
    path.members.is_empty() && (field.unique || field.kind.is_id())
}
