//! The response of one operation under construction: root fields are written in the order in which they complete.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apollo_compiler::executable::OperationType;

use trefoil_engine::{Outcome, Row, RowSink};
use trefoil_model::error::{Error, PathSegment, Result};

use crate::execute::abstract_results::AbstractResults;
use crate::execute::connection::NodeWriter;
use crate::execute::hidden_fields::HiddenSelection;
use crate::execute::path::{FieldPosition, ResponsePath};
use crate::execute::pending_root::PendingRoot;
use crate::execute::root_field_writer::{RESPONSE_START, RootFieldEnd, RootFieldWriter, begin_field};
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::roots::{OperationPlan, PlannedRoot, RootAction, RootShape};
use crate::plan::shape::FieldShape;
use crate::registered_resolvers::resolved_tree::{ResolvedFields, ResolvedTree};
use crate::reply::ExecutedResponse;
use crate::response_error::{self, ErrorNotes, ResponseError};

/// Receives rows and outcomes of store operations and writes them under their root fields.
pub struct ResponseBuilder {
    pub(super) plan: Arc<OperationPlan>,
    writer: ResponseWriter,
    spans: Vec<Option<RootOutputRange>>,
    /// The operations passed to the store, by number.
    pub(super) pending: Vec<PendingRoot>,
    /// The root fields over several types.
    pub(super) abstracts: Vec<AbstractResults>,
    root_field_writer: Option<RootFieldWriter>,
    pub(super) resolved: ResolvedFields,
    hidden_fields: Vec<HiddenSelection>,
    /// The root field that undid an atomic operation.
    refused: Option<RefusedRoot>,
    /// A record was changed, so the response must be stored under the idempotency key.
    changed: bool,
    checkpoint: BuilderCheckpoint,
}

/// The output of one root field.
#[derive(Debug, Clone)]
struct RootOutputRange {
    /// Its range in the writer's bytes, including the key …
    bytes: Range<usize>,
    /// … and in the list of errors.
    errors: Range<usize>,
    /// The field is non-null but null, so `data` is null.
    null_propagated: bool,
}

/// A root field whose operation succeeded, but not its answer.
struct RefusedRoot {
    position: usize,
    /// Tells it from another failure, if the store tries again.
    message: String,
    /// Without those of [`HiddenSelection`]s, which are reported anyway.
    errors: Vec<ResponseError>,
}

/// The state before the store started, restored when the store retries.
#[derive(Default)]
struct BuilderCheckpoint {
    out: usize,
    error_count: usize,
    changed: bool,
}

impl ResponseBuilder {
    pub fn new(plan: Arc<OperationPlan>, capacity: usize) -> ResponseBuilder {
        let mut out = Vec::with_capacity(capacity.max(256));
        out.extend_from_slice(RESPONSE_START);
        ResponseBuilder {
            spans: vec![None; plan.roots.len()],
            plan,
            writer: ResponseWriter { out, ..ResponseWriter::default() },
            pending: Vec::new(),
            abstracts: Vec::new(),
            root_field_writer: None,
            resolved: ResolvedFields::default(),
            hidden_fields: Vec::new(),
            refused: None,
            changed: false,
            checkpoint: BuilderCheckpoint::default(),
        }
    }

    /// Reports selected fields that the actor never sees.
    pub fn set_hidden_fields(&mut self, hidden_fields: Vec<HiddenSelection>) {
        self.hidden_fields = hidden_fields;
    }

    /// The errors of what may not be read, each once.
    fn hidden_errors(&self) -> impl Iterator<Item = &ResponseError> {
        let unreadable = self.writer.unreadable.iter().filter(|error| !self.is_hidden_path(&error.path));
        self.hidden_fields.iter().map(|hidden| &hidden.error).chain(unreadable)
    }

    fn is_hidden_path(&self, path: &[PathSegment]) -> bool {
        self.hidden_fields.iter().any(|hidden| *hidden.error.path == *path)
    }

    /// What is wrong with the answer of a root field.
    fn root_errors(&self, position: usize) -> Vec<ResponseError> {
        let span = self.spans[position].iter().flat_map(|span| &self.writer.errors[span.errors.clone()]);
        let key = PathSegment::Field(self.plan.roots[position].label.response_key.clone());
        let is_here =
            |error: &&ResponseError| error.path.first() == Some(&key) && !self.is_hidden_path(&error.path);
        span.chain(self.writer.unreadable.iter().filter(is_here)).cloned().collect()
    }

    /// Adds the results of a resolver, to be written where its field is.
    pub fn add_resolved(&mut self, field: Arc<FieldShape>, trees: Vec<ResolvedTree>) {
        self.resolved.add(field, trees);
    }

    /// Sets the next operations of the store, numbered from 0.
    pub fn set_pending(&mut self, pending: Vec<PendingRoot>, abstracts: Vec<AbstractResults>) {
        self.pending = pending;
        self.abstracts = abstracts;
        (0..self.abstracts.len()).for_each(|number| self.write_abstract(number));
    }

    /// Writes a root field that does not use the store.
    pub fn write_root(
        &mut self,
        position: usize,
        write: impl FnOnce(&mut ResponseWriter, &PlannedRoot, FieldPosition) -> WriteResult,
    ) {
        let plan = self.plan.clone();
        let root = &plan.roots[position];
        let failures = self.writer.errors.len();
        let start = begin_field(&mut self.writer, root);
        let path = ResponsePath::root(&root.label.response_key);
        let at = FieldPosition { label: &root.label, path: &path };
        let result = self.writer.stop_null(root.required, |writer| write(writer, root, at));
        self.close_root(position, start, failures, result);
    }

    fn close_root(&mut self, position: usize, start: usize, failures: usize, result: WriteResult) {
        self.spans[position] = Some(RootOutputRange {
            bytes: start..self.writer.out.len(),
            errors: failures..self.writer.errors.len(),
            null_propagated: result.is_err(),
        });
    }

    /// Writes one record of an operation; `node` writes it in a shape.
    pub fn write_record(&mut self, number: usize, row: &dyn Row, node: &mut NodeWriter) {
        let ResponseBuilder { plan, writer, pending, root_field_writer, resolved, .. } = self;
        let pending = &pending[number];
        let root = &plan.roots[pending.root_position];
        let RootAction::Builtin(builtin) = &root.action else { return self.add_abstract_row(number, row) };
        let open = RootFieldWriter::get_or_open(root_field_writer, number, writer, root);
        let path = ResponsePath::root(&root.label.response_key);
        match &builtin.shape {
            RootShape::Record(object) => {
                open.result = writer.stop_null(root.required, |writer| node(writer, object, &path));
            }
            RootShape::List(slot, object) if open.result.is_ok() => {
                writer.out.push(if open.rows == 0 { b'[' } else { b',' });
                let path = path.index(open.rows);
                open.result = writer.stop_null(slot.required, |writer| node(writer, object, &path));
            }
            RootShape::Connection(connection) => {
                let column_count = connection.reads.columns.len();
                let format = pending.cursors.as_ref().filter(|_| connection.needs_cursors);
                let cursor = format.map(|format| (format, format.read(row, column_count)));
                open.connection.add_row(connection, cursor, &path, resolved, node);
            }
            RootShape::Groups(groups) if open.result.is_ok() => {
                writer.out.push(if open.rows == 0 { b'[' } else { b',' });
                let path = path.index(open.rows);
                let value = groups.group_value(&pending.group_keys, row);
                let at = FieldPosition { label: &root.label, path: &path };
                open.result = writer.write_value(&groups.slot, &value, at);
            }
            RootShape::Payload(payload) => open.payload.add_row(payload, &path, node),
            RootShape::List(..)
            | RootShape::Groups(_)
            | RootShape::Id { .. }
            | RootShape::Boolean
            | RootShape::Nothing
            | RootShape::Count { .. } => {}
        }
        open.rows += 1;
    }

    fn write_outcome(&mut self, number: usize, outcome: Result<Outcome>) {
        let plan = self.plan.clone();
        let pending = &self.pending[number];
        let (position, root) = (pending.root_position, &plan.roots[pending.root_position]);
        let RootAction::Builtin(builtin) = &root.action else {
            return self.add_abstract_outcome(number, outcome);
        };
        RootFieldWriter::get_or_open(&mut self.root_field_writer, number, &mut self.writer, root);
        let Some(mut open) = self.root_field_writer.take() else { return };
        let path = ResponsePath::root(&root.label.response_key);
        let at = FieldPosition { label: &root.label, path: &path };
        let result = match outcome {
            Ok(outcome) => {
                self.changed |= is_write(&outcome);
                let finish = RootFieldEnd { root, builtin, pending, resolved: &self.resolved };
                finish.write(&mut self.writer, &mut open, outcome, at)
            }
            Err(error) => {
                // Discard the rows before the failure.
                self.writer.out.truncate(open.value_start);
                self.writer.errors.truncate(open.error_start);
                let is_refused =
                    |r: &mut RefusedRoot| r.position == position && r.message == error.to_string();
                if let Some(refused) = self.refused.take_if(is_refused) {
                    self.writer.errors.extend(refused.errors);
                    let null = self.writer.write_refused(root.required);
                    return self.close_root(position, open.start, open.error_start, null);
                }
                let failure = root.mistake.clone().unwrap_or_else(|| {
                    ResponseError::from_error(&error)
                        .with_locations(&at.label.locations)
                        .with_path(at.path.segments())
                });
                self.writer.fail(root.required, failure)
            }
        };
        self.close_root(position, open.start, open.error_start, result);
    }

    /// The response up to now, as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_in_order() {
            let mut out = self.writer.out.clone();
            out.push(b'}');
            return finish_response(out, self.writer.errors.iter().chain(self.hidden_errors()));
        }
        let nulled = self.spans().position(|span| span.null_propagated);
        let out = if nulled.is_some() { b"{\"data\":null".to_vec() } else { self.reorder() };
        // A query reports errors up to the first field that makes `data` null. The later fields of a mutation were
        // executed, so all errors are reported.
        let reported = match (nulled, self.plan.kind) {
            (Some(position), OperationType::Query | OperationType::Subscription) => position + 1,
            (Some(_), OperationType::Mutation) | (None, _) => self.spans.len(),
        };
        let failures = self.spans().take(reported).flat_map(|span| &self.writer.errors[span.errors.clone()]);
        finish_response(out, failures.chain(self.hidden_errors()))
    }

    /// The whole response. Nothing can be added afterwards.
    pub fn finish(&mut self) -> ExecutedResponse {
        let error_free = self.writer.errors.is_empty() && self.hidden_errors().next().is_none();
        let notes = ErrorNotes::of(self.writer.errors.iter().chain(self.hidden_errors()));
        if !self.is_in_order() {
            return ExecutedResponse {
                body: self.to_bytes(),
                error_free,
                data_version: None,
                replayed: false,
                notes,
            };
        }
        let mut out = std::mem::take(&mut self.writer.out);
        out.push(b'}');
        let out = finish_response(out, self.writer.errors.iter().chain(self.hidden_errors()));
        self.plan.last_response_bytes.store(out.len(), Ordering::Relaxed);
        ExecutedResponse { body: out, error_free, data_version: None, replayed: false, notes }
    }

    fn spans(&self) -> impl Iterator<Item = &RootOutputRange> {
        self.spans.iter().flatten()
    }

    /// True if the written bytes are the response, without reordering or nulls.
    fn is_in_order(&self) -> bool {
        self.spans().is_sorted_by_key(|span| span.bytes.start)
            && !self.spans().any(|span| span.null_propagated)
    }

    fn reorder(&self) -> Vec<u8> {
        let mut out = RESPONSE_START.to_vec();
        for span in self.spans() {
            if out.len() > RESPONSE_START.len() {
                out.push(b',');
            }
            out.extend_from_slice(&self.writer.out[span.bytes.clone()]);
        }
        out.push(b'}');
        out
    }
}

/// Adds the errors and closes the response.
fn finish_response<'a>(mut out: Vec<u8>, failures: impl Iterator<Item = &'a ResponseError>) -> Vec<u8> {
    let mut failures = failures.peekable();
    if failures.peek().is_some() {
        out.extend_from_slice(b",\"errors\":");
        response_error::write_errors(&mut out, failures);
    }
    out.push(b'}');
    out
}

fn is_write(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Created { .. }
        | Outcome::Updated { .. }
        | Outcome::Deleted { .. }
        | Outcome::ChangedMany { .. } => true,
        Outcome::Found
        | Outcome::NotFound
        | Outcome::OutOfSight(_)
        | Outcome::Listed { .. }
        | Outcome::PlainList { .. } => false,
    }
}

impl RowSink for ResponseBuilder {
    fn row(&mut self, number: usize, row: &dyn Row) {
        self.write_record(number, row, &mut |writer, object, path| writer.write_row(object, row, path));
    }

    fn finish_plan(&mut self, number: usize, outcome: Result<Outcome>) {
        self.write_outcome(number, outcome);
    }

    /// A root field with an error, such as that its record does not exist, undoes the operation.
    fn refusal(&mut self, number: usize) -> Option<Error> {
        let position = self.pending[number].root_position;
        let errors = self.root_errors(position);
        let hidden = self.hidden_fields.iter().filter(|hidden| hidden.root == position);
        let error = errors.iter().chain(hidden.map(|hidden| &hidden.error)).next()?;
        let (message, code) = (error.message.clone(), error.code.to_string());
        self.refused = Some(RefusedRoot { position, message: message.clone(), errors });
        let refusal = Error::Resolver { message, code };
        Some(refusal)
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        self.changed.then(|| self.to_bytes())
    }

    fn checkpoint(&mut self) {
        self.checkpoint = BuilderCheckpoint {
            out: self.writer.out.len(),
            error_count: self.writer.errors.len(),
            changed: self.changed,
        };
        for pending in &mut self.pending {
            pending.failed_early = self.spans[pending.root_position].is_some();
        }
        self.abstracts.iter_mut().for_each(AbstractResults::set_checkpoint);
    }

    fn reset(&mut self) {
        self.writer.out.truncate(self.checkpoint.out);
        self.writer.errors.truncate(self.checkpoint.error_count);
        self.writer.unreadable.clear();
        for pending in self.pending.iter().filter(|pending| !pending.failed_early) {
            self.spans[pending.root_position] = None;
        }
        self.abstracts.iter_mut().for_each(AbstractResults::reset);
        self.changed = self.checkpoint.changed;
        self.root_field_writer = None;
    }
}
