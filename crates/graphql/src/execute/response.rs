//! The response of one operation while it is made: root fields as they are answered, in whatever order.

use std::ops::Range;
use std::sync::Arc;

use apollo_compiler::executable::OperationType;

use crate::execute::connection::{Gathering, Page, WriteNode};
use crate::execute::path::{At, Path};
use crate::execute::run::Executed;
use crate::execute::write::{Writer, Wrote};
use crate::plan::roots::{BuiltinRoot, Does, Plan, Root, Shape};
use crate::response_error;
use crate::response_error::Failure;
use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{Answer, Operation, Outcome, Row, Slice, Verb};
use trefoil_model::Model;
use trefoil_model::error::{Error, Missing, Result};
use trefoil_model::values::json_text;

const HEAD: &[u8] = b"{\"data\":{";

/// Takes rows and outcomes of the store's operations and writes them under their root fields.
pub struct Answering {
    plan: Arc<Plan>,
    writer: Writer,
    spans: Vec<Option<Span>>,
    /// The operations handed to the store, by number.
    running: Vec<Running>,
    open: Option<Open>,
    /// Something was changed: worth keeping under an idempotency key.
    changed: bool,
    saved: Saved,
}

/// What was written for a root field.
#[derive(Debug, Clone)]
struct Span {
    /// Where in the writer's bytes it is, its key included …
    bytes: Range<usize>,
    /// … and where in the list of failures those of it are.
    failures: Range<usize>,
    /// It is null and must not be, so `data` is null.
    nulled: bool,
}

/// What is to be known of a running operation when its rows come.
pub struct Running {
    /// Position of its root field.
    root: usize,
    /// The record that an update or a deletion names.
    id: Option<i64>,
    cursors: Option<CursorFormat>,
    previous: bool,
    /// Its end was told before the store began.
    refused: bool,
}

/// The root field that is being written.
struct Open {
    number: usize,
    start: usize,
    /// Where its value begins.
    value: usize,
    failures: usize,
    rows: usize,
    wrote: Wrote,
    gathering: Gathering,
}

/// How it was before the store began, for when the store begins again.
#[derive(Default)]
struct Saved {
    out: usize,
    failures: usize,
    changed: bool,
}

impl Running {
    pub fn new(model: &Model, root: usize, operation: &Result<Operation>) -> Running {
        let mut running = Running { root, id: None, cursors: None, previous: false, refused: false };
        match operation {
            Ok(Operation::List { record, listing, .. }) => {
                let format = || CursorFormat::of(model.record(*record), &listing.order);
                running.cursors = listing.cursors.then(format);
                running.previous = follows(&listing.slice);
            }
            Ok(Operation::Update { id, .. } | Operation::Delete { id, .. }) => running.id = Some(*id),
            Ok(
                Operation::Get { .. }
                | Operation::Create { .. }
                | Operation::Changed { .. }
                | Operation::Plain(_),
            )
            | Err(_) => {}
        }
        running
    }

    pub fn root(&self) -> usize {
        self.root
    }
}

/// Whether records come before this slice.
fn follows(slice: &Slice) -> bool {
    match slice {
        Slice::All => false,
        Slice::Page { page, .. } => *page > 1,
        Slice::First { after, .. } => after.is_some(),
    }
}

impl Answering {
    pub fn new(plan: Arc<Plan>, capacity: usize) -> Answering {
        let mut out = Vec::with_capacity(capacity.max(256));
        out.extend_from_slice(HEAD);
        Answering {
            spans: vec![None; plan.roots.len()],
            plan,
            writer: Writer { out, failures: Vec::new() },
            running: Vec::new(),
            open: None,
            changed: false,
            saved: Saved::default(),
        }
    }

    /// The next operations that the store runs; their numbers count from 0.
    pub fn expect(&mut self, running: Vec<Running>) {
        self.running = running;
    }

    /// Writes a root field that the store has no part in.
    pub fn root(&mut self, position: usize, write: impl FnOnce(&mut Writer, &Root, At) -> Wrote) {
        let plan = self.plan.clone();
        let root = &plan.roots[position];
        let failures = self.writer.failures.len();
        let start = key(&mut self.writer, root);
        let path = Path::root(&root.label.response);
        let at = At { label: &root.label, path: &path };
        let wrote = self.writer.nullable(root.required, |writer| write(writer, root, at));
        self.close(position, start, failures, wrote);
    }

    fn close(&mut self, position: usize, start: usize, failures: usize, wrote: Wrote) {
        self.spans[position] = Some(Span {
            bytes: start..self.writer.out.len(),
            failures: failures..self.writer.failures.len(),
            nulled: wrote.is_err(),
        });
    }

    /// One record of an operation. `node` writes it in the shape it is given.
    pub fn record(&mut self, number: usize, cells: &dyn Row, node: &mut WriteNode) {
        let Answering { plan, writer, running, open, .. } = self;
        let running = &running[number];
        let root = &plan.roots[running.root];
        let Does::Builtin(builtin) = &root.does else { return };
        let open = Open::of(open, number, writer, root);
        let path = Path::root(&root.label.response);
        match &builtin.gives {
            Shape::Record(object) => {
                open.wrote = writer.nullable(root.required, |writer| node(writer, object, &path));
            }
            Shape::List(slot, object) if open.wrote.is_ok() => {
                writer.out.push(if open.rows == 0 { b'[' } else { b',' });
                let path = path.index(open.rows);
                open.wrote = writer.nullable(slot.required, |writer| node(writer, object, &path));
            }
            Shape::Connection(connection) => {
                let own = connection.reads.columns.len();
                let format = running.cursors.as_ref().filter(|_| connection.cursors);
                let cursor = format.map(|format| format.encode(cells, own));
                open.gathering.row(connection, cursor, &path, node);
            }
            Shape::List(..) | Shape::Id | Shape::Boolean => {}
        }
        open.rows += 1;
    }

    fn outcome(&mut self, number: usize, outcome: Result<Outcome>) {
        let plan = self.plan.clone();
        let running = &self.running[number];
        let (position, root) = (running.root, &plan.roots[running.root]);
        let Does::Builtin(builtin) = &root.does else { return };
        Open::of(&mut self.open, number, &mut self.writer, root);
        let Some(mut open) = self.open.take() else { return };
        let path = Path::root(&root.label.response);
        let at = At { label: &root.label, path: &path };
        let wrote = match outcome {
            Ok(outcome) => {
                self.changed |= changed(&outcome);
                finish(&mut self.writer, root, builtin, running, &mut open, outcome, at)
            }
            Err(error) => {
                // Rows that came before the failure do not count.
                self.writer.out.truncate(open.value);
                self.writer.failures.truncate(open.failures);
                self.writer.failed(root.required, &error, at)
            }
        };
        self.close(position, open.start, open.failures, wrote);
    }

    /// The response so far.
    pub fn bytes(&self) -> Vec<u8> {
        if self.is_in_order() {
            let mut out = self.writer.out.clone();
            out.push(b'}');
            return sealed(out, self.writer.failures.iter());
        }
        let nulled = self.spans().position(|span| span.nulled);
        let out = if nulled.is_some() { b"{\"data\":null".to_vec() } else { self.ordered() };
        // A query stops at the first field that makes it null; what a mutation did after it is told all the same.
        let told = match (nulled, self.plan.kind) {
            (Some(position), OperationType::Query | OperationType::Subscription) => position + 1,
            (Some(_), OperationType::Mutation) | (None, _) => self.spans.len(),
        };
        let failures = self.spans().take(told).flat_map(|span| &self.writer.failures[span.failures.clone()]);
        sealed(out, failures)
    }

    pub fn finish(mut self) -> Executed {
        let whole = self.writer.failures.is_empty();
        let causes = self.writer.failures.iter().filter_map(|failure| failure.cause.clone()).collect();
        if !self.is_in_order() {
            return Executed { body: self.bytes(), whole, before: None, replayed: false, causes };
        }
        let mut out = std::mem::take(&mut self.writer.out);
        out.push(b'}');
        let out = sealed(out, self.writer.failures.iter());
        self.plan.size.store(out.len(), std::sync::atomic::Ordering::Relaxed);
        Executed { body: out, whole, before: None, replayed: false, causes }
    }

    fn spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter().flatten()
    }

    /// Whether the bytes can go out as they were written.
    fn is_in_order(&self) -> bool {
        self.spans().is_sorted_by_key(|span| span.bytes.start) && !self.spans().any(|span| span.nulled)
    }

    fn ordered(&self) -> Vec<u8> {
        let mut out = HEAD.to_vec();
        for span in self.spans() {
            if out.len() > HEAD.len() {
                out.push(b',');
            }
            out.extend_from_slice(&self.writer.out[span.bytes.clone()]);
        }
        out.push(b'}');
        out
    }
}

impl Open {
    /// The one with this number; its key is written when it is new.
    fn of<'a>(slot: &'a mut Option<Open>, number: usize, writer: &mut Writer, root: &Root) -> &'a mut Open {
        if slot.as_ref().is_none_or(|open| open.number != number) {
            let failures = writer.failures.len();
            let start = key(writer, root);
            let (value, gathering) = (writer.out.len(), Gathering::default());
            *slot = Some(Open { number, start, value, failures, rows: 0, wrote: Ok(()), gathering });
        }
        slot.as_mut().expect("it was just filled")
    }
}

/// Begins a root field; the answer is where.
fn key(writer: &mut Writer, root: &Root) -> usize {
    if writer.out.len() > HEAD.len() {
        writer.out.push(b',');
    }
    let start = writer.out.len();
    writer.out.extend_from_slice(&root.label.key);
    start
}

/// Adds the errors and closes the response.
fn sealed<'a>(mut out: Vec<u8>, failures: impl Iterator<Item = &'a Failure>) -> Vec<u8> {
    let mut failures = failures.peekable();
    if failures.peek().is_some() {
        out.extend_from_slice(b",\"errors\":");
        response_error::write_all(&mut out, failures);
    }
    out.push(b'}');
    out
}

fn changed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Created { .. } | Outcome::Updated { .. } | Outcome::Deleted { .. } => true,
        Outcome::Found | Outcome::Missing | Outcome::Listed { .. } | Outcome::Plain { .. } => false,
    }
}

/// The end of a root field's value, once its outcome is known.
fn finish(
    writer: &mut Writer,
    root: &Root,
    builtin: &BuiltinRoot,
    running: &Running,
    open: &mut Open,
    outcome: Outcome,
    at: At,
) -> Wrote {
    let wrote = std::mem::replace(&mut open.wrote, Ok(()));
    match (&builtin.gives, outcome) {
        (Shape::Boolean, outcome) => {
            writer.out.extend_from_slice(if outcome == Outcome::Missing { b"false" } else { b"true" });
            Ok(())
        }
        (Shape::Record(_) | Shape::Id, Outcome::Missing) => match builtin.builtin.verb {
            Verb::Get | Verb::List | Verb::Create | Verb::Watch(_) => writer.null(root.required, at),
            Verb::Update | Verb::Delete => {
                let id = running.id.unwrap_or_default();
                let missing =
                    Error::NotFound { what: Missing::Record { type_name: builtin.record_name.clone(), id } };
                writer.failed(root.required, &missing, at)
            }
        },
        (Shape::Id, Outcome::Deleted { id }) => {
            writer.out.push(b'"');
            json_text::write_int(&mut writer.out, id);
            writer.out.push(b'"');
            Ok(())
        }
        (Shape::List(..), _) => {
            if open.rows == 0 {
                writer.out.push(b'[');
            }
            let end = open.value;
            writer.out.push(b']');
            match wrote {
                Err(nulled) if root.required => Err(nulled),
                Err(_) => {
                    writer.out.truncate(end);
                    writer.out.extend_from_slice(b"null");
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        }
        (Shape::Connection(connection), outcome) => {
            let (more, total) = match outcome {
                Outcome::Listed { more, total } => (more, total),
                Outcome::Found
                | Outcome::Missing
                | Outcome::Created { .. }
                | Outcome::Updated { .. }
                | Outcome::Deleted { .. }
                | Outcome::Plain { .. } => (false, None),
            };
            let gathering = std::mem::take(&mut open.gathering);
            let page = Page { more, previous: running.previous, total };
            writer.nullable(root.required, |writer| gathering.finish(connection, writer, at.path, &page))
        }
        (Shape::Record(_) | Shape::Id, _) if open.rows == 0 => {
            writer.failed(root.required, &Error::internal("the store gave no record"), at)
        }
        (Shape::Record(_) | Shape::Id, _) => wrote,
    }
}

impl Answer for Answering {
    fn row(&mut self, number: usize, row: &dyn Row) {
        self.record(number, row, &mut |writer, object, path| writer.row(object, row, path));
    }

    fn done(&mut self, number: usize, outcome: Result<Outcome>) {
        self.outcome(number, outcome);
    }

    fn keep(&mut self) -> Option<Vec<u8>> {
        self.changed.then(|| self.bytes())
    }

    fn begin(&mut self) {
        self.saved =
            Saved { out: self.writer.out.len(), failures: self.writer.failures.len(), changed: self.changed };
        for running in &mut self.running {
            running.refused = self.spans[running.root].is_some();
        }
    }

    fn reset(&mut self) {
        self.writer.out.truncate(self.saved.out);
        self.writer.failures.truncate(self.saved.failures);
        for running in self.running.iter().filter(|running| !running.refused) {
            self.spans[running.root] = None;
        }
        self.changed = self.saved.changed;
        self.open = None;
    }
}
