//! Writes a connection or a page: its lists in parallel as rows arrive, its page info at the end.

use std::sync::Arc;

use trefoil_engine::cursor::{CursorFormat, RowPosition};
use trefoil_model::error::Error;
use trefoil_model::values::json_text;

use crate::execute::page_info::{PageExtent, PageInfo};
use crate::execute::path::{FieldPosition, ResponsePath};
use crate::execute::write::{NullPropagated, ResponseWriter, WriteResult};
use crate::plan::shape::{
    ConnectionEntries, ConnectionEntry, ConnectionField, ConnectionShape, EdgeField, FieldShape, ObjectShape,
    PageInfoField, ResponseLabel,
};
use crate::registered_resolvers::resolved_tree::ResolvedFields;

/// Writes the current record in the shape of its argument.
pub type NodeWriter<'a> =
    dyn FnMut(&mut ResponseWriter, &Arc<ObjectShape>, &ResponsePath) -> WriteResult + 'a;

impl ResolvedFields {
    pub fn write(
        &self,
        writer: &mut ResponseWriter,
        field: &Arc<FieldShape>,
        row: usize,
        at: FieldPosition,
    ) -> WriteResult {
        let found = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, field));
        match found.and_then(|(_, trees)| trees.get(row)) {
            Some(tree) => writer.write_tree(&field.slot, tree, at),
            None => writer.fail_with(field.slot.required, &Error::internal("a resolver was not called"), at),
        }
    }
}

/// A connection while its rows arrive.
#[derive(Default)]
pub struct ConnectionWriter {
    /// One per list entry, in order.
    lists: Vec<PartialList>,
    rows: usize,
    /// Only the cursors that are written are encoded: these two when all rows have arrived.
    first_position: Option<RowPosition>,
    last_position: Option<RowPosition>,
}

#[derive(Default)]
struct PartialList {
    writer: ResponseWriter,
    null_propagated: bool,
}

impl ConnectionWriter {
    pub fn add_row(
        &mut self,
        connection: &ConnectionShape,
        cursor: Option<(&CursorFormat, RowPosition)>,
        path: &ResponsePath,
        resolved: &ResolvedFields,
        node: &mut NodeWriter,
    ) {
        let edge_cursor = cursor.as_ref().filter(|_| connection.needs_edge_cursors);
        let edge_cursor = edge_cursor.map(|(format, position)| format.encode(position.clone()));
        let edge_cursor = edge_cursor.as_deref().unwrap_or_default();
        let lists = connection.entries.list.iter().filter(|entry| entry.field.is_list());
        for (number, entry) in lists.enumerate() {
            if self.lists.len() == number {
                self.lists.push(PartialList::default());
            }
            let list = &mut self.lists[number];
            if list.null_propagated {
                continue;
            }
            if self.rows > 0 {
                list.writer.out.push(b',');
            }
            let path = path.field(&entry.label.response_key);
            let path = path.index(self.rows);
            let result = list.writer.stop_null(entry.field.item_required(), |writer| match &entry.field {
                ConnectionField::Edges { entries, .. } => {
                    let edge = EdgeRow { cursor: edge_cursor, resolved, row: self.rows };
                    write_edge(writer, entries, edge, &path, node)
                }
                ConnectionField::Nodes { object, .. } => node(writer, object, &path),
                ConnectionField::Typename(_)
                | ConnectionField::Resolver(_)
                | ConnectionField::PageInfo(_)
                | ConnectionField::Part(..)
                | ConnectionField::Missing(_) => Ok(()),
            });
            list.null_propagated = result.is_err();
        }
        self.rows += 1;
        let position = cursor.map(|(_, position)| position);
        if self.first_position.is_none() {
            self.first_position.clone_from(&position);
        }
        self.last_position = position;
    }

    /// Writes the connection object; `cursors` are the formats of its first and last record.
    pub fn finish(
        self,
        connection: &ConnectionShape,
        writer: &mut ResponseWriter,
        path: &ResponsePath,
        page: PageExtent<'_>,
        cursors: [Option<&CursorFormat>; 2],
        resolved: &ResolvedFields,
    ) -> WriteResult {
        let ConnectionWriter { lists, first_position, last_position, rows } = self;
        let [first_format, last_format] = cursors;
        let page = PageInfo {
            extent: page,
            first_page: connection.first_page,
            rows,
            start: first_format.zip(first_position.as_ref()),
            end: last_format.zip(last_position.as_ref()),
        };
        let mut lists = lists.into_iter();
        write_entries(writer, &connection.entries, path, |writer, entry, at| match &entry.field {
            ConnectionField::Typename(name) => write_literal(writer, name),
            ConnectionField::Resolver(field) => resolved.write(writer, field, 0, at),
            ConnectionField::Edges { .. } | ConnectionField::Nodes { .. } => {
                let list = lists.next().unwrap_or_default();
                writer.errors.extend(list.writer.errors);
                writer.stop_null(entry.required, |writer| {
                    writer.out.push(b'[');
                    writer.out.extend_from_slice(&list.writer.out);
                    writer.out.push(b']');
                    if list.null_propagated { Err(NullPropagated) } else { Ok(()) }
                })
            }
            ConnectionField::PageInfo(fields) => writer.stop_null(entry.required, |writer| {
                write_entries(writer, fields, at.path, |writer, entry, at| match &entry.field {
                    PageInfoField::Typename(name) => write_literal(writer, name),
                    PageInfoField::Resolver(field) => resolved.write(writer, field, 0, at),
                    PageInfoField::Part(part, slot) => writer.write_value(slot, &page.value(*part, slot), at),
                    PageInfoField::Missing(why) => writer.fail_missing_resolver(entry.required, why, at),
                })
            }),
            ConnectionField::Part(part, slot) => writer.write_value(slot, &page.value(*part, slot), at),
            ConnectionField::Missing(why) => writer.fail_missing_resolver(entry.required, why, at),
        })
    }
}

impl ConnectionField {
    fn is_list(&self) -> bool {
        match self {
            ConnectionField::Edges { .. } | ConnectionField::Nodes { .. } => true,
            ConnectionField::Typename(_)
            | ConnectionField::Resolver(_)
            | ConnectionField::PageInfo(_)
            | ConnectionField::Part(..)
            | ConnectionField::Missing(_) => false,
        }
    }

    fn item_required(&self) -> bool {
        match self {
            ConnectionField::Edges { item_required, .. } | ConnectionField::Nodes { item_required, .. } => {
                *item_required
            }
            ConnectionField::Typename(_)
            | ConnectionField::Resolver(_)
            | ConnectionField::PageInfo(_)
            | ConnectionField::Part(..)
            | ConnectionField::Missing(_) => false,
        }
    }
}

impl ConnectionShape {
    /// The fields with a resolver: of the connection and its page info, and of each edge.
    pub fn resolver_fields(&self) -> (Vec<Arc<FieldShape>>, Vec<Arc<FieldShape>>) {
        let (mut of_connection, mut of_edges) = (Vec::new(), Vec::new());
        for entry in &self.entries.list {
            match &entry.field {
                ConnectionField::Resolver(field) => of_connection.push(field.clone()),
                ConnectionField::PageInfo(entries) => {
                    of_connection.extend(entries.list.iter().filter_map(|entry| match &entry.field {
                        PageInfoField::Resolver(field) => Some(field.clone()),
                        PageInfoField::Typename(_) | PageInfoField::Part(..) | PageInfoField::Missing(_) => {
                            None
                        }
                    }));
                }
                ConnectionField::Edges { entries, .. } => {
                    of_edges.extend(entries.list.iter().filter_map(|entry| match &entry.field {
                        EdgeField::Resolver(field) => Some(field.clone()),
                        EdgeField::Typename(_)
                        | EdgeField::Cursor
                        | EdgeField::Node(_)
                        | EdgeField::Missing(_) => None,
                    }));
                }
                ConnectionField::Typename(_)
                | ConnectionField::Nodes { .. }
                | ConnectionField::Part(..)
                | ConnectionField::Missing(_) => {}
            }
        }
        (of_connection, of_edges)
    }

    /// The shapes in which its records are written.
    pub fn node_shapes(&self) -> Vec<Arc<ObjectShape>> {
        let mut shapes = Vec::new();
        for entry in &self.entries.list {
            match &entry.field {
                ConnectionField::Edges { entries, .. } => {
                    shapes.extend(entries.list.iter().filter_map(EdgeField::node_shape))
                }
                ConnectionField::Nodes { object, .. } => shapes.push(object.clone()),
                ConnectionField::Typename(_)
                | ConnectionField::Resolver(_)
                | ConnectionField::PageInfo(_)
                | ConnectionField::Part(..)
                | ConnectionField::Missing(_) => {}
            }
        }
        shapes
    }
}

impl EdgeField {
    fn node_shape(entry: &ConnectionEntry<EdgeField>) -> Option<Arc<ObjectShape>> {
        match &entry.field {
            EdgeField::Node(object) => Some(object.clone()),
            EdgeField::Typename(_) | EdgeField::Resolver(_) | EdgeField::Cursor | EdgeField::Missing(_) => {
                None
            }
        }
    }
}

/// One edge of a connection.
#[derive(Clone, Copy)]
struct EdgeRow<'a> {
    cursor: &'a str,
    resolved: &'a ResolvedFields,
    row: usize,
}

fn write_edge(
    writer: &mut ResponseWriter,
    entries: &ConnectionEntries<EdgeField>,
    edge: EdgeRow<'_>,
    path: &ResponsePath,
    node: &mut NodeWriter,
) -> WriteResult {
    write_entries(writer, entries, path, |writer, entry, at| match &entry.field {
        EdgeField::Typename(name) => write_literal(writer, name),
        EdgeField::Resolver(field) => edge.resolved.write(writer, field, edge.row, at),
        EdgeField::Cursor => {
            json_text::write_text(&mut writer.out, edge.cursor);
            Ok(())
        }
        EdgeField::Node(object) => writer.stop_null(entry.required, |writer| node(writer, object, at.path)),
        EdgeField::Missing(why) => writer.fail_missing_resolver(entry.required, why, at),
    })
}

pub fn write_entries<T>(
    writer: &mut ResponseWriter,
    entries: &ConnectionEntries<T>,
    path: &ResponsePath,
    mut write: impl FnMut(&mut ResponseWriter, &ConnectionEntry<T>, FieldPosition) -> WriteResult,
) -> WriteResult {
    if let Some(failure) = &entries.selection_error {
        writer.errors.push(failure.clone().with_path(path.segments()));
        return Err(NullPropagated);
    }
    writer.out.push(b'{');
    for (i, entry) in entries.list.iter().enumerate() {
        if i > 0 {
            writer.out.push(b',');
        }
        let label: &ResponseLabel = &entry.label;
        writer.out.extend_from_slice(&label.json_key);
        let path = path.field(&label.response_key);
        write(writer, entry, FieldPosition { label, path: &path })?;
    }
    writer.out.push(b'}');
    Ok(())
}

pub fn write_literal(writer: &mut ResponseWriter, bytes: &[u8]) -> WriteResult {
    writer.out.extend_from_slice(bytes);
    Ok(())
}
