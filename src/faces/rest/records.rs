//! Records over HTTP: which method at which path does what, and what every answer about a record has in common.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, VARY};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use super::Served;
use super::collection::{Below, Collection};
use super::content::Place;
use super::negotiate::{FORM, Fields, Wanted};
use super::query::{Query, Takes};
use super::rows::{Read, Rows};
use super::shape::Shape;
use crate::engine::{Done, Key, Operation, Outcome, answer_as};
use crate::error::{Error, Result};
use crate::faces::problem::{Problem, method_not_allowed};
use crate::model::{RecordType, TypeId, naming};

/// One request about the records of a collection.
pub struct Ask<'a> {
    pub served: &'a Served,
    pub collection: &'a Collection,
    pub head: &'a Parts,
}

pub async fn answer(
    served: &Served,
    collection: &Collection,
    below: Below<'_>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    // Read in any case: a connection with unread bytes could not be used again.
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let body = body.map_err(|_| Problem::bad_request("MALFORMED_BODY", "the body ended early"));
    let ask = Ask { served, collection, head: &head };
    ask.answer(below, body).await.unwrap_or_else(IntoResponse::into_response)
}

impl Ask<'_> {
    async fn answer(&self, below: Below<'_>, body: Result<Bytes, Problem>) -> Result<Response, Problem> {
        let method = match &self.head.method {
            &Method::HEAD => &Method::GET,
            other => other,
        };
        match (method, below) {
            (&Method::OPTIONS, below) => Ok(self.options(below)),
            (&Method::GET, Below::List) => self.list().await,
            (&Method::GET, Below::Record(id)) => self.one(self.id(id)?).await,
            (&Method::GET, Below::Nested(id, nested)) => self.list_below(self.id(id)?, nested).await,
            (&Method::GET, Below::NestedRecord(id, nested, other)) => {
                self.one_below(self.id(id)?, nested, self.id(other)?).await
            }
            (&Method::GET, Below::New) => Err(self.form()),
            (&Method::GET, Below::Edit(id)) => self.id(id).and_then(|_| Err(self.form())),
            (&Method::POST, Below::List) => self.create(&body?).await,
            (&Method::POST | &Method::PUT, Below::Record(id)) => self.replace(self.id(id)?, &body?).await,
            (&Method::PATCH, Below::Record(id)) => self.patch(self.id(id)?, &body?).await,
            (&Method::DELETE, Below::Record(id)) => self.delete(self.id(id)?).await,
            (&Method::POST, Below::Delete(id)) => self.delete_by_form(self.id(id)?).await,
            (_, below) => Err(method_not_allowed(below.allow())),
        }
    }

    fn options(&self, below: Below<'_>) -> Response {
        let mut response = (StatusCode::NO_CONTENT, [(ALLOW, below.allow())]).into_response();
        let places = match below {
            Below::List => &[self.place()][..],
            Below::Record(_) => &[Place::Record, Place::Patch],
            Below::New | Below::Edit(_) | Below::Delete(_) | Below::Nested(..) | Below::NestedRecord(..) => {
                &[]
            }
        };
        response.headers_mut().extend(places.iter().map(|place| place.header()));
        response
    }

    /// Where a POST to the collection is read.
    pub fn place(&self) -> Place {
        if self.collection.texts.is_some() { Place::Texts } else { Place::Collection }
    }

    /// The forms to fill in are pages and nothing else.
    fn form(&self) -> Problem {
        match FORM.wanted(self.headers(), Fields::Unsaid) {
            Ok(_) => FORM.no_page(),
            Err(problem) => problem,
        }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    pub fn record(&self) -> &RecordType {
        self.served.engine.model().record(self.collection.record)
    }

    /// An id is a 64-bit integer, whether there is such a record or not.
    fn id(&self, text: &str) -> Result<i64, Problem> {
        let id = text.parse().ok().filter(|_| !text.starts_with('+'));
        id.ok_or_else(|| Problem::bad_request("MALFORMED_ID", "the id in the path must be a 64-bit integer"))
    }

    pub fn query(&self, record: TypeId, takes: Takes) -> Result<Query, Problem> {
        let engine = &self.served.engine;
        Query::read(&self.head.uri, engine.model().record(record), engine.limits(), takes)
    }

    /// The fields that a query asks for, all where it asks for none in particular.
    pub fn shape(&self, collection: &Collection, query: &Query) -> Arc<Shape> {
        match &query.fields {
            None => collection.whole.clone(),
            Some(fields) => {
                let (model, store) = (self.served.engine.model(), &self.served.store);
                Arc::new(Shape::of(model, store, collection.record, fields.clone()))
            }
        }
    }

    /// Runs operations that only read.
    pub async fn look(&self, operations: Vec<Operation>, rows: Rows) -> Result<(Read, Vec<Outcome>)> {
        look(&self.served.engine, operations, rows).await
    }

    /// Runs operations, all or nothing; what was kept under the key is given back as it was.
    pub async fn run(
        &self,
        operations: Vec<Result<Operation>>,
        rows: Rows,
        key: Option<Key>,
    ) -> Result<Done> {
        let request = crate::engine::Request { answer: Box::new(rows), key, atomic: true };
        self.served.engine.run(operations, request).await
    }

    /// What an answer that was negotiated has beside its body.
    pub fn negotiated(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(VARY, ACCEPT.into());
        if let Some(cache) = &self.collection.cache {
            headers.insert(CACHE_CONTROL, cache.clone());
        }
        response
    }

    pub fn missing(&self, record: TypeId, id: i64) -> Problem {
        let name = naming::label(&self.served.engine.model().record(record).name);
        Error::NotFound(format!("{name} {id}")).into()
    }
}

pub async fn look(
    engine: &crate::engine::Engine,
    operations: Vec<Operation>,
    rows: Rows,
) -> Result<(Read, Vec<Outcome>)> {
    let request = crate::engine::Request::new(Box::new(rows));
    match engine.run(operations.into_iter().map(Ok).collect(), request).await? {
        Done::Answered(answer) => {
            let (read, outcomes) = answer_as::<Rows>(answer)?.finish();
            let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect::<Result<_>>()?;
            Ok((read, outcomes))
        }
        Done::Replayed(_) => Err(Error::internal("a reading without a key was replayed")),
    }
}

/// Pages do not exist yet; what is not one is given.
pub fn no_page(wanted: Wanted, offers: super::negotiate::Offers) -> Result<Wanted, Problem> {
    match wanted {
        Wanted::Page => Err(offers.no_page()),
        other @ (Wanted::Json | Wanted::Lines | Wanted::Ndjson | Wanted::Events) => Ok(other),
    }
}
