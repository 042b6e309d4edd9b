//! Records that are replaced, patched and deleted, safely against lost updates and retries.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};

use super::patch;
use crate::engine::{Absent, Operation};
use crate::error::{Error, Result};
use crate::faces::problem::{Problem, Voice};
use crate::faces::resources::ask::Ask;
use crate::faces::resources::content::{self, Object};
use crate::faces::resources::fields::{self, Deed, Fields};
use crate::faces::resources::negotiate::Wanted;
use crate::faces::resources::query::Takes;
use crate::faces::resources::rows::{Form, Rows};
use crate::faces::resources::shape::Shape;
use crate::faces::resources::write::{Finished, NEVER, visible};
use crate::model::coerce;

/// How often a patch is merged anew because somebody else was quicker.
const TRIES: usize = 8;

impl Ask<'_> {
    /// PUT, and POST to a record: both overwrite the whole of it.
    pub async fn replace(&self, id: i64, object: Object, bytes: &[u8]) -> Result<Response, Problem> {
        let changed = self.changed(Deed::Replace(id), object, Absent::Reset, bytes).await;
        changed.map_err(|problem| self.refused(bytes, problem))
    }

    /// JSON Merge Patch.
    pub async fn patch(&self, id: i64, object: Object, bytes: &[u8]) -> Result<Response, Problem> {
        let deed = Deed::Change(id);
        let patched = if patch::reaches_inside(self.record(), &object) {
            self.merged(id, object, bytes).await
        } else {
            self.changed(deed, object, Absent::Keep, bytes).await
        };
        patched.map_err(|problem| self.refused(bytes, problem))
    }

    /// Why a body of JSON is refused, with the names that are in it.
    pub fn refused(&self, bytes: &[u8], problem: Problem) -> Problem {
        in_json(content::as_sent(self.record(), bytes, problem))
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
        let found = self.site.engine.collect(operation, selection.clone()).await?;
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

    /// For clients that take nothing but JSON: nothing is left to show.
    pub async fn delete(&self, id: i64) -> Result<Response, Problem> {
        self.query(self.collection.record, Takes::Nothing)?;
        let expected = self.expected(id).await?;
        let done = self.carry_out(self.deletion(id, expected), self.key(b"")?).await;
        Ok(done.map_err(|error| self.refusal(id, error))?.marked(StatusCode::NO_CONTENT.into_response()))
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
            violations.extend(self.site.engine.violations(operation));
        }
        Err(Error::Invalid(violations))
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

/// Whoever sends JSON reads it.
pub fn in_json(problem: Problem) -> Problem {
    problem.voice(Voice::Json)
}
