//! Writes of one record, safely against lost updates and retries, whichever face asks.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{HeaderName, IF_NONE_MATCH, LOCATION};
use http::{HeaderValue, StatusCode};

use crate::body_text;
use crate::field_values::Fields;
use crate::record_shape::tagged_version;
use crate::request::Ask;
use crate::row_writer::{Form, Rows, Written};
use trefoil_engine::{Absent, Done, Key, Operation, Outcome, Selection, answer_as};
use trefoil_http::errors::problem::Problem;
use trefoil_http::{etags, idempotency};
use trefoil_model::error::{Error, Result};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// No record is ever at this version.
pub const NEVER: i64 = i64::MIN;

impl Ask<'_> {
    pub fn creation(&self, fields: Fields, selection: &Arc<Selection>) -> Operation {
        let (record, selection) = (self.collection.record, selection.clone());
        Operation::Create { record, id: None, fields, selection }
    }

    /// Changes a record; `absent` says what becomes of the fields that are not given.
    pub fn change(
        &self,
        id: i64,
        fields: Fields,
        absent: Absent,
        expected_version: Option<i64>,
    ) -> Operation {
        let (record, selection) = (self.collection.record, self.collection.whole.selection.clone());
        Operation::Update { record, id, fields, absent, expected_version, selection }
    }

    pub fn deletion(&self, id: i64, expected_version: Option<i64>) -> Operation {
        let (record, selection) = (self.collection.record, self.collection.whole.selection.clone());
        Operation::Delete { record, id, expected_version, selection }
    }

    /// Carries out a write; of the answer only the record's id and version count.
    pub async fn carry_out(&self, operation: Operation, key: Option<Key>) -> Result<Finished> {
        self.write(Ok(operation), Rows::new(&self.collection.whole, Form::One), key).await
    }

    /// The version that a write may meet, as If-Match and If-None-Match tell. One that may meet none goes to the store
    /// all the same: an earlier request with its key may have been answered, and that answer counts.
    pub async fn expected(&self, id: i64) -> Result<Option<i64>, Problem> {
        let listed = etags::expected(self.headers(), tagged_version);
        let unless = self.headers().contains_key(IF_NONE_MATCH);
        if let (None | Some([_]), false) = (listed.as_deref(), unless) {
            return Ok(listed.and_then(|listed| listed.first().copied()));
        }
        let fits = |found: &i64| {
            let included = listed.as_ref().is_none_or(|listed| listed.contains(found));
            included && !etags::excludes(self.headers(), *found, tagged_version)
        };
        Ok(Some(self.version(id).await?.filter(fits).unwrap_or(NEVER)))
    }

    /// None where there is no such record.
    async fn version(&self, id: i64) -> Result<Option<i64>, Problem> {
        let (record, shape) = (self.collection.record, &self.collection.whole);
        let operation = Operation::Get { record, id, selection: shape.selection.clone() };
        let (read, _) = self.look(vec![operation], Rows::new(shape, Form::One)).await?;
        Ok(read.version)
    }

    pub fn key(&self, bytes: &[u8]) -> Result<Option<Key>, Problem> {
        let target = format!("{} {} {}", self.head.method, self.head.uri, body_text::essence(self.headers()));
        idempotency::key(self.headers(), &target, bytes)
    }

    pub async fn write(
        &self,
        operation: Result<Operation>,
        rows: Rows,
        key: Option<Key>,
    ) -> Result<Finished> {
        let named = operation.as_ref().ok().and_then(Operation::id);
        match self.run(vec![operation], rows, key).await? {
            Done::Replayed(bytes) => Finished::replayed(&bytes),
            Done::Answered(answer) => {
                let (read, mut outcomes) = answer_as::<Rows>(answer)?.finish();
                let outcome =
                    outcomes.pop().map_or_else(|| Err(Error::internal("no outcome")), |(_, end)| end)?;
                let (id, version) = match outcome {
                    Outcome::Created { id, version } | Outcome::Updated { id, version } => (id, version),
                    Outcome::Deleted { id } => (id, 0),
                    Outcome::Missing => {
                        let id = named.ok_or_else(|| Error::internal("a creation found no record"))?;
                        return Err(self.no_record(self.collection.record, id));
                    }
                    other @ (Outcome::Found | Outcome::Listed { .. } | Outcome::Plain { .. }) => {
                        return Err(Error::internal(format!("a write ended as {other:?}")));
                    }
                };
                Ok(Finished { written: Written { id, version, bytes: read.bytes }, replayed: false })
            }
        }
    }
}

/// A version means nothing to people.
pub fn refusal(error: Error) -> Problem {
    let is_stale = matches!(error, Error::Stale { .. });
    let problem = Problem::from(error);
    if !is_stale {
        return problem;
    }
    let detail = "the record is not at a version that If-Match or If-None-Match allows; read it again";
    Problem { detail: detail.to_owned(), ..problem }
}

/// A write, done now or by an earlier request with the same key.
pub struct Finished {
    pub written: Written,
    replayed: bool,
}

impl Finished {
    /// What was kept under the key of an earlier request.
    pub fn replayed(kept: &[u8]) -> Result<Finished> {
        Ok(Finished { written: Written::kept(kept)?, replayed: true })
    }

    pub fn marked(&self, response: Response) -> Response {
        mark(response, self.replayed)
    }
}

pub fn mark(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

pub fn see_other(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, visible(path))]).into_response()
}

pub fn visible(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("paths of collections and tags are visible ASCII")
}
