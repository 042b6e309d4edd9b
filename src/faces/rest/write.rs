//! Records that are replaced, patched and deleted, safely against lost updates and retries.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION};
use http::{HeaderValue, StatusCode};

use super::content::{Object, Place, Sent};
use super::fields::{self, Deed, Fields};
use super::negotiate::{Wanted, wants_no_content};
use super::query::Takes;
use super::records::Ask;
use super::rows::{Form, Rows, Written};
use super::shape::{Shape, tagged_version};
use super::{body, patch};
use crate::engine::{Absent, Done, Key, Operation, Outcome, answer_as};
use crate::error::{Error, Result};
use crate::faces::problem::{Problem, Voice};
use crate::faces::{idempotency, tags};
use crate::model::coerce;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// No record is ever at this version.
const NEVER: i64 = i64::MIN;

/// How often a patch is merged anew because somebody else was quicker.
const TRIES: usize = 8;

impl Ask<'_> {
    /// PUT, and POST to a record: both overwrite the whole of it.
    pub async fn replace(&self, id: i64, bytes: &[u8]) -> Result<Response, Problem> {
        let sent = Place::Record.read(self.headers(), bytes, |_| true);
        match sent.map_err(|problem| self.spoken(problem))? {
            Sent::Form(pairs) => {
                let (shape, expected) = (&self.collection.whole, self.expected(id).await?);
                let change = Change { id, absent: Absent::Reset, expected };
                let operation = change.operation(self, fields::of_form(self.record(), &pairs), shape);
                let done = self.update(id, Ok(operation), shape, bytes).await?;
                Ok(done.marked(see_other(&format!("{}/{id}", self.collection.path))))
            }
            Sent::Record(object) => {
                self.changed(Deed::Replace(id), object, Absent::Reset, bytes).await.map_err(in_json)
            }
            Sent::Records(_) | Sent::Text(_) => Err(Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
        }
    }

    /// JSON Merge Patch.
    pub async fn patch(&self, id: i64, bytes: &[u8]) -> Result<Response, Problem> {
        let sent = Place::Patch.read(self.headers(), bytes, |_| true);
        let Sent::Record(object) = sent.map_err(|problem| self.spoken(problem))? else {
            return Err(Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        };
        let deed = Deed::Change(id);
        if !patch::reaches_inside(self.record(), &object) {
            return self.changed(deed, object, Absent::Keep, bytes).await.map_err(in_json);
        }
        self.merged(id, object, bytes).await.map_err(in_json)
    }

    /// A patch of what is inside a field depends on what is there: merged with it, and written only over that.
    async fn merged(&self, id: i64, object: Object, bytes: &[u8]) -> Result<Response, Problem> {
        // Merged with what is there by now it could be another request, or one that cannot be carried out.
        if self.key(bytes)?.is_some() {
            let nothing = Change { id, absent: Absent::Keep, expected: Some(NEVER) };
            match self.respond(nothing, Deed::Change(id), Object::new(), bytes).await {
                Err(problem) if problem.status == StatusCode::PRECONDITION_FAILED => {}
                answered => return answered,
            }
        }
        let expected = self.expected(id).await?;
        for _ in 1..TRIES {
            let answered = self.merge_once(id, object.clone(), expected, bytes).await;
            match answered {
                Err(problem) if problem.status == StatusCode::PRECONDITION_FAILED && expected.is_none() => {}
                answered => return answered,
            }
        }
        self.merge_once(id, object, expected, bytes).await
    }

    async fn merge_once(
        &self,
        id: i64,
        object: Object,
        expected: Option<i64>,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let (record, selection) = (self.collection.record, &self.collection.whole.selection);
        let operation = Operation::Get { record, id, selection: selection.clone() };
        let found = self.served.engine.collect(operation, selection.clone()).await?;
        let row = found.rows.first().ok_or_else(|| self.missing(record, id))?;
        let version = self.collection.whole.version(row);
        let version = version.ok_or_else(|| Error::internal("a record has no readable version"))?;
        let merged = patch::merge(self.record(), selection, row, object);
        let change = Change { id, absent: Absent::Keep, expected: Some(expected.unwrap_or(version)) };
        self.respond(change, Deed::Change(id), merged, bytes).await
    }

    async fn changed(
        &self,
        deed: Deed,
        object: Object,
        absent: Absent,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let (Deed::Replace(id) | Deed::Change(id)) = deed else {
            return Err(Error::internal("a creation changes nothing").into());
        };
        let change = Change { id, absent, expected: self.expected(id).await? };
        self.respond(change, deed, object, bytes).await
    }

    async fn respond(
        &self,
        change: Change,
        deed: Deed,
        object: Object,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let query = self.query(self.collection.record, Takes::Fields)?;
        let shape = self.shape(self.collection, &query);
        let operation = self.judged(object, deed, |fields| change.operation(self, fields, &shape));
        let done = self.update(change.id, operation, &shape, bytes).await?;
        let tag = shape.tag(done.written.version);
        let headers = [(CONTENT_TYPE, Wanted::Json.content_type()), (ETAG, visible(&tag))];
        Ok(done.marked((headers, done.written.bytes.clone()).into_response()))
    }

    async fn update(
        &self,
        id: i64,
        operation: Result<Operation>,
        shape: &Arc<Shape>,
        bytes: &[u8],
    ) -> Result<Finished, Problem> {
        let done = self.write(operation, Rows::new(shape, Form::One), self.key(bytes)?).await;
        done.map_err(|error| self.refusal(id, error))
    }

    pub async fn delete(&self, id: i64) -> Result<Response, Problem> {
        self.query(self.collection.record, Takes::Nothing)?;
        let done = self.deletion(id).await?;
        let response = if wants_no_content(self.headers()) {
            StatusCode::NO_CONTENT.into_response()
        } else {
            see_other(&self.collection.path)
        };
        Ok(done.marked(response))
    }

    pub async fn delete_by_form(&self, id: i64) -> Result<Response, Problem> {
        Ok(self.deletion(id).await?.marked(see_other(&self.collection.path)))
    }

    async fn deletion(&self, id: i64) -> Result<Finished, Problem> {
        let shape = &self.collection.whole;
        let (record, selection) = (self.collection.record, shape.selection.clone());
        let expected_version = self.expected(id).await?;
        let operation = Operation::Delete { record, id, expected_version, selection };
        let done = self.write(Ok(operation), Rows::new(shape, Form::One), self.key(b"")?).await;
        done.map_err(|error| self.refusal(id, error))
    }

    /// What cannot even be read is told in the form that it was sent in.
    pub fn spoken(&self, problem: Problem) -> Problem {
        if body::essence(self.headers()).contains("json") { in_json(problem) } else { problem }
    }

    /// The operation that an object asks for, or what is wrong with its names and its values.
    pub fn judged(
        &self,
        object: Object,
        deed: Deed,
        operation: impl FnOnce(Fields) -> Operation,
    ) -> Result<Operation> {
        let (fields, mut violations) = fields::of_object(self.record(), object, deed);
        let operation = operation(fields);
        if violations.is_empty() {
            return Ok(operation);
        }
        // Where no more names were read, what looks absent may only be unread.
        if violations.len() < coerce::MOST {
            violations.extend(self.served.engine.violations(operation));
        }
        Err(Error::Invalid(violations))
    }

    /// The version that a write may meet, as If-Match and If-None-Match tell. One that may meet none goes to the store
    /// all the same: an earlier request with its key may have been answered, and that answer counts.
    async fn expected(&self, id: i64) -> Result<Option<i64>, Problem> {
        let listed = tags::expected(self.headers(), tagged_version);
        let unless = self.headers().contains_key(IF_NONE_MATCH);
        if let (None | Some([_]), false) = (listed.as_deref(), unless) {
            return Ok(listed.and_then(|listed| listed.first().copied()));
        }
        let fits = |found: &i64| {
            let included = listed.as_ref().is_none_or(|listed| listed.contains(found));
            included && !tags::excludes(self.headers(), *found, tagged_version)
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
        let target = format!("{} {} {}", self.head.method, self.head.uri, body::essence(self.headers()));
        idempotency::key(self.headers(), &target, bytes)
    }

    pub async fn write(
        &self,
        operation: Result<Operation>,
        rows: Rows,
        key: Option<Key>,
    ) -> Result<Finished> {
        match self.run(vec![operation], rows, key).await? {
            Done::Replayed(bytes) => Ok(Finished { written: Written::kept(&bytes)?, replayed: true }),
            Done::Answered(answer) => {
                let (read, mut outcomes) = answer_as::<Rows>(answer)?.finish();
                let outcome =
                    outcomes.pop().map_or_else(|| Err(Error::internal("no outcome")), |(_, end)| end)?;
                let (id, version) = match outcome {
                    Outcome::Created { id, version } | Outcome::Updated { id, version } => (id, version),
                    Outcome::Deleted { id } => (id, 0),
                    Outcome::Missing => return Err(Error::NotFound(String::new())),
                    other @ (Outcome::Found | Outcome::Listed { .. } | Outcome::Plain { .. }) => {
                        return Err(Error::internal(format!("a write ended as {other:?}")));
                    }
                };
                Ok(Finished { written: Written { id, version, bytes: read.bytes }, replayed: false })
            }
        }
    }

    fn refusal(&self, id: i64, error: Error) -> Problem {
        let is_missing = matches!(&error, Error::NotFound(what) if what.is_empty());
        if is_missing { self.missing(self.collection.record, id) } else { refusal(error) }
    }
}

/// What is to happen to a record, but for its fields.
struct Change {
    id: i64,
    absent: Absent,
    expected: Option<i64>,
}

impl Change {
    fn operation(&self, ask: &Ask<'_>, fields: Fields, shape: &Shape) -> Operation {
        Operation::Update {
            record: ask.collection.record,
            id: self.id,
            fields,
            absent: self.absent,
            expected_version: self.expected,
            selection: shape.selection.clone(),
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

/// Whoever sends JSON reads it.
pub fn in_json(problem: Problem) -> Problem {
    problem.voice(Voice::Json)
}

/// A write, done now or by an earlier request with the same key.
pub struct Finished {
    pub written: Written,
    replayed: bool,
}

impl Finished {
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
