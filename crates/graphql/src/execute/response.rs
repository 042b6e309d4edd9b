//! The response of one operation under construction: root fields are written in the order in which they complete.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apollo_compiler::executable::OperationType;

use trefoil_engine::{OperationVerb, Outcome, Row, RowSink};
use trefoil_model::RecordId;
use trefoil_model::error::{Error, MissingItem, Result};
use trefoil_model::values::json_text;

use crate::execute::abstract_results::AbstractResults;
use crate::execute::connection::{ConnectionWriter, NodeWriter, PageInfo, ResolvedFields};
use crate::execute::path::{FieldPosition, ResponsePath};
use crate::execute::payload::{PayloadFacts, PayloadWriter, write_id};
use crate::execute::pending_root::PendingRoot;
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::roots::{BuiltinRoot, OperationPlan, PlannedRoot, RootAction, RootShape};
use crate::plan::shape::FieldShape;
use crate::registered_resolvers::tree::ResolvedTree;
use crate::reply::ExecutedResponse;
use crate::response_error::{self, ResponseError};

const RESPONSE_START: &[u8] = b"{\"data\":{";

/// Receives rows and outcomes of store operations and writes them under their root fields.
pub struct ResponseBuilder {
    pub(super) plan: Arc<OperationPlan>,
    writer: ResponseWriter,
    spans: Vec<Option<RootOutputRange>>,
    /// The operations passed to the store, by number.
    pub(super) pending: Vec<PendingRoot>,
    /// The root fields over several types.
    pub(super) abstracts: Vec<AbstractResults>,
    open_root: Option<OpenRoot>,
    pub(super) resolved: ResolvedFields,
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

/// The root field that is currently written.
struct OpenRoot {
    number: usize,
    start: usize,
    /// Offset of its value.
    value_start: usize,
    error_start: usize,
    rows: usize,
    result: WriteResult,
    connection: ConnectionWriter,
    payload: PayloadWriter,
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
            writer: ResponseWriter { out, errors: Vec::new() },
            pending: Vec::new(),
            abstracts: Vec::new(),
            open_root: None,
            resolved: ResolvedFields::default(),
            changed: false,
            checkpoint: BuilderCheckpoint::default(),
        }
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
        let ResponseBuilder { plan, writer, pending, open_root, resolved, .. } = self;
        let pending = &pending[number];
        let root = &plan.roots[pending.root_position];
        let RootAction::Builtin(builtin) = &root.action else { return self.add_abstract_row(number, row) };
        let open = OpenRoot::get_or_open(open_root, number, writer, root);
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
        OpenRoot::get_or_open(&mut self.open_root, number, &mut self.writer, root);
        let Some(mut open) = self.open_root.take() else { return };
        let path = ResponsePath::root(&root.label.response_key);
        let at = FieldPosition { label: &root.label, path: &path };
        let result = match outcome {
            Ok(outcome) => {
                self.changed |= is_write(&outcome);
                let finish = RootFinish { root, builtin, pending, resolved: &self.resolved };
                finish.write(&mut self.writer, &mut open, outcome, at)
            }
            Err(error) => {
                // Discard the rows before the failure.
                self.writer.out.truncate(open.value_start);
                self.writer.errors.truncate(open.error_start);
                self.writer.fail_with(root.required, &error, at)
            }
        };
        self.close_root(position, open.start, open.error_start, result);
    }

    /// The response up to now, as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.is_in_order() {
            let mut out = self.writer.out.clone();
            out.push(b'}');
            return finish_response(out, self.writer.errors.iter());
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
        finish_response(out, failures)
    }

    pub fn finish(mut self) -> ExecutedResponse {
        let error_free = self.writer.errors.is_empty();
        let causes = self.writer.errors.iter().filter_map(|failure| failure.cause.clone()).collect();
        if !self.is_in_order() {
            return ExecutedResponse {
                body: self.to_bytes(),
                error_free,
                data_version: None,
                replayed: false,
                causes,
            };
        }
        let mut out = std::mem::take(&mut self.writer.out);
        out.push(b'}');
        let out = finish_response(out, self.writer.errors.iter());
        self.plan.last_response_bytes.store(out.len(), Ordering::Relaxed);
        ExecutedResponse { body: out, error_free, data_version: None, replayed: false, causes }
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

impl OpenRoot {
    /// The open root with this number; opens it and writes its key if necessary.
    fn get_or_open<'a>(
        slot: &'a mut Option<OpenRoot>,
        number: usize,
        writer: &mut ResponseWriter,
        root: &PlannedRoot,
    ) -> &'a mut OpenRoot {
        if slot.as_ref().is_none_or(|open| open.number != number) {
            let failures = writer.errors.len();
            let start = begin_field(writer, root);
            let value_start = writer.out.len();
            *slot = Some(OpenRoot {
                number,
                start,
                value_start,
                error_start: failures,
                rows: 0,
                result: Ok(()),
                connection: ConnectionWriter::default(),
                payload: PayloadWriter::default(),
            });
        }
        slot.as_mut().expect("it was just filled")
    }
}

/// Writes the key of a root field and returns its offset.
fn begin_field(writer: &mut ResponseWriter, root: &PlannedRoot) -> usize {
    if writer.out.len() > RESPONSE_START.len() {
        writer.out.push(b',');
    }
    let start = writer.out.len();
    writer.out.extend_from_slice(&root.label.json_key);
    start
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
        Outcome::Found | Outcome::NotFound | Outcome::Listed { .. } | Outcome::PlainList { .. } => false,
    }
}

/// True if a read found no record.
fn is_nothing(outcome: &Outcome, rows: usize) -> bool {
    *outcome == Outcome::NotFound || (matches!(outcome, Outcome::Listed { .. }) && rows == 0)
}

/// What is needed to write the rest of a root field.
struct RootFinish<'a> {
    root: &'a PlannedRoot,
    builtin: &'a BuiltinRoot,
    pending: &'a PendingRoot,
    resolved: &'a ResolvedFields,
}

impl RootFinish<'_> {
    /// Writes the rest of a root field, once its outcome is known.
    fn write(
        &self,
        writer: &mut ResponseWriter,
        open: &mut OpenRoot,
        outcome: Outcome,
        at: FieldPosition,
    ) -> WriteResult {
        let RootFinish { root, builtin, pending, resolved } = self;
        let result = std::mem::replace(&mut open.result, Ok(()));
        match (&builtin.shape, outcome) {
            (RootShape::Boolean, outcome) => {
                let is_empty = matches!(outcome, Outcome::Listed { .. }) && open.rows == 0;
                let is_false = outcome == Outcome::NotFound || is_empty;
                writer.out.extend_from_slice(if is_false { b"false" } else { b"true" });
                Ok(())
            }
            (
                RootShape::Count { is_text },
                Outcome::Listed { total: Some(count), .. } | Outcome::ChangedMany { count },
            ) => {
                let quote = if *is_text { "\"" } else { "" };
                writer.out.extend_from_slice(format!("{quote}{count}{quote}").as_bytes());
                Ok(())
            }
            (RootShape::Count { .. }, _) => {
                writer.fail_with(root.required, &Error::internal("the store did not count"), at)
            }
            // A get operation that is not by id lists the first match.
            (RootShape::Record(_), Outcome::Listed { .. }) if open.rows == 0 => {
                writer.write_null(root.required, at)
            }
            (RootShape::Payload(payload), outcome)
                if builtin.builtin.verb == OperationVerb::Get && is_nothing(&outcome, open.rows) =>
            {
                if payload.requires_record() {
                    return writer.write_null(root.required, at);
                }
                let facts = PayloadFacts { is_done: false, id: None, global_type: None, change: None };
                writer.stop_null(root.required, |writer| {
                    PayloadWriter::default().finish(payload, writer, at.path, facts, resolved)
                })
            }
            (RootShape::Record(_) | RootShape::Payload(_) | RootShape::Id { .. }, Outcome::NotFound) => {
                match pending.record_id.clone() {
                    Some(id) => {
                        let what = MissingItem::Record { type_name: builtin.record_name.clone(), id };
                        writer.fail_with(root.required, &Error::NotFound { what }, at)
                    }
                    // A read that finds nothing is null.
                    None => writer.write_null(root.required, at),
                }
            }
            (
                RootShape::Id { is_number },
                Outcome::Created { id, .. } | Outcome::Updated { id, .. } | Outcome::Deleted { id },
            ) => {
                match id {
                    RecordId::Number(number) if *is_number => json_text::write_int(&mut writer.out, number),
                    RecordId::Number(_) | RecordId::Text(_) => {
                        write_id(&mut writer.out, &id, builtin.global_type());
                    }
                }
                Ok(())
            }
            (
                RootShape::Payload(payload),
                Outcome::Created { id, .. } | Outcome::Updated { id, .. } | Outcome::Deleted { id },
            ) => {
                let payload_writer = std::mem::take(&mut open.payload);
                let facts = PayloadFacts {
                    is_done: true,
                    id: Some(&id),
                    global_type: builtin.global_type(),
                    change: None,
                };
                writer.stop_null(root.required, |writer| {
                    payload_writer.finish(payload, writer, at.path, facts, resolved)
                })
            }
            // A get operation that is not by id lists the first match.
            (RootShape::Payload(payload), Outcome::Found | Outcome::Listed { .. }) => {
                let payload_writer = std::mem::take(&mut open.payload);
                let change = pending.change.as_ref();
                let facts = PayloadFacts { is_done: true, id: None, global_type: None, change };
                writer.stop_null(root.required, |writer| {
                    payload_writer.finish(payload, writer, at.path, facts, resolved)
                })
            }
            (RootShape::List(..) | RootShape::Groups(_), _) => {
                if open.rows == 0 {
                    writer.out.push(b'[');
                }
                let start = open.value_start;
                writer.out.push(b']');
                match result {
                    Err(nulled) if root.required => Err(nulled),
                    Err(_) => {
                        writer.out.truncate(start);
                        writer.out.extend_from_slice(b"null");
                        Ok(())
                    }
                    Ok(()) => Ok(()),
                }
            }
            (RootShape::Connection(connection), outcome) => {
                let (has_more, total) = match outcome {
                    Outcome::Listed { has_more, total } => (has_more, total),
                    Outcome::Found
                    | Outcome::NotFound
                    | Outcome::Created { .. }
                    | Outcome::Updated { .. }
                    | Outcome::Deleted { .. }
                    | Outcome::ChangedMany { .. }
                    | Outcome::PlainList { .. } => (false, None),
                };
                let connection_writer = std::mem::take(&mut open.connection);
                let page = PageInfo::new(&pending.slice, has_more, total);
                let cursors = [pending.cursors.as_ref(); 2];
                writer.stop_null(root.required, |writer| {
                    connection_writer.finish(connection, writer, at.path, &page, cursors, resolved)
                })
            }
            (RootShape::Payload(_), _) => {
                writer.fail_with(root.required, &Error::internal("a payload is the result of a write"), at)
            }
            (RootShape::Record(_) | RootShape::Id { .. }, _) if open.rows == 0 => {
                writer.fail_with(root.required, &Error::internal("the store returned no record"), at)
            }
            (RootShape::Record(_) | RootShape::Id { .. }, _) => result,
        }
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
        let span = self.spans[self.pending[number].root_position].as_ref()?;
        let error = self.writer.errors[span.errors.clone()].first()?;
        Some(Error::Resolver { message: error.message.clone(), code: error.code.clone() })
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
        for pending in self.pending.iter().filter(|pending| !pending.failed_early) {
            self.spans[pending.root_position] = None;
        }
        self.abstracts.iter_mut().for_each(AbstractResults::reset);
        self.changed = self.checkpoint.changed;
        self.open_root = None;
    }
}
