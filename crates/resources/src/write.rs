//! Writes of one record, safely against lost updates and retries, whichever face asks.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{HeaderName, IF_NONE_MATCH, LOCATION};
use http::{HeaderValue, StatusCode};

use trefoil_engine::{
    IdempotencyKey, JobResult, MissingFields, Operation, Outcome, Selection, downcast_sink,
};
use trefoil_http::errors::problem::Problem;
use trefoil_http::{etags, idempotency};
use trefoil_model::error::{Error, Result};

use crate::body_text;
use crate::field_values::FieldValues;
use crate::record_shape::etag_version;
use crate::request::ResourceRequest;
use crate::row_writer::{RowEncoding, RowWriter, WrittenRecord};

const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// No record is ever at this version.
pub const IMPOSSIBLE_VERSION: i64 = i64::MIN;

impl ResourceRequest<'_> {
    pub fn create_operation(&self, fields: FieldValues, selection: &Arc<Selection>) -> Operation {
        let (record, selection) = (self.collection.record, selection.clone());
        Operation::Create { record, id: None, fields, selection }
    }

    /// Changes a record; `absent` says what becomes of the fields that are not given.
    pub fn update_operation(
        &self,
        id: i64,
        fields: FieldValues,
        absent: MissingFields,
        expected_version: Option<i64>,
    ) -> Operation {
        let (record, selection) = (self.collection.record, self.collection.full_shape.selection.clone());
        Operation::Update { record, id, fields, missing_fields: absent, expected_version, selection }
    }

    pub fn delete_operation(&self, id: i64, expected_version: Option<i64>) -> Operation {
        let (record, selection) = (self.collection.record, self.collection.full_shape.selection.clone());
        Operation::Delete { record, id, expected_version, selection }
    }

    /// Carries out a write; of the answer only the record's id and version count.
    pub async fn execute_write(
        &self,
        operation: Operation,
        key: Option<IdempotencyKey>,
    ) -> Result<CompletedWrite> {
        self.write_one(
            Ok(operation),
            RowWriter::new(&self.collection.full_shape, RowEncoding::SingleObject),
            key,
        )
        .await
    }

    /// The version that a write may meet, as If-Match and If-None-Match tell. One that may meet none goes to the store
    /// all the same: an earlier request with its key may have been answered, and that answer counts.
    pub async fn expected_version(&self, id: i64) -> Result<Option<i64>, Problem> {
        let listed = etags::expected_versions(self.headers(), etag_version);
        let unless = self.headers().contains_key(IF_NONE_MATCH);
        if let (None | Some([_]), false) = (listed.as_deref(), unless) {
            return Ok(listed.and_then(|listed| listed.first().copied()));
        }
        let fits = |found: &i64| {
            let included = listed.as_ref().is_none_or(|listed| listed.contains(found));
            included && !etags::excludes_version(self.headers(), *found, etag_version)
        };
        Ok(Some(self.current_version(id).await?.filter(fits).unwrap_or(IMPOSSIBLE_VERSION)))
    }

    /// None where there is no such record.
    async fn current_version(&self, id: i64) -> Result<Option<i64>, Problem> {
        let (record, shape) = (self.collection.record, &self.collection.full_shape);
        let operation = Operation::Get { record, id, selection: shape.selection.clone() };
        let (read, _) =
            self.read_rows(vec![operation], RowWriter::new(shape, RowEncoding::SingleObject)).await?;
        Ok(read.version)
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
        let named = operation.as_ref().ok().and_then(Operation::id);
        match self.run_atomically(vec![operation], rows, key).await? {
            JobResult::Replayed(bytes) => CompletedWrite::replayed(&bytes),
            JobResult::Completed(answer) => {
                let (read, mut outcomes) = downcast_sink::<RowWriter>(answer)?.finish();
                let outcome =
                    outcomes.pop().map_or_else(|| Err(Error::internal("no outcome")), |(_, end)| end)?;
                let (id, version) = match outcome {
                    Outcome::Created { id, version } | Outcome::Updated { id, version } => (id, version),
                    Outcome::Deleted { id } => (id, 0),
                    Outcome::NotFound => {
                        let id = named.ok_or_else(|| Error::internal("a creation found no record"))?;
                        return Err(self.no_record(self.collection.record, id));
                    }
                    other @ (Outcome::Found | Outcome::Listed { .. } | Outcome::PlainList { .. }) => {
                        return Err(Error::internal(format!("a write ended as {other:?}")));
                    }
                };
                Ok(CompletedWrite {
                    written: WrittenRecord { id, version, bytes: read.bytes },
                    replayed: false,
                })
            }
        }
    }
}

/// A version means nothing to people.
pub fn write_problem(error: Error) -> Problem {
    let is_stale = matches!(error, Error::Stale { .. });
    let problem = Problem::from(error);
    if !is_stale {
        return problem;
    }
    let detail = "the record is not at a version that If-Match or If-None-Match allows; read it again";
    Problem { detail: detail.to_owned(), ..problem }
}

/// A write, done now or by an earlier request with the same key.
pub struct CompletedWrite {
    pub written: WrittenRecord,
    replayed: bool,
}

impl CompletedWrite {
    /// What was kept under the key of an earlier request.
    pub fn replayed(kept: &[u8]) -> Result<CompletedWrite> {
        Ok(CompletedWrite { written: WrittenRecord::from_replay(kept)?, replayed: true })
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
