//! Writes of one record, with expected versions against lost updates and idempotency keys for retries.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{HeaderName, IF_NONE_MATCH, LOCATION};
use http::{HeaderValue, StatusCode};

use trefoil_engine::{
    IdempotencyKey, JobResult, MissingFields, Operation, Outcome, PreparedSelection, downcast_sink,
};
use trefoil_http::errors::problem::Problem;
use trefoil_http::{etags, idempotency};
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, Result};
use trefoil_model::{KeyForm, RecordId};

use crate::body_text;
use crate::collection::record_path;
use crate::field_values::FieldValues;
use crate::record_shape::etag_version;
use crate::request::ResourceRequest;
use crate::row_writer::{RowEncoding, RowWriter, WrittenRecord};

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A version that no record has.
pub const IMPOSSIBLE_VERSION: i64 = i64::MIN;

impl ResourceRequest<'_> {
    pub fn create_operation(&self, fields: FieldValues, selection: &Arc<PreparedSelection>) -> Operation {
        let (record, selection) = (self.collection.record, selection.clone());
        Operation::Create { record, id: None, fields, filled_fields: Vec::new(), selection }
    }

    /// The operation that changes a record; `missing_fields` says what happens to absent fields.
    pub fn update_operation(
        &self,
        id: &RecordId,
        fields: FieldValues,
        missing_fields: MissingFields,
        expected_version: Option<i64>,
    ) -> Operation {
        let (record, selection) = (self.collection.record, self.collection.stored_shape.selection.clone());
        let (id, filled_fields) = (id.clone(), Vec::new());
        Operation::Update { record, id, fields, filled_fields, missing_fields, expected_version, selection }
    }

    pub fn delete_operation(&self, id: &RecordId, expected_version: Option<i64>) -> Operation {
        let (record, selection) = (self.collection.record, self.collection.stored_shape.selection.clone());
        Operation::Delete { record, id: id.clone(), expected_version, selection }
    }

    /// Runs a write whose result is only the record's id and version.
    pub async fn execute_write(
        &self,
        operation: Operation,
        key: Option<IdempotencyKey>,
    ) -> Result<CompletedWrite> {
        self.write_one(
            Ok(operation),
            RowWriter::new(&self.collection.stored_shape, RowEncoding::SingleObject),
            key,
        )
        .await
    }

    /// The version that If-Match and If-None-Match require. If they allow none, it is [`IMPOSSIBLE_VERSION`] and not an
    /// error, because the store must first look for the result of an earlier request with the same idempotency key.
    pub async fn expected_version(&self, id: &RecordId) -> Result<Option<i64>, Problem> {
        let listed = etags::expected_versions(self.headers(), etag_version);
        let excludes = self.headers().contains_key(IF_NONE_MATCH);
        if let (None | Some([_]), false) = (listed.as_deref(), excludes) {
            return Ok(listed.and_then(|listed| listed.first().copied()));
        }
        let is_allowed = |version: &i64| {
            let included = listed.as_ref().is_none_or(|listed| listed.contains(version));
            included && !etags::excludes_version(self.headers(), *version, etag_version)
        };
        Ok(Some(self.current_version(id).await?.filter(is_allowed).unwrap_or(IMPOSSIBLE_VERSION)))
    }

    /// `None` if there is no such record.
    async fn current_version(&self, id: &RecordId) -> Result<Option<i64>, Problem> {
        let (record, shape) = (self.collection.record, &self.collection.stored_shape);
        let operation = Operation::Get { record, id: id.clone(), selection: shape.selection.clone() };
        let (encoded, _) =
            self.read_rows(vec![operation], RowWriter::new(shape, RowEncoding::SingleObject)).await?;
        Ok(encoded.version)
    }

    /// Where a written record is, if it may be read.
    pub fn location(&self, written: &WrittenRecord) -> Option<(HeaderName, HeaderValue)> {
        let may_read =
            !written.is_unreadable && self.resources.engine.may(AccessAction::Read, self.collection.record);
        may_read.then(|| (LOCATION, header_value(&record_path(&self.collection.path, &written.id))))
    }

    pub fn idempotency_key(&self, bytes: &[u8]) -> Result<Option<IdempotencyKey>, Problem> {
        let target =
            format!("{} {} {}", self.head.method, self.head.uri, body_text::media_type(self.headers()));
        idempotency::idempotency_key(self.headers(), &target, bytes)
    }

    pub async fn write_one(
        &self,
        operation: Result<Operation>,
        rows: RowWriter,
        key: Option<IdempotencyKey>,
    ) -> Result<CompletedWrite> {
        let target_id = operation.as_ref().ok().and_then(Operation::id).cloned();
        match self.run_atomically(vec![operation], rows, key).await? {
            JobResult::Replayed(bytes) => CompletedWrite::replayed(self.record().key_form(), &bytes),
            JobResult::Completed(sink) => {
                let (encoded, mut outcomes) = downcast_sink::<RowWriter>(sink)?.finish();
                let outcome = outcomes
                    .pop()
                    .map_or_else(|| Err(Error::internal("no outcome")), |(_, outcome)| outcome)?;
                let (id, version) = match outcome {
                    Outcome::Created { id, version } | Outcome::Updated { id, version } => (id, version),
                    Outcome::Deleted { id } => (id, 0),
                    missing @ (Outcome::NotFound | Outcome::OutOfSight(_)) => {
                        let id = target_id.ok_or_else(|| Error::internal("a creation found no record"))?;
                        let mut error = self.not_found_error(self.collection.record, &id);
                        if let (Outcome::OutOfSight(rule), Error::NotFound { hidden_by, .. }) =
                            (missing, &mut error)
                        {
                            *hidden_by = Some(rule);
                        }
                        return Err(error);
                    }
                    other @ (Outcome::Found
                    | Outcome::Listed { .. }
                    | Outcome::ChangedMany { .. }
                    | Outcome::PlainList { .. }) => {
                        return Err(Error::internal(format!("unexpected outcome of a write: {other:?}")));
                    }
                };
                Ok(CompletedWrite {
                    record: WrittenRecord {
                        id,
                        version,
                        is_unreadable: encoded.is_unreadable,
                        bytes: encoded.bytes,
                    },
                    replayed: false,
                })
            }
        }
    }
}

/// Explains a version conflict by the headers, since a version number means nothing to people.
pub fn write_problem(error: Error) -> Problem {
    let is_stale = matches!(error, Error::Stale { .. });
    let problem = Problem::from(error);
    if !is_stale {
        return problem;
    }
    let detail = "the version of the record does not satisfy If-Match or If-None-Match; read it again";
    Problem { detail: detail.to_owned(), ..problem }
}

/// The result of a write, done now or by an earlier request with the same key.
pub struct CompletedWrite {
    pub record: WrittenRecord,
    replayed: bool,
}

impl CompletedWrite {
    /// The stored result of an earlier request.
    pub fn replayed(form: KeyForm, stored: &[u8]) -> Result<CompletedWrite> {
        Ok(CompletedWrite { record: WrittenRecord::from_replay(form, stored)?, replayed: true })
    }

    pub fn mark_replayed(&self, response: Response) -> Response {
        mark_replayed(response, self.replayed)
    }
}

pub fn mark_replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

pub fn see_other(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, header_value(path))]).into_response()
}

pub fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("paths of collections and tags are visible ASCII")
}
