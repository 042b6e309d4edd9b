//! Writes a Relay connection: its lists grow row by row beside each other, the page's facts come at the end.

use std::sync::Arc;

use crate::execute::path::{At, Path};
use crate::execute::write::{Nulled, Writer, Wrote};
use crate::plan::shape::{Connection, EdgeHolds, Entries, Entry, Holds, Label, Object, PageHolds};
use crate::response_error;

/// Writes the current record in the shape it is given.
pub type WriteNode<'a> = dyn FnMut(&mut Writer, &Arc<Object>, &Path) -> Wrote + 'a;

/// What is known once all rows are read.
pub struct Page {
    pub more: bool,
    pub previous: bool,
    pub total: Option<u64>,
}

/// A connection while its rows come in.
#[derive(Default)]
pub struct Gathering {
    /// One for each entry that is a list, in order.
    lists: Vec<Growing>,
    rows: usize,
    first: Option<String>,
    last: Option<String>,
}

#[derive(Default)]
struct Growing {
    writer: Writer,
    nulled: bool,
}

impl Gathering {
    pub fn row(
        &mut self,
        connection: &Connection,
        cursor: Option<String>,
        path: &Path,
        node: &mut WriteNode,
    ) {
        let lists = connection.entries.list.iter().filter(|entry| entry.holds.is_list());
        for (number, entry) in lists.enumerate() {
            if self.lists.len() == number {
                self.lists.push(Growing::default());
            }
            let list = &mut self.lists[number];
            if list.nulled {
                continue;
            }
            if self.rows > 0 {
                list.writer.out.push(b',');
            }
            let path = path.field(&entry.label.response);
            let path = path.index(self.rows);
            let cursor = cursor.as_deref().unwrap_or_default();
            let wrote = list.writer.nullable(entry.holds.item_required(), |writer| match &entry.holds {
                Holds::Edges { entries, .. } => edge(writer, entries, cursor, &path, node),
                Holds::Nodes { object, .. } => node(writer, object, &path),
                Holds::Typename(_) | Holds::PageInfo(_) | Holds::TotalCount | Holds::Missing(_) => Ok(()),
            });
            list.nulled = wrote.is_err();
        }
        self.rows += 1;
        if self.first.is_none() {
            self.first.clone_from(&cursor);
        }
        self.last = cursor;
    }

    /// The whole object.
    pub fn finish(self, connection: &Connection, writer: &mut Writer, path: &Path, page: &Page) -> Wrote {
        let Gathering { lists, first, last, .. } = self;
        let mut lists = lists.into_iter();
        entries(writer, &connection.entries, path, |writer, entry, at| match &entry.holds {
            Holds::Typename(name) => literal(writer, name),
            Holds::Edges { .. } | Holds::Nodes { .. } => {
                let list = lists.next().unwrap_or_default();
                writer.failures.extend(list.writer.failures);
                writer.nullable(entry.required, |writer| {
                    writer.out.push(b'[');
                    writer.out.extend_from_slice(&list.writer.out);
                    writer.out.push(b']');
                    if list.nulled { Err(Nulled) } else { Ok(()) }
                })
            }
            Holds::PageInfo(facts) => writer.nullable(entry.required, |writer| {
                entries(writer, facts, at.path, |writer, entry, at| match &entry.holds {
                    PageHolds::Typename(name) => literal(writer, name),
                    PageHolds::HasNext => flag(writer, page.more),
                    PageHolds::HasPrevious => flag(writer, page.previous),
                    PageHolds::Start => cursor(writer, entry.required, first.as_deref(), at),
                    PageHolds::End => cursor(writer, entry.required, last.as_deref(), at),
                    PageHolds::Missing(why) => writer.missing(entry.required, why, at),
                })
            }),
            Holds::TotalCount => match page.total {
                Some(total) => literal(writer, total.to_string().as_bytes()),
                None => writer.null(entry.required, at),
            },
            Holds::Missing(why) => writer.missing(entry.required, why, at),
        })
    }
}

impl Holds {
    fn is_list(&self) -> bool {
        match self {
            Holds::Edges { .. } | Holds::Nodes { .. } => true,
            Holds::Typename(_) | Holds::PageInfo(_) | Holds::TotalCount | Holds::Missing(_) => false,
        }
    }

    fn item_required(&self) -> bool {
        match self {
            Holds::Edges { item_required, .. } | Holds::Nodes { item_required, .. } => *item_required,
            Holds::Typename(_) | Holds::PageInfo(_) | Holds::TotalCount | Holds::Missing(_) => false,
        }
    }
}

impl Connection {
    /// Every shape in which its records are written.
    pub fn node_shapes(&self) -> Vec<Arc<Object>> {
        let mut shapes = Vec::new();
        for entry in &self.entries.list {
            match &entry.holds {
                Holds::Edges { entries, .. } => {
                    shapes.extend(entries.list.iter().filter_map(EdgeHolds::node))
                }
                Holds::Nodes { object, .. } => shapes.push(object.clone()),
                Holds::Typename(_) | Holds::PageInfo(_) | Holds::TotalCount | Holds::Missing(_) => {}
            }
        }
        shapes
    }
}

impl EdgeHolds {
    fn node(entry: &Entry<EdgeHolds>) -> Option<Arc<Object>> {
        match &entry.holds {
            EdgeHolds::Node(object) => Some(object.clone()),
            EdgeHolds::Typename(_) | EdgeHolds::Cursor | EdgeHolds::Missing(_) => None,
        }
    }
}

fn edge(
    writer: &mut Writer,
    own: &Entries<EdgeHolds>,
    text: &str,
    path: &Path,
    node: &mut WriteNode,
) -> Wrote {
    entries(writer, own, path, |writer, entry, at| match &entry.holds {
        EdgeHolds::Typename(name) => literal(writer, name),
        EdgeHolds::Cursor => cursor(writer, entry.required, Some(text), at),
        EdgeHolds::Node(object) => writer.nullable(entry.required, |writer| node(writer, object, at.path)),
        EdgeHolds::Missing(why) => writer.missing(entry.required, why, at),
    })
}

fn entries<T>(
    writer: &mut Writer,
    entries: &Entries<T>,
    path: &Path,
    mut write: impl FnMut(&mut Writer, &Entry<T>, At) -> Wrote,
) -> Wrote {
    if let Some(failure) = &entries.broken {
        writer.failures.push(failure.clone().on(path.segments()));
        return Err(Nulled);
    }
    writer.out.push(b'{');
    for (i, entry) in entries.list.iter().enumerate() {
        if i > 0 {
            writer.out.push(b',');
        }
        let label: &Label = &entry.label;
        writer.out.extend_from_slice(&label.key);
        let path = path.field(&label.response);
        write(writer, entry, At { label, path: &path })?;
    }
    writer.out.push(b'}');
    Ok(())
}

fn cursor(writer: &mut Writer, required: bool, cursor: Option<&str>, at: At) -> Wrote {
    match cursor {
        Some(text) => {
            response_error::text(&mut writer.out, text);
            Ok(())
        }
        None => writer.null(required, at),
    }
}

fn flag(writer: &mut Writer, flag: bool) -> Wrote {
    literal(writer, if flag { b"true" } else { b"false" })
}

fn literal(writer: &mut Writer, bytes: &[u8]) -> Wrote {
    writer.out.extend_from_slice(bytes);
    Ok(())
}
