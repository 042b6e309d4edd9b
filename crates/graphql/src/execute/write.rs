//! Writes objects as JSON straight from rows and values, and propagates nulls out of non-null fields.

use trefoil_engine::{Row, global_id};
use trefoil_model::error::Error;
use trefoil_model::values::json_text;
use trefoil_model::{CellValue, RecordId, Value, ValueType};

use crate::execute::path::{FieldPosition, ResponsePath};
use crate::plan::groups::related_count;
use crate::plan::shape::{FieldShape, FieldSource, ObjectShape, OutputShape, ValueSlot};
use crate::registered_resolvers::complete;
use crate::registered_resolvers::resolved_tree::{NodeSource, ResolvedNode, ResolvedTree};
use crate::response_error::ResponseError;

/// The response written so far.
#[derive(Default)]
pub struct ResponseWriter {
    pub out: Vec<u8>,
    pub errors: Vec<ResponseError>,
    /// Of the fields of a record that was written and may not be read: the write itself has not failed, unless it is part of
    /// an atomic operation.
    pub unreadable: Vec<ResponseError>,
}

/// A non-null field is null, so the nearest nullable parent becomes null. Its error is recorded already.
#[derive(Debug)]
pub struct NullPropagated;

pub type WriteResult = Result<(), NullPropagated>;

/// The error for a stored value, written by another program, that does not fit the field's type.
fn unreadable_value(at: FieldPosition) -> Error {
    let (type_name, name) = (&at.label.type_name, &at.label.name);
    Error::Resolver {
        message: format!("the stored value of `{type_name}.{name}` does not have the type of the field"),
        code: "UNREADABLE".to_owned(),
    }
}

impl ResponseWriter {
    /// Writes a record from its row.
    pub fn write_row(&mut self, object: &ObjectShape, row: &dyn Row, path: &ResponsePath) -> WriteResult {
        match row.unreadable_id() {
            None => {
                self.write_object(object, path, |writer, field, at| writer.write_row_field(field, row, at))
            }
            Some(_) => self.write_unreadable(object, row, path),
        }
    }

    /// Writes the id of a record that may not be read; its other fields are null, each with an error.
    fn write_unreadable(&mut self, object: &ObjectShape, row: &dyn Row, path: &ResponsePath) -> WriteResult {
        self.write_object(object, path, |writer, field, at| {
            let is_shown = match &field.source {
                FieldSource::Typename(_) => true,
                FieldSource::Column { position, .. } | FieldSource::GlobalId { position, .. } => {
                    row.cell(*position) != CellValue::Null
                }
                FieldSource::Relation(_)
                | FieldSource::Connection(_)
                | FieldSource::RelatedCount(_)
                | FieldSource::RelatedGroups { .. }
                | FieldSource::Property
                | FieldSource::Resolver { .. }
                | FieldSource::Introspection(_)
                | FieldSource::Missing(_)
                | FieldSource::Invalid(_) => false,
            };
            if is_shown { writer.write_row_field(field, row, at) } else { writer.refuse_field(field, at) }
        })
    }

    fn refuse_field(&mut self, field: &FieldShape, at: FieldPosition) -> WriteResult {
        let error = ResponseError::hidden_field(at.label).with_path(at.path.segments());
        self.unreadable.push(error);
        self.write_refused(field.slot.required)
    }

    /// Writes an object with fields that were resolved before.
    pub fn write_node(&mut self, node: &ResolvedNode, path: &ResponsePath) -> WriteResult {
        let mut resolved = node.resolved.iter().peekable();
        let mut position = 0;
        self.write_object(&node.shape, path, |writer, field, at| {
            let own_result = resolved.next_if(|(number, _)| *number == position);
            position += 1;
            match (own_result, &node.source) {
                (Some((_, tree)), _) => writer.write_tree(&field.slot, tree, at),
                (None, NodeSource::Row(row)) => writer.write_row_field(field, row, at),
                (None, NodeSource::Value(value)) => writer.write_property(field, value, at),
            }
        })
    }

    pub fn write_object(
        &mut self,
        object: &ObjectShape,
        path: &ResponsePath,
        mut write: impl FnMut(&mut ResponseWriter, &FieldShape, FieldPosition) -> WriteResult,
    ) -> WriteResult {
        if let Some(failure) = &object.selection_error {
            self.errors.push(failure.clone().with_path(path.segments()));
            return Err(NullPropagated);
        }
        self.out.push(b'{');
        for (i, field) in object.fields.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(&field.label.json_key);
            let path = path.field(&field.label.response_key);
            write(self, field, FieldPosition { label: &field.label, path: &path })?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn write_row_field(&mut self, field: &FieldShape, row: &dyn Row, at: FieldPosition) -> WriteResult {
        match &field.source {
            FieldSource::Typename(name) => {
                self.out.extend_from_slice(name);
                Ok(())
            }
            FieldSource::Column { position, value_type } => {
                self.write_column(&field.slot, value_type, row.cell(*position), at)
            }
            FieldSource::GlobalId { position, type_name } => {
                self.write_global_id(&field.slot, type_name, row.cell(*position), at)
            }
            FieldSource::Relation(position) => self.write_children(&field.slot, row, *position, at),
            FieldSource::Connection(related) => self.write_related(field.slot.required, related, row, at),
            FieldSource::RelatedCount(position) => {
                self.write_value(&field.slot, &related_count(row, *position), at)
            }
            FieldSource::RelatedGroups { position, groups, keys } => {
                self.write_value(&field.slot, &groups.related_value(keys, row, *position), at)
            }
            FieldSource::Missing(why) => self.fail_missing_resolver(field.slot.required, why, at),
            FieldSource::Invalid(error) => self.fail_with(field.slot.required, error, at),
            FieldSource::Property | FieldSource::Resolver { .. } | FieldSource::Introspection(_) => {
                self.fail_with(field.slot.required, &Error::internal("a row has no such property"), at)
            }
        }
    }

    fn write_column(
        &mut self,
        slot: &ValueSlot,
        value_type: &ValueType,
        cell: CellValue,
        at: FieldPosition,
    ) -> WriteResult {
        if cell == CellValue::Null {
            return self.write_null(slot.required, at);
        }
        match &slot.output {
            OutputShape::Leaf(_) => {
                let start = self.out.len();
                match json_text::write_cell(&mut self.out, value_type, cell) {
                    Ok(()) => Ok(()),
                    Err(json_text::UnreadableCellError) => {
                        self.out.truncate(start);
                        self.fail_with(slot.required, &unreadable_value(at), at)
                    }
                }
            }
            OutputShape::List(_) | OutputShape::Object(_) | OutputShape::Abstract(_) => {
                self.write_value(slot, &json_text::cell_to_value(value_type, cell), at)
            }
        }
    }

    fn write_global_id(
        &mut self,
        slot: &ValueSlot,
        type_name: &str,
        cell: CellValue,
        at: FieldPosition,
    ) -> WriteResult {
        if cell == CellValue::Null {
            return self.write_null(slot.required, at);
        }
        match RecordId::from_cell(cell) {
            Some(id) => {
                let text = global_id::encode(type_name, &id.to_string());
                json_text::write_text(&mut self.out, &text);
                Ok(())
            }
            None => self.fail_with(slot.required, &unreadable_value(at), at),
        }
    }

    fn write_children(
        &mut self,
        slot: &ValueSlot,
        row: &dyn Row,
        position: usize,
        at: FieldPosition,
    ) -> WriteResult {
        match &slot.output {
            OutputShape::List(item) => self.stop_null(slot.required, |writer| {
                writer.out.push(b'[');
                let (mut index, mut result) = (0, Ok(()));
                row.each_child(position, &mut |child| {
                    if result.is_ok() {
                        result = writer.write_item(item, index, at, |writer, path| match &item.output {
                            OutputShape::Object(object) => writer.write_row(object, child, path),
                            OutputShape::Leaf(_) | OutputShape::List(_) | OutputShape::Abstract(_) => Ok(()),
                        });
                        index += 1;
                    }
                });
                writer.out.push(b']');
                result
            }),
            OutputShape::Object(object) => {
                let mut result = None;
                row.each_child(position, &mut |child| {
                    if result.is_none() {
                        result = Some(
                            self.stop_null(slot.required, |writer| writer.write_row(object, child, at.path)),
                        );
                    }
                });
                result.unwrap_or_else(|| self.write_null(slot.required, at))
            }
            OutputShape::Leaf(_) | OutputShape::Abstract(_) => self.fail_with(
                slot.required,
                &Error::internal("a relation resolved to something other than records"),
                at,
            ),
        }
    }

    /// Writes an element of a list, with its comma.
    pub fn write_item(
        &mut self,
        item: &ValueSlot,
        index: usize,
        at: FieldPosition,
        write: impl FnOnce(&mut ResponseWriter, &ResponsePath) -> WriteResult,
    ) -> WriteResult {
        if index > 0 {
            self.out.push(b',');
        }
        let path = at.path.index(index);
        self.stop_null(item.required, |writer| write(writer, &path))
    }

    fn write_property(&mut self, field: &FieldShape, parent: &Value, at: FieldPosition) -> WriteResult {
        if let FieldSource::Typename(name) = &field.source {
            self.out.extend_from_slice(name);
            return Ok(());
        }
        match (parent.get(&field.label.name), &field.source) {
            (Some(value), _) => self.write_value(&field.slot, value, at),
            (None, FieldSource::Missing(why)) => self.fail_missing_resolver(field.slot.required, why, at),
            (None, _) => self.write_null(field.slot.required, at),
        }
    }

    /// Writes a value that needs no further resolver.
    pub fn write_value(&mut self, slot: &ValueSlot, value: &Value, at: FieldPosition) -> WriteResult {
        if value.is_null() {
            return self.write_null(slot.required, at);
        }
        match &slot.output {
            OutputShape::Leaf(leaf) => match complete::write_leaf(&mut self.out, leaf, value) {
                Ok(()) => Ok(()),
                Err(why) => self.push_error(slot.required, ResponseError::new("INVALID_VALUE", why), at),
            },
            OutputShape::List(item) => match value.as_list() {
                Some(items) => self.write_list(slot.required, items, |writer, index, value| {
                    if index > 0 {
                        writer.out.push(b',');
                    }
                    writer.write_value(item, value, at.with_path(&at.path.index(index)))
                }),
                None => self.fail_not_a_list(slot.required, at),
            },
            OutputShape::Object(object) => self.write_value_object(slot.required, object, value, at),
            OutputShape::Abstract(abstracted) => match abstracted.shape_for_value(value) {
                Ok(object) => self.write_value_object(slot.required, object, value, at),
                Err(why) => self.push_error(slot.required, ResponseError::new("INVALID_VALUE", why), at),
            },
        }
    }

    fn write_value_object(
        &mut self,
        required: bool,
        object: &ObjectShape,
        value: &Value,
        at: FieldPosition,
    ) -> WriteResult {
        self.stop_null(required, |writer| {
            writer.write_object(object, at.path, |writer, field, at| writer.write_property(field, value, at))
        })
    }

    /// Writes the result of a resolver.
    pub fn write_tree(&mut self, slot: &ValueSlot, tree: &ResolvedTree, at: FieldPosition) -> WriteResult {
        match tree {
            ResolvedTree::Value(value) => self.write_value(slot, value, at),
            ResolvedTree::Failed(error) => self.fail_with(slot.required, error, at),
            ResolvedTree::Invalid(why) => {
                self.push_error(slot.required, ResponseError::new("INVALID_VALUE", why), at)
            }
            ResolvedTree::Node(node) => {
                self.stop_null(slot.required, |writer| writer.write_node(node, at.path))
            }
            ResolvedTree::Connection(resolved) => self.write_resolved_connection(slot.required, resolved, at),
            ResolvedTree::List(items) => match &slot.output {
                OutputShape::List(item) => self.write_list(slot.required, items, |writer, index, tree| {
                    if index > 0 {
                        writer.out.push(b',');
                    }
                    writer.write_tree(item, tree, at.with_path(&at.path.index(index)))
                }),
                OutputShape::Leaf(_) | OutputShape::Object(_) | OutputShape::Abstract(_) => {
                    let why = format!("`{}` is not a list, but its resolver returned a list", at.label.name);
                    self.push_error(slot.required, ResponseError::new("INVALID_VALUE", why), at)
                }
            },
        }
    }

    fn write_list<T>(
        &mut self,
        required: bool,
        items: &[T],
        mut write: impl FnMut(&mut ResponseWriter, usize, &T) -> WriteResult,
    ) -> WriteResult {
        self.stop_null(required, |writer| {
            writer.out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                write(writer, index, item)?;
            }
            writer.out.push(b']');
            Ok(())
        })
    }

    /// Stops null propagation if this field is nullable: replaces its partial output by `null`.
    pub fn stop_null(
        &mut self,
        required: bool,
        write: impl FnOnce(&mut ResponseWriter) -> WriteResult,
    ) -> WriteResult {
        let start = self.out.len();
        match write(self) {
            Err(NullPropagated) if !required => {
                self.out.truncate(start);
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            result => result,
        }
    }

    pub fn write_null(&mut self, required: bool, at: FieldPosition) -> WriteResult {
        if required {
            let (type_name, name) = (&at.label.type_name, &at.label.name);
            let message = format!("Cannot return null for non-nullable field {type_name}.{name}.");
            return self.push_error(required, ResponseError::new("NULL", message), at);
        }
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn fail_not_a_list(&mut self, required: bool, at: FieldPosition) -> WriteResult {
        let (type_name, name) = (&at.label.type_name, &at.label.name);
        let message = format!("Expected Iterable, but did not find one for field \"{type_name}.{name}\".");
        self.push_error(required, ResponseError::new("INVALID_VALUE", message), at)
    }

    pub fn fail_missing_resolver(&mut self, required: bool, why: &str, at: FieldPosition) -> WriteResult {
        self.push_error(required, ResponseError::new("RESOLVER_NOT_FOUND", why), at)
    }

    pub fn fail_with(&mut self, required: bool, error: &Error, at: FieldPosition) -> WriteResult {
        self.push_error(required, ResponseError::from_error(error), at)
    }

    fn push_error(&mut self, required: bool, failure: ResponseError, at: FieldPosition) -> WriteResult {
        self.fail(required, failure.with_locations(&at.label.locations).with_path(at.path.segments()))
    }

    /// An error that has its place already.
    pub fn fail(&mut self, required: bool, failure: ResponseError) -> WriteResult {
        self.errors.push(failure);
        self.write_refused(required)
    }

    /// The null of a field whose errors are recorded already.
    pub fn write_refused(&mut self, required: bool) -> WriteResult {
        if required {
            return Err(NullPropagated);
        }
        self.out.extend_from_slice(b"null");
        Ok(())
    }
}
