//! Records that are created: from a JSON object, many at once, from a form, or from nothing but a text.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, LOCATION};

use super::content::{Object, Sent, numbered};
use super::fields::{self, Deed, Fields};
use super::negotiate::Wanted;
use super::pairs::Pairs;
use super::query::Takes;
use super::read::closed;
use super::records::Ask;
use super::rows::{Form, Rows, Written};
use super::write::{Finished, in_json, mark, refusal, see_other, visible};
use crate::engine::{Done, Operation, Selection, answer_as};
use crate::error::{Error, Result};
use crate::faces::problem::{Problem, Voice};
use crate::faces::tags;
use crate::model::{Value, coerce};

impl Ask<'_> {
    /// A collection has no version that a write could be held to: its tags are those of one part in one form.
    pub async fn create(&self, bytes: &[u8]) -> Result<Response, Problem> {
        let is_field = |name: &str| fields::of_control(self.record(), name).is_some();
        let sent = self.place().read(self.headers(), bytes, is_field);
        let sent = sent.and_then(|sent| tags::allow(self.headers(), None).map(|()| sent));
        match sent.map_err(|problem| self.spoken(problem))? {
            Sent::Record(object) => self.create_one(object, bytes).await.map_err(in_json),
            Sent::Records(objects) => self.create_many(objects, bytes).await.map_err(in_json),
            Sent::Form(pairs) => self.create_by_form(&pairs, bytes).await,
            Sent::Text(text) => {
                self.create_by_text(text, bytes).await.map_err(|problem| problem.voice(Voice::Text))
            }
        }
    }

    async fn create_one(&self, object: Object, bytes: &[u8]) -> Result<Response, Problem> {
        let query = self.query(self.collection.record, Takes::Fields)?;
        let shape = self.shape(self.collection, &query);
        let operation = self.judged(object, Deed::Create, |fields| self.creation(fields, &shape.selection));
        let done =
            self.write(operation, Rows::new(&shape, Form::One), self.key(bytes)?).await.map_err(refusal)?;
        let location = format!("{}/{}", self.collection.path, done.written.id);
        let tag = shape.tag(done.written.version);
        let headers = [
            (CONTENT_TYPE, Wanted::Json.content_type()),
            (LOCATION, visible(&location)),
            (ETAG, visible(&tag)),
        ];
        Ok(done.marked((StatusCode::CREATED, headers, done.written.bytes.clone()).into_response()))
    }

    /// All or none; the answer is the records in the order they were sent.
    async fn create_many(&self, objects: Vec<Result<Object>>, bytes: &[u8]) -> Result<Response, Problem> {
        let query = self.query(self.collection.record, Takes::Fields)?;
        let shape = self.shape(self.collection, &query);
        let key = self.key(bytes)?;
        let mut wrong = 0;
        let judge = |object: Result<Object>| {
            if wrong == coerce::MOST {
                return Err(Error::Cancelled);
            }
            let judged = object.and_then(|object| {
                self.judged(object, Deed::Create, |fields| self.creation(fields, &shape.selection))
            });
            wrong += usize::from(judged.is_err());
            judged
        };
        let operations: Vec<Result<Operation>> = objects.into_iter().map(judge).collect();
        let rows = Rows::new(&shape, Form::Array);
        let (bytes, replayed) = match self.run(operations, rows, key).await? {
            Done::Replayed(bytes) => (Written::kept(&bytes)?.bytes, true),
            Done::Answered(answer) => {
                let (read, outcomes) = answer_as::<Rows>(answer)?.finish();
                let failures = outcomes.into_iter().filter_map(|(number, end)| Some((number, end.err()?)));
                let failures: Vec<_> = failures.collect();
                if !failures.is_empty() {
                    return Err(numbered(failures).into());
                }
                (read.bytes, false)
            }
        };
        let headers = [(CONTENT_TYPE, Wanted::Json.content_type())];
        let response = (StatusCode::CREATED, headers, closed(Form::Array, bytes)).into_response();
        Ok(mark(response, replayed))
    }

    async fn create_by_form(&self, pairs: &Pairs, bytes: &[u8]) -> Result<Response, Problem> {
        let fields = fields::of_form(self.record(), pairs);
        let done = self.create_quietly(fields, bytes).await?;
        Ok(done.marked(see_other(&self.collection.path)))
    }

    async fn create_by_text(&self, text: String, bytes: &[u8]) -> Result<Response, Problem> {
        let Some(texts) = &self.collection.texts else {
            return Err(Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        };
        let said = format!("Added: {text}\n");
        let blank = texts.list.blank.iter().map(|field| (*field, Value::from("")));
        let fields = std::iter::once((texts.list.field, Value::from(text))).chain(blank).collect();
        let done = self.create_quietly(fields, bytes).await?;
        let location = format!("{}/{}", self.collection.path, done.written.id);
        let headers = [(CONTENT_TYPE, Wanted::Lines.content_type()), (LOCATION, visible(&location))];
        Ok(done.marked((StatusCode::CREATED, headers, said).into_response()))
    }

    async fn create_quietly(&self, fields: Fields, bytes: &[u8]) -> Result<Finished, Problem> {
        let shape = &self.collection.whole;
        let operation = self.creation(fields, &shape.selection);
        self.write(Ok(operation), Rows::new(shape, Form::One), self.key(bytes)?).await.map_err(refusal)
    }

    fn creation(&self, fields: Fields, selection: &Arc<Selection>) -> Operation {
        Operation::Create { record: self.collection.record, id: None, fields, selection: selection.clone() }
    }
}
