//! Plans connections and pages over the related records of a record.

use std::ops::Range;
use std::sync::Arc;

use apollo_compiler::ast::Type;
use apollo_compiler::executable::Field;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{AggregateQuery, GroupMeasure, ListSlice};
use trefoil_model::{FieldId, PagePart, RecordTypeId};

use crate::plan::collect::FieldGroup;
use crate::plan::planner::OperationPlanner;
use crate::plan::shape::{
    ChildContent, ConnectionShape, FieldSource, LeafType, OutputShape, RecordReads, RelatedConnection,
    RelatedRead, ValueSlot,
};

impl<'a> OperationPlanner<'a> {
    /// A field whose type wraps the related records.
    pub fn plan_related_connection(
        &mut self,
        field: FieldId,
        target: RecordTypeId,
        first: &'a Field,
        ty: &Type,
        group: &FieldGroup<'a>,
        reads: &mut RecordReads,
    ) -> (ValueSlot, FieldSource) {
        // The slot is for a record that is a value of a resolver; one of the store has the connection.
        let slot = match self.engine.registry().is_empty() {
            true => ValueSlot { required: ty.is_non_null(), output: OutputShape::Leaf(LeafType::Custom) },
            false => self.plan_slot(ty, group),
        };
        let mut listing = match self.relation_listing(target, first) {
            Ok(listing) => listing,
            Err(error) => return (slot, FieldSource::Invalid(Arc::new(error))),
        };
        let connection = Arc::new(self.plan_connection(target, None, ty.inner_named_type(), group));
        let total = connection.needs_total.then(|| {
            let query = AggregateQuery {
                conditions: listing.conditions.clone(),
                search: listing.search.clone(),
                measures: vec![GroupMeasure::Count],
                ..AggregateQuery::default()
            };
            reads.add_child(RelatedRead { field, content: ChildContent::Groups(query) })
        });
        let slice = listing.slice.clone();
        // A list without a limit ends where it ends.
        let needs_extent = connection.needs_extent && slice != ListSlice::All;
        if needs_extent {
            listing.slice = slice.with_one_more();
        }
        listing.with_cursors = connection.needs_cursors;
        let model = self.engine.model();
        let cursors =
            listing.with_cursors.then(|| CursorFormat::of(model, model.record(target), &listing.sort_keys));
        let records = (connection.needs_records || needs_extent).then(|| {
            let content = ChildContent::Connection { listing, connection: connection.clone() };
            reads.add_child(RelatedRead { field, content })
        });
        let related = RelatedConnection { connection, records, total, slice, cursors };
        (slot, FieldSource::Connection(Arc::new(related)))
    }
}

impl ConnectionShape {
    /// Notes what must be read to write the part.
    pub fn add_part(&mut self, part: PagePart) {
        match part {
            PagePart::Total | PagePart::PageCount => self.needs_total = true,
            PagePart::StartCursor | PagePart::EndCursor => {
                (self.needs_cursors, self.needs_records) = (true, true);
            }
            PagePart::NextCursor => {
                (self.needs_cursors, self.needs_records, self.needs_extent) = (true, true, true);
            }
            PagePart::NextPage
            | PagePart::PreviousPage
            | PagePart::HasNext
            | PagePart::HasPrevious
            | PagePart::IsFirst
            | PagePart::IsLast => self.needs_extent = true,
            PagePart::Size | PagePart::Length | PagePart::IsEmpty => self.needs_records = true,
            PagePart::PageId => (self.needs_page_id, self.needs_records) = (true, true),
            PagePart::Page | PagePart::SpringNumber | PagePart::PageIndex | PagePart::Offset => {}
        }
    }
}

impl RelatedConnection {
    /// Which of the records that were read are on the page, and whether there are more.
    pub fn shown(&self, found: usize) -> (Range<usize>, bool) {
        let limit = self.slice.max_count().and_then(|limit| usize::try_from(limit).ok());
        match limit.filter(|limit| found > *limit) {
            None => (0..found, false),
            Some(limit) if matches!(self.slice, ListSlice::Between { from_end: true, .. }) => {
                (found - limit..found, true)
            }
            Some(limit) => (0..limit, true),
        }
    }
}
