//! Writes connections and pages over related records, which were read together with their parent.

use std::sync::Arc;

use trefoil_engine::Row;

use crate::execute::connection::ConnectionWriter;
use crate::execute::page_info::PageExtent;
use crate::execute::path::{FieldPosition, ResponsePath};
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::groups::related_count;
use crate::plan::shape::{ObjectShape, RelatedConnection};
use crate::registered_resolvers::resolved_tree::{ResolvedConnection, ResolvedFields};

/// Writes a record, with its number on the page, in the shape of its argument.
type PageRowWriter<'a> =
    dyn FnMut(&mut ResponseWriter, (usize, &dyn Row), &Arc<ObjectShape>, &ResponsePath) -> WriteResult + 'a;

impl ResponseWriter {
    /// Writes the related records of a row.
    pub fn write_related(
        &mut self,
        required: bool,
        related: &RelatedConnection,
        parent: &dyn Row,
        at: FieldPosition,
    ) -> WriteResult {
        let fields = ResolvedFields::default();
        self.write_related_page(required, related, (parent, &fields), at, &mut |writer, row, object, path| {
            writer.write_row(object, row.1, path)
        })
    }

    /// Writes related records with fields that were resolved before.
    pub fn write_resolved_connection(
        &mut self,
        required: bool,
        resolved: &ResolvedConnection,
        at: FieldPosition,
    ) -> WriteResult {
        let ResolvedConnection { related, parent, nodes, fields } = resolved;
        let source = (parent as &dyn Row, fields);
        self.write_related_page(required, related, source, at, &mut |writer, (number, row), object, path| {
            let node = nodes[number].iter().find(|node| Arc::ptr_eq(&node.shape, object));
            match node {
                Some(node) => writer.write_node(node, path),
                None => writer.write_row(object, row, path),
            }
        })
    }

    fn write_related_page(
        &mut self,
        required: bool,
        related: &RelatedConnection,
        (parent, fields): (&dyn Row, &ResolvedFields),
        at: FieldPosition,
        write_row: &mut PageRowWriter,
    ) -> WriteResult {
        let RelatedConnection { connection, records, total, slice, cursors } = related;
        let mut page = ConnectionWriter::default();
        let mut found = 0;
        if let Some(child) = records {
            parent.each_child(*child, &mut |_| found += 1);
        }
        let (shown, has_more) = related.shown(found);
        if let Some(child) = records {
            let column_count = connection.reads.columns.len();
            let mut position = 0;
            parent.each_child(*child, &mut |row| {
                if shown.contains(&position) {
                    let number = position - shown.start;
                    let cursor = cursors.as_ref().map(|format| (format, format.read(row, column_count)));
                    page.add_row(connection, cursor, at.path, fields, &mut |writer, object, path| {
                        write_row(writer, (number, row), object, path)
                    });
                }
                position += 1;
            });
        }
        let total = total.and_then(|child| related_count(parent, child).as_i64());
        let total = total.and_then(|count| u64::try_from(count).ok());
        let extent = PageExtent { slice, has_more, total, page_id: None };
        self.stop_null(required, |writer| {
            page.finish(connection, writer, at.path, extent, [cursors.as_ref(); 2], fields)
        })
    }
}
