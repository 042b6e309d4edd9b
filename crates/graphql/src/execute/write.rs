//! Writes objects as JSON straight from rows and values; a null in a non-null place takes its parent with it.

use crate::execute::path::{At, Path};
use crate::plan::shape::{Field, From, Object, Output, Slot};
use crate::resolve::complete;
use crate::resolve::tree::{Node, Source, Tree};
use crate::response_error::Failure;
use trefoil_engine::Row;
use trefoil_model::error::Error;
use trefoil_model::values::json_text;
use trefoil_model::{Cell, Kind, Value};

/// The answer so far.
#[derive(Default)]
pub struct Writer {
    pub out: Vec<u8>,
    pub failures: Vec<Failure>,
}

/// A non-null place holds null: the nearest nullable parent becomes null. The reason is recorded already.
#[derive(Debug)]
pub struct Nulled;

pub type Wrote = Result<(), Nulled>;

/// Another program wrote what the field cannot hold.
fn unreadable(at: At) -> Error {
    let (type_name, name) = (&at.label.type_name, &at.label.name);
    Error::Resolver {
        message: format!("the stored value of `{type_name}.{name}` is not of its type"),
        code: "UNREADABLE".to_owned(),
    }
}

impl Writer {
    /// Writes a record from its row.
    pub fn row(&mut self, object: &Object, row: &dyn Row, path: &Path) -> Wrote {
        self.object(object, path, |writer, field, at| writer.row_field(field, row, at))
    }

    /// Writes an object of which some fields were resolved before.
    pub fn node(&mut self, node: &Node, path: &Path) -> Wrote {
        let mut resolved = node.resolved.iter().peekable();
        let mut position = 0;
        self.object(&node.shape, path, |writer, field, at| {
            let own = resolved.next_if(|(number, _)| *number == position);
            position += 1;
            match (own, &node.source) {
                (Some((_, tree)), _) => writer.tree(&field.slot, tree, at),
                (None, Source::Row(row)) => writer.row_field(field, row, at),
                (None, Source::Value(value)) => writer.property(field, value, at),
            }
        })
    }

    pub fn object(
        &mut self,
        object: &Object,
        path: &Path,
        mut write: impl FnMut(&mut Writer, &Field, At) -> Wrote,
    ) -> Wrote {
        if let Some(failure) = &object.broken {
            self.failures.push(failure.clone().on(path.segments()));
            return Err(Nulled);
        }
        self.out.push(b'{');
        for (i, field) in object.fields.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(&field.label.key);
            let path = path.field(&field.label.response);
            write(self, field, At { label: &field.label, path: &path })?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn row_field(&mut self, field: &Field, row: &dyn Row, at: At) -> Wrote {
        match &field.from {
            From::Typename(name) => {
                self.out.extend_from_slice(name);
                Ok(())
            }
            From::Column { position, kind } => self.column(&field.slot, kind, row.cell(*position), at),
            From::Child(position) => self.children(&field.slot, row, *position, at),
            From::Missing(why) => self.missing(field.slot.required, why, at),
            From::Refused(error) => self.failed(field.slot.required, error, at),
            From::Property | From::Resolver { .. } | From::Introspection(_) => {
                self.failed(field.slot.required, &Error::internal("a row has no such property"), at)
            }
        }
    }

    fn column(&mut self, slot: &Slot, kind: &Kind, cell: Cell, at: At) -> Wrote {
        if cell == Cell::Null {
            return self.null(slot.required, at);
        }
        match &slot.output {
            Output::Leaf(_) => {
                let start = self.out.len();
                match json_text::write_cell(&mut self.out, kind, cell) {
                    Ok(()) => Ok(()),
                    Err(json_text::Unreadable) => {
                        self.out.truncate(start);
                        self.failed(slot.required, &unreadable(at), at)
                    }
                }
            }
            Output::List(_) | Output::Object(_) | Output::Abstract(_) => {
                self.value(slot, &json_text::value_of(kind, cell), at)
            }
        }
    }

    fn children(&mut self, slot: &Slot, row: &dyn Row, position: usize, at: At) -> Wrote {
        match &slot.output {
            Output::List(item) => self.nullable(slot.required, |writer| {
                writer.out.push(b'[');
                let (mut index, mut wrote) = (0, Ok(()));
                row.each_child(position, &mut |child| {
                    if wrote.is_ok() {
                        wrote = writer.item(item, index, at, |writer, path| match &item.output {
                            Output::Object(object) => writer.row(object, child, path),
                            Output::Leaf(_) | Output::List(_) | Output::Abstract(_) => Ok(()),
                        });
                        index += 1;
                    }
                });
                writer.out.push(b']');
                wrote
            }),
            Output::Object(object) => {
                let mut wrote = None;
                row.each_child(position, &mut |child| {
                    if wrote.is_none() {
                        wrote =
                            Some(self.nullable(slot.required, |writer| writer.row(object, child, at.path)));
                    }
                });
                wrote.unwrap_or_else(|| self.null(slot.required, at))
            }
            Output::Leaf(_) | Output::Abstract(_) => {
                self.failed(slot.required, &Error::internal("a relation leads to records only"), at)
            }
        }
    }

    /// One element of a list, with its comma.
    pub fn item(
        &mut self,
        item: &Slot,
        index: usize,
        at: At,
        write: impl FnOnce(&mut Writer, &Path) -> Wrote,
    ) -> Wrote {
        if index > 0 {
            self.out.push(b',');
        }
        let path = at.path.index(index);
        self.nullable(item.required, |writer| write(writer, &path))
    }

    fn property(&mut self, field: &Field, parent: &Value, at: At) -> Wrote {
        if let From::Typename(name) = &field.from {
            self.out.extend_from_slice(name);
            return Ok(());
        }
        match (parent.get(&field.label.name), &field.from) {
            (Some(value), _) => self.value(&field.slot, value, at),
            (None, From::Missing(why)) => self.missing(field.slot.required, why, at),
            (None, _) => self.null(field.slot.required, at),
        }
    }

    /// Completes a value that needs no further resolver.
    pub fn value(&mut self, slot: &Slot, value: &Value, at: At) -> Wrote {
        if value.is_null() {
            return self.null(slot.required, at);
        }
        match &slot.output {
            Output::Leaf(leaf) => match complete::leaf(&mut self.out, leaf, value) {
                Ok(()) => Ok(()),
                Err(why) => self.refused(slot.required, Failure::new("INVALID_VALUE", why), at),
            },
            Output::List(item) => match value.as_list() {
                Some(items) => self.list(slot.required, items, |writer, index, value| {
                    if index > 0 {
                        writer.out.push(b',');
                    }
                    writer.value(item, value, at.down(&at.path.index(index)))
                }),
                None => self.no_list(slot.required, at),
            },
            Output::Object(object) => self.plain(slot.required, object, value, at),
            Output::Abstract(abstracted) => match abstracted.of_value(value) {
                Ok(object) => self.plain(slot.required, object, value, at),
                Err(why) => self.refused(slot.required, Failure::new("INVALID_VALUE", why), at),
            },
        }
    }

    fn plain(&mut self, required: bool, object: &Object, value: &Value, at: At) -> Wrote {
        self.nullable(required, |writer| {
            writer.object(object, at.path, |writer, field, at| writer.property(field, value, at))
        })
    }

    /// Completes what was resolved.
    pub fn tree(&mut self, slot: &Slot, tree: &Tree, at: At) -> Wrote {
        match tree {
            Tree::Value(value) => self.value(slot, value, at),
            Tree::Failed(error) => self.failed(slot.required, error, at),
            Tree::Wrong(why) => self.refused(slot.required, Failure::new("INVALID_VALUE", why), at),
            Tree::Node(node) => self.nullable(slot.required, |writer| writer.node(node, at.path)),
            Tree::List(items) => match &slot.output {
                Output::List(item) => self.list(slot.required, items, |writer, index, tree| {
                    if index > 0 {
                        writer.out.push(b',');
                    }
                    writer.tree(item, tree, at.down(&at.path.index(index)))
                }),
                Output::Leaf(_) | Output::Object(_) | Output::Abstract(_) => {
                    let why = format!("`{}` is no list, but its resolver gave one", at.label.name);
                    self.refused(slot.required, Failure::new("INVALID_VALUE", why), at)
                }
            },
        }
    }

    fn list<T>(
        &mut self,
        required: bool,
        items: &[T],
        mut write: impl FnMut(&mut Writer, usize, &T) -> Wrote,
    ) -> Wrote {
        self.nullable(required, |writer| {
            writer.out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                write(writer, index, item)?;
            }
            writer.out.push(b']');
            Ok(())
        })
    }

    /// Stops a null from going further up, where null is allowed.
    pub fn nullable(&mut self, required: bool, write: impl FnOnce(&mut Writer) -> Wrote) -> Wrote {
        let start = self.out.len();
        match write(self) {
            Err(Nulled) if !required => {
                self.out.truncate(start);
                self.out.extend_from_slice(b"null");
                Ok(())
            }
            wrote => wrote,
        }
    }

    pub fn null(&mut self, required: bool, at: At) -> Wrote {
        if required {
            let (type_name, name) = (&at.label.type_name, &at.label.name);
            let message = format!("Cannot return null for non-nullable field {type_name}.{name}.");
            return self.refused(required, Failure::new("NULL", message), at);
        }
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn no_list(&mut self, required: bool, at: At) -> Wrote {
        let (type_name, name) = (&at.label.type_name, &at.label.name);
        let message = format!("Expected Iterable, but did not find one for field \"{type_name}.{name}\".");
        self.refused(required, Failure::new("INVALID_VALUE", message), at)
    }

    pub fn missing(&mut self, required: bool, why: &str, at: At) -> Wrote {
        self.refused(required, Failure::new("RESOLVER_NOT_FOUND", why), at)
    }

    pub fn failed(&mut self, required: bool, error: &Error, at: At) -> Wrote {
        self.refused(required, Failure::of(error), at)
    }

    fn refused(&mut self, required: bool, failure: Failure, at: At) -> Wrote {
        self.failures.push(failure.at(&at.label.places).on(at.path.segments()));
        if required {
            return Err(Nulled);
        }
        self.out.extend_from_slice(b"null");
        Ok(())
    }
}
