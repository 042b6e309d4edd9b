//! Puts the records of several types into one list.

use std::cmp::Ordering;
use std::collections::HashMap;

use trefoil_model::error::{Error, Result};
use trefoil_model::values::decimal;
use trefoil_model::{Model, RecordId, RecordType, Scalar, StoredValue};

use crate::operation::{ListSlice, Listing};

/// Every type may hold all records up to the end of a page, so that many are read of each.
const MAX_MERGED_RECORDS: i64 = 10_000;

/// How the records of several types become one list.
#[derive(Debug, Default)]
pub struct RecordMerge {
    order: Vec<MergeKey>,
    skip: usize,
    take: Option<usize>,
    /// The part of the whole list that is read.
    pub slice: ListSlice,
    /// The places of each requested id, if the list is that of ids.
    ids: Option<RecordPlaces>,
}

#[derive(Debug, Clone, Copy)]
struct MergeKey {
    descending: bool,
    is_decimal: bool,
}

/// For each requested id, the members that may have it, and their id.
pub type RecordPlaces = Vec<Vec<(usize, RecordId)>>;

/// What is compared of a record.
#[derive(Debug)]
pub struct MergedCells<'r> {
    pub member: usize,
    /// The sort keys and the id.
    pub cells: &'r [StoredValue],
}

impl RecordMerge {
    /// Turns the listing of one member into one that has all its records up to the end of the page.
    pub fn of_listing(model: &Model, record: &RecordType, listing: &mut Listing) -> Result<RecordMerge> {
        let (skip, take) = match &listing.slice {
            ListSlice::All => (0, None),
            ListSlice::Page { page, size } => (page.saturating_sub(1).saturating_mul(*size), Some(*size)),
            ListSlice::First { first, .. } => (0, Some(*first)),
            ListSlice::Between { .. } => {
                let message = "a list of several types has no `last` and `before`; use `first` and `after`";
                return Err(Error::invalid("before", "PAGING", message));
            }
            ListSlice::Range { offset, limit } => (*offset, *limit),
        };
        let end = take.map_or(skip, |take| skip.saturating_add(take));
        if end > MAX_MERGED_RECORDS {
            return Err(Error::Limit(format!(
                "a list of several types reads at most {MAX_MERGED_RECORDS} records of each, but the page ends at {end}"
            )));
        }
        let slice = listing.slice.clone();
        if !matches!(listing.slice, ListSlice::First { .. }) {
            listing.slice = ListSlice::Range { offset: 0, limit: take.map(|_| end) };
        }
        let order = listing.sort_keys.iter().map(|key| MergeKey {
            descending: key.descending,
            is_decimal: key
                .value
                .path()
                .is_some_and(|path| path.target(model, record).kind.scalar() == Some(Scalar::Decimal)),
        });
        // The sort keys and the id follow the selected columns.
        listing.with_cursors = true;
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(RecordMerge { order: order.collect(), skip: size(skip), take: take.map(size), slice, ids: None })
    }

    /// The list has the records of these ids, in this order.
    pub fn set_ids(&mut self, ids: RecordPlaces) {
        self.ids = Some(ids);
    }

    /// The number of cells after the selected columns that it needs.
    pub fn extra_cells(&self) -> usize {
        self.order.len() + 1
    }

    /// The order of the records, which are given in the order of the members.
    pub fn order(&self, records: &[MergedCells<'_>]) -> MergedOrder {
        if let Some(ids) = &self.ids {
            return MergedOrder { places: pick_ids(ids, records), has_more: false };
        }
        let mut places: Vec<usize> = (0..records.len()).collect();
        // Stable: records with equal keys stay in the order of their types, then of their ids.
        places.sort_by(|left, right| self.compare(&records[*left], &records[*right]));
        let end = self.take.map_or(places.len(), |take| self.skip.saturating_add(take));
        let page = places.iter().take(end).skip(self.skip);
        MergedOrder { places: page.copied().map(Some).collect(), has_more: places.len() > end }
    }

    fn compare(&self, left: &MergedCells<'_>, right: &MergedCells<'_>) -> Ordering {
        let cells = left.cells.iter().zip(right.cells);
        let mut keys = self.order.iter().zip(cells);
        let unequal = keys.find_map(|(key, (left, right))| {
            Some(key.compare(left, right)).filter(|ordering| ordering.is_ne())
        });
        unequal.unwrap_or(Ordering::Equal)
    }
}

/// The records of a list by their positions; `None` is an id without a record.
#[derive(Debug, PartialEq, Eq)]
pub struct MergedOrder {
    pub places: Vec<Option<usize>>,
    pub has_more: bool,
}

/// The records in the order of the requested ids.
fn pick_ids(ids: &RecordPlaces, records: &[MergedCells<'_>]) -> Vec<Option<usize>> {
    let mut found = HashMap::new();
    for (position, record) in records.iter().enumerate() {
        if let Some(id) = record.cells.last().and_then(|cell| RecordId::from_cell(cell.as_cell())) {
            found.insert((record.member, id), position);
        }
    }
    ids.iter().map(|places| places.iter().find_map(|place| found.get(place).copied())).collect()
}

impl MergeKey {
    /// As the stores order: text by code point, decimals exactly, nulls last in both directions.
    fn compare(self, left: &StoredValue, right: &StoredValue) -> Ordering {
        let ordering = match (left, right) {
            (StoredValue::Null, StoredValue::Null) => return Ordering::Equal,
            (StoredValue::Null, _) => return Ordering::Greater,
            (_, StoredValue::Null) => return Ordering::Less,
            (StoredValue::Int(left), StoredValue::Int(right)) => left.cmp(right),
            (StoredValue::Real(left), StoredValue::Real(right)) => left.total_cmp(right),
            (StoredValue::Text(left), StoredValue::Text(right)) if self.is_decimal => {
                decimal::compare(left, right)
            }
            (StoredValue::Text(left), StoredValue::Text(right)) => left.cmp(right),
            (StoredValue::Int(left), StoredValue::Real(right)) => (*left as f64).total_cmp(right),
            (StoredValue::Real(left), StoredValue::Int(right)) => left.total_cmp(&(*right as f64)),
            (StoredValue::Text(_), StoredValue::Int(_) | StoredValue::Real(_)) => Ordering::Greater,
            (StoredValue::Int(_) | StoredValue::Real(_), StoredValue::Text(_)) => Ordering::Less,
        };
        if self.descending { ordering.reverse() } else { ordering }
    }
}
