//! What is said about a page beside its records, known once all its rows are read.

use trefoil_engine::ListSlice;
use trefoil_engine::cursor::{CursorFormat, RowPosition};
use trefoil_model::{PagePart, Value};

use crate::plan::shape::ValueSlot;

/// Where a page lies in its list.
pub struct PageExtent<'a> {
    pub slice: &'a ListSlice,
    /// The list goes on where the count of the slice ended.
    pub has_more: bool,
    /// The number of all records, if they were counted.
    pub total: Option<u64>,
    /// Tells the list and the page from others, if an id of the page is wanted.
    pub page_id: Option<&'a str>,
}

pub struct PageInfo<'a> {
    pub extent: PageExtent<'a>,
    /// The number that an argument gives the first page.
    pub first_page: Option<i64>,
    /// The number of records on the page.
    pub rows: usize,
    /// The first and the last record, if cursors are wanted.
    pub start: Option<(&'a CursorFormat, &'a RowPosition)>,
    pub end: Option<(&'a CursorFormat, &'a RowPosition)>,
}

impl PageExtent<'_> {
    /// Whether there are records before and after the page. At a cursor the list always goes on: there is the record of
    /// the cursor.
    fn has_previous_and_next(&self) -> (bool, bool) {
        match self.slice {
            ListSlice::Between { before, from_end: true, .. } => (self.has_more, before.is_some()),
            ListSlice::All
            | ListSlice::Page { .. }
            | ListSlice::First { .. }
            | ListSlice::Between { .. }
            | ListSlice::Range { .. } => (self.slice.has_preceding(), self.has_more),
        }
    }

    /// Without a size all records are on one page; no records are on no page.
    fn page_count(&self) -> Option<u64> {
        let size = self.slice.max_count().and_then(|size| u64::try_from(size).ok());
        self.total.map(|total| total.div_ceil(size.unwrap_or(total).max(1)))
    }
}

impl PageInfo<'_> {
    pub fn value(&self, part: PagePart, slot: &ValueSlot) -> Value {
        let slice = self.extent.slice;
        let (has_previous, has_next) = self.extent.has_previous_and_next();
        let page = |first_page: i64| slice.page_index().map(|index| index.saturating_add(first_page));
        let next_cursor = self.end.filter(|_| has_next);
        match part {
            PagePart::Total => number(self.extent.total),
            PagePart::PageCount => number(self.extent.page_count()),
            PagePart::Page => number(page(self.first_page.unwrap_or(1))),
            PagePart::SpringNumber => number(page(self.first_page.unwrap_or(0))),
            PagePart::PageIndex => number(page(0)),
            PagePart::NextPage => number(page(self.first_page.unwrap_or(1) + 1).filter(|_| has_next)),
            PagePart::PreviousPage => number(page(self.first_page.unwrap_or(1) - 1).filter(|_| has_previous)),
            PagePart::Size => slice.max_count().map_or_else(|| number(Some(self.rows)), Value::Int),
            PagePart::Length => number(Some(self.rows)),
            PagePart::Offset => number(slice.offset()),
            PagePart::PageId => {
                let offset = slice.offset().unwrap_or_default();
                let page = self.extent.page_id.map_or_else(|| offset.to_string(), str::to_owned);
                Value::String(format!("{page}-{}", self.rows))
            }
            PagePart::HasNext => Value::Bool(has_next),
            PagePart::HasPrevious => Value::Bool(has_previous),
            PagePart::IsFirst => Value::Bool(!has_previous),
            PagePart::IsLast => Value::Bool(!has_next),
            PagePart::IsEmpty => Value::Bool(self.rows == 0),
            PagePart::StartCursor => cursor(self.start, slot),
            PagePart::EndCursor => cursor(self.end, slot),
            PagePart::NextCursor => cursor(next_cursor, slot),
        }
    }
}

fn number<N: TryInto<i64>>(number: Option<N>) -> Value {
    number.and_then(|number| number.try_into().ok()).map_or(Value::Null, Value::Int)
}

/// Where null is not allowed, no cursor is an empty text: it must not cost the whole page.
fn cursor(record: Option<(&CursorFormat, &RowPosition)>, slot: &ValueSlot) -> Value {
    match record {
        Some((format, position)) => Value::String(format.encode(position.clone())),
        None if slot.required => Value::String(String::new()),
        None => Value::Null,
    }
}
