//! The records of a root field over several types, kept until all its operations have ended, then written in order.

use std::sync::Arc;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{MergedCells, MergedOrder, Outcome, OwnedRow, RecordMerge, ResultShape};
use trefoil_model::error::{Error, Result};

use crate::execute::connection::ConnectionWriter;
use crate::execute::page_info::PageExtent;
use crate::execute::path::{FieldPosition, ResponsePath};
use crate::execute::write::{NullPropagated, ResponseWriter, WriteResult};
use crate::plan::abstract_root::{AbstractRoot, MemberShape};
use crate::plan::shape::ObjectShape;
use crate::registered_resolvers::resolved_tree::{ResolvedFields, ResolvedNode};

pub struct AbstractResults {
    pub root_position: usize,
    merge: RecordMerge,
    /// Of each member.
    cursors: Vec<Option<CursorFormat>>,
    records: Vec<AbstractRecord>,
    /// The number of operations that have not ended.
    remaining: usize,
    has_more: bool,
    total: u64,
    error: Option<Error>,
    checkpoint: ResultsCheckpoint,
}

/// The state before the store started.
#[derive(Clone, Copy)]
struct ResultsCheckpoint {
    remaining: usize,
    has_failed: bool,
}

struct AbstractRecord {
    member: usize,
    row: OwnedRow,
    /// One for each shape with registered resolvers.
    nodes: Vec<ResolvedNode>,
}

impl AbstractResults {
    pub fn new(root_position: usize, operations: usize, merge: RecordMerge) -> AbstractResults {
        AbstractResults {
            root_position,
            merge,
            cursors: Vec::new(),
            records: Vec::new(),
            remaining: operations,
            has_more: false,
            total: 0,
            error: None,
            checkpoint: ResultsCheckpoint { remaining: operations, has_failed: false },
        }
    }

    /// Sets the format of the cursors of a member.
    pub fn set_cursors(&mut self, member: usize, cursors: Option<CursorFormat>) {
        self.cursors.resize(self.cursors.len().max(member + 1), None);
        self.cursors[member] = cursors;
    }

    /// The number of cells after the selected columns.
    pub fn extra_cells(&self, root: &AbstractRoot) -> usize {
        match root.operation.result_shape {
            ResultShape::List | ResultShape::Connection => self.merge.extra_cells(),
            ResultShape::Record
            | ResultShape::Payload
            | ResultShape::Id
            | ResultShape::Boolean
            | ResultShape::Nothing
            | ResultShape::Count
            | ResultShape::Groups => 0,
        }
    }

    pub fn add(&mut self, member: usize, row: OwnedRow, nodes: Vec<ResolvedNode>) {
        self.records.push(AbstractRecord { member, row, nodes });
    }

    pub fn add_outcome(&mut self, outcome: Result<Outcome>) {
        self.remaining -= 1;
        match outcome {
            Ok(Outcome::Listed { has_more, total }) => {
                self.has_more |= has_more;
                self.total += total.unwrap_or(0);
            }
            Ok(_) => {}
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.remaining == 0
    }

    pub fn set_checkpoint(&mut self) {
        self.checkpoint = ResultsCheckpoint { remaining: self.remaining, has_failed: self.error.is_some() };
    }

    /// Returns to the checkpoint.
    pub fn reset(&mut self) {
        self.remaining = self.checkpoint.remaining;
        self.records.clear();
        (self.has_more, self.total) = (false, 0);
        if !self.checkpoint.has_failed {
            self.error = None;
        }
    }

    /// Writes the root field.
    pub fn write(
        &self,
        root: &AbstractRoot,
        required: bool,
        writer: &mut ResponseWriter,
        resolved: &ResolvedFields,
        at: FieldPosition,
    ) -> WriteResult {
        if let Some(error) = &self.error {
            return writer.fail_with(required, error, at);
        }
        match root.operation.result_shape {
            ResultShape::Record => match self.records.first() {
                Some(record) => self.write_record(record, root, writer, at.path),
                None => writer.write_null(required, at),
            },
            ResultShape::List => self.write_list(root, writer, at),
            ResultShape::Connection => self.write_connection(root, writer, resolved, at),
            ResultShape::Boolean => {
                let found: &[u8] = if self.records.is_empty() { b"false" } else { b"true" };
                writer.out.extend_from_slice(found);
                Ok(())
            }
            ResultShape::Count => {
                let quote = if root.is_text { "\"" } else { "" };
                writer.out.extend_from_slice(format!("{quote}{}{quote}", self.total).as_bytes());
                Ok(())
            }
            ResultShape::Payload | ResultShape::Id | ResultShape::Nothing | ResultShape::Groups => {
                writer.fail_with(required, &Error::internal("several types are only read"), at)
            }
        }
    }

    fn merged_order(&self) -> MergedOrder {
        let extra = self.merge.extra_cells();
        let cells = self.records.iter().map(|record| {
            let cells = &record.row.cells;
            MergedCells { member: record.member, cells: &cells[cells.len().saturating_sub(extra)..] }
        });
        self.merge.order(&cells.collect::<Vec<_>>())
    }

    fn write_list(&self, root: &AbstractRoot, writer: &mut ResponseWriter, at: FieldPosition) -> WriteResult {
        writer.out.push(b'[');
        let mut index = 0;
        for place in self.merged_order().places {
            // An id without a record is null, or is left out where null is not allowed.
            if place.is_none() && root.item_required {
                continue;
            }
            if index > 0 {
                writer.out.push(b',');
            }
            let path = at.path.index(index);
            writer.stop_null(root.item_required, |writer| match place {
                Some(place) => self.write_record(&self.records[place], root, writer, &path),
                None => Err(NullPropagated),
            })?;
            index += 1;
        }
        writer.out.push(b']');
        Ok(())
    }

    fn write_record(
        &self,
        record: &AbstractRecord,
        root: &AbstractRoot,
        writer: &mut ResponseWriter,
        path: &ResponsePath,
    ) -> WriteResult {
        match &root.members[record.member].shape {
            MemberShape::Object(object) => record.write(writer, object, path),
            MemberShape::Connection(_) | MemberShape::None => Ok(()),
        }
    }

    fn write_connection(
        &self,
        root: &AbstractRoot,
        writer: &mut ResponseWriter,
        resolved: &ResolvedFields,
        at: FieldPosition,
    ) -> WriteResult {
        let MergedOrder { places, has_more } = self.merged_order();
        let mut connection_writer = ConnectionWriter::default();
        let records: Vec<&AbstractRecord> =
            places.into_iter().flatten().map(|place| &self.records[place]).collect();
        for record in &records {
            let MemberShape::Connection(connection) = &root.members[record.member].shape else { continue };
            let format = self.format(record).filter(|_| connection.needs_cursors);
            let cursor =
                format.map(|format| (format, format.read(&record.row, connection.reads.columns.len())));
            connection_writer.add_row(connection, cursor, at.path, resolved, &mut |writer, object, path| {
                record.write(writer, object, path)
            });
        }
        let Some(MemberShape::Connection(connection)) = root.members.first().map(|member| &member.shape)
        else {
            return Err(NullPropagated);
        };
        let page = PageExtent {
            slice: &self.merge.slice,
            has_more: has_more || self.has_more,
            total: Some(self.total),
            page_id: None,
        };
        let ends = [records.first(), records.last()];
        let cursors = ends.map(|record| record.and_then(|record| self.format(record)));
        connection_writer.finish(connection, writer, at.path, page, cursors, resolved)
    }

    fn format(&self, record: &AbstractRecord) -> Option<&CursorFormat> {
        self.cursors.get(record.member)?.as_ref()
    }
}

impl AbstractRecord {
    fn write(
        &self,
        writer: &mut ResponseWriter,
        object: &Arc<ObjectShape>,
        path: &ResponsePath,
    ) -> WriteResult {
        match self.nodes.iter().find(|node| Arc::ptr_eq(&node.shape, object)) {
            Some(node) => writer.write_node(node, path),
            None => writer.write_row(object, &self.row, path),
        }
    }
}
