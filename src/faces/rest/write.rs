//! Records that are replaced, patched and deleted, safely against lost updates and retries.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};

use super::patch;
use crate::engine::{Absent, Key, Operation};
use crate::error::{Error, Result};
use crate::faces::problem::{Problem, Voice};
use crate::faces::resources::ask::Ask;
use crate::faces::resources::content::{self, Object};
use crate::faces::resources::fields::{self, Deed, Fields};
use crate::faces::resources::negotiate::Wanted;
use crate::faces::resources::query::Takes;
use crate::faces::resources::rows::{Form, Rows};
use crate::faces::resources::shape::Shape;
use crate::faces::resources::write::{Finished, refusal, visible};
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
        let (key, shape) = (self.key(bytes)?, self.wanted_shape()?);
        // Merged with what is there by now it could be one that cannot be carried out any more.
        if let Some(key) = &key
            && let Some(kept) = self.site.engine.replay(key).await?
        {
            return Ok(changed_to(&Finished::replayed(&kept)?, &shape));
        }
        let expected = self.expected(id).await?;
        let mut tries = 1;
        let done = loop {
            match self.merge_once(id, object.clone(), expected, &shape, key.clone()).await {
                Err(Error::Stale { .. }) if expected.is_none() && tries < TRIES => tries += 1,
                done => break done,
            }
        };
        Ok(changed_to(&done.map_err(refusal)?, &shape))
    }

    async fn merge_once(
        &self,
        id: i64,
        object: Object,
        expected: Option<i64>,
        shape: &Arc<Shape>,
        key: Option<Key>,
    ) -> Result<Finished> {
        let (record, selection) = (self.collection.record, &self.collection.whole.selection);
        let operation = Operation::Get { record, id, selection: selection.clone() };
        let found = self.site.engine.collect(operation, selection.clone()).await?;
        let row = found.rows.first().ok_or_else(|| self.no_record(record, id))?;
        let version = self.collection.whole.version(row);
        let version = version.ok_or_else(|| Error::internal("a record has no readable version"))?;
        let merged = patch::merge(self.record(), selection, row, object);
        let change = Change { id, absent: Absent::Keep, expected: Some(expected.unwrap_or(version)) };
        self.update(&change, Deed::Change(id), merged, shape, key).await
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
        let (shape, key) = (self.wanted_shape()?, self.key(bytes)?);
        let done = self.update(&change, deed, object, &shape, key).await;
        Ok(changed_to(&done.map_err(refusal)?, &shape))
    }

    /// The fields that the answer to a change has.
    fn wanted_shape(&self) -> Result<Arc<Shape>, Problem> {
        let query = self.query(self.collection.record, Takes::Fields)?;
        Ok(self.shape(self.collection, &query))
    }

    async fn update(
        &self,
        change: &Change,
        deed: Deed,
        object: Object,
        shape: &Arc<Shape>,
        key: Option<Key>,
    ) -> Result<Finished> {
        let operation = self.judged(object, deed, |fields| change.operation(self, fields, shape));
        self.write(operation, Rows::new(shape, Form::One), key).await
    }

    /// For clients that take nothing but JSON: nothing is left to show.
    pub async fn delete(&self, id: i64) -> Result<Response, Problem> {
        self.query(self.collection.record, Takes::Nothing)?;
        let expected = self.expected(id).await?;
        let done = self.carry_out(self.deletion(id, expected), self.key(b"")?).await;
        Ok(done.map_err(refusal)?.marked(StatusCode::NO_CONTENT.into_response()))
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

/// The record as a change left it.
fn changed_to(done: &Finished, shape: &Shape) -> Response {
    let tag = shape.tag(done.written.version);
    let headers = [(CONTENT_TYPE, Wanted::Json.content_type()), (ETAG, visible(&tag))];
    done.marked((headers, done.written.bytes.clone()).into_response())
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
