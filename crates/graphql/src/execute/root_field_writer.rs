//! A root field of the response while its rows arrive, and its end once the outcome is known.

use trefoil_engine::{OperationVerb, Outcome};
use trefoil_model::RecordId;
use trefoil_model::error::{Error, MissingItem, Violation};
use trefoil_model::values::json_text;

use crate::execute::connection::ConnectionWriter;
use crate::execute::page_info::PageExtent;
use crate::execute::path::FieldPosition;
use crate::execute::payload::{PayloadContext, PayloadWriter, write_id};
use crate::execute::pending_root::PendingRoot;
use crate::execute::write::{ResponseWriter, WriteResult};
use crate::plan::roots::{BuiltinRootField, PlannedRoot, RootShape};
use crate::registered_resolvers::resolved_tree::ResolvedFields;

pub const RESPONSE_START: &[u8] = b"{\"data\":{";

/// The root field that is currently written.
pub struct RootFieldWriter {
    pub number: usize,
    pub start: usize,
    /// Offset of its value.
    pub value_start: usize,
    pub error_start: usize,
    pub rows: usize,
    pub result: WriteResult,
    pub connection: ConnectionWriter,
    pub payload: PayloadWriter,
}

impl RootFieldWriter {
    /// The open root with this number; opens it and writes its key if necessary.
    pub fn get_or_open<'a>(
        slot: &'a mut Option<RootFieldWriter>,
        number: usize,
        writer: &mut ResponseWriter,
        root: &PlannedRoot,
    ) -> &'a mut RootFieldWriter {
        if slot.as_ref().is_none_or(|open| open.number != number) {
            let failures = writer.errors.len();
            let start = begin_field(writer, root);
            let value_start = writer.out.len();
            *slot = Some(RootFieldWriter {
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
pub fn begin_field(writer: &mut ResponseWriter, root: &PlannedRoot) -> usize {
    if writer.out.len() > RESPONSE_START.len() {
        writer.out.push(b',');
    }
    let start = writer.out.len();
    writer.out.extend_from_slice(&root.label.json_key);
    start
}

/// True if a read found no record.
fn is_nothing(outcome: &Outcome, rows: usize) -> bool {
    outcome.is_missing() || (matches!(outcome, Outcome::Listed { .. }) && rows == 0)
}

/// What is needed to write the rest of a root field.
pub struct RootFieldEnd<'a> {
    pub root: &'a PlannedRoot,
    pub builtin: &'a BuiltinRootField,
    pub pending: &'a PendingRoot,
    pub resolved: &'a ResolvedFields,
}

impl RootFieldEnd<'_> {
    /// Writes the rest of a root field, once its outcome is known.
    pub fn write(
        &self,
        writer: &mut ResponseWriter,
        open: &mut RootFieldWriter,
        outcome: Outcome,
        at: FieldPosition,
    ) -> WriteResult {
        let RootFieldEnd { root, builtin, pending, resolved } = self;
        let result = std::mem::replace(&mut open.result, Ok(()));
        match (&builtin.shape, outcome) {
            (RootShape::Boolean, outcome) => {
                let is_empty = matches!(outcome, Outcome::Listed { .. }) && open.rows == 0;
                let is_false = outcome.is_missing() || is_empty;
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
            (RootShape::Record(_) | RootShape::Payload(_), Outcome::Listed { has_more: true, .. })
                if builtin.builtin.is_singleton =>
            {
                writer.out.truncate(open.value_start);
                writer.errors.truncate(open.error_start);
                let message = format!("there are several records of {}, not only one", builtin.record_name);
                let violation = Violation::new(&root.label.name, "SEVERAL", message);
                writer.fail_with(root.required, &Error::Conflict(vec![violation]), at)
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
                let context = PayloadContext {
                    is_done: false,
                    id: None,
                    global_type: None,
                    client_mutation_id: None,
                    change: None,
                };
                writer.stop_null(root.required, |writer| {
                    PayloadWriter::default().finish(payload, writer, at.path, context, resolved)
                })
            }
            (
                RootShape::Record(_) | RootShape::Payload(_) | RootShape::Id { .. } | RootShape::Nothing,
                missing @ (Outcome::NotFound | Outcome::OutOfSight(_)),
            ) => {
                let hidden_by = if let Outcome::OutOfSight(rule) = missing { Some(rule) } else { None };
                match pending.record_id.clone() {
                    Some(id) => {
                        let what = MissingItem::Record { type_name: builtin.record_name.clone(), id };
                        writer.fail_with(root.required, &Error::NotFound { what, hidden_by }, at)
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
                let context = PayloadContext {
                    is_done: true,
                    id: Some(&id),
                    global_type: builtin.global_type(),
                    client_mutation_id: pending.client_mutation_id.as_deref(),
                    change: None,
                };
                writer.stop_null(root.required, |writer| {
                    payload_writer.finish(payload, writer, at.path, context, resolved)
                })
            }
            // A get operation that is not by id lists the first match.
            (RootShape::Payload(payload), Outcome::Found | Outcome::Listed { .. }) => {
                let payload_writer = std::mem::take(&mut open.payload);
                let context = PayloadContext {
                    is_done: true,
                    id: None,
                    global_type: None,
                    client_mutation_id: None,
                    change: pending.change.as_ref(),
                };
                writer.stop_null(root.required, |writer| {
                    payload_writer.finish(payload, writer, at.path, context, resolved)
                })
            }
            (RootShape::Nothing, _) => {
                writer.out.extend_from_slice(b"null");
                Ok(())
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
                    | Outcome::OutOfSight(_)
                    | Outcome::Created { .. }
                    | Outcome::Updated { .. }
                    | Outcome::Deleted { .. }
                    | Outcome::ChangedMany { .. }
                    | Outcome::PlainList { .. } => (false, None),
                };
                let connection_writer = std::mem::take(&mut open.connection);
                let page = PageExtent {
                    slice: &pending.slice,
                    has_more,
                    total,
                    page_id: pending.page_id.as_deref(),
                };
                let cursors = [pending.cursors.as_ref(); 2];
                writer.stop_null(root.required, |writer| {
                    connection_writer.finish(connection, writer, at.path, page, cursors, resolved)
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
