//! One request about the records of a collection: what it names, read once, and how its operations are run.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, VARY};
use http::request::Parts;

use crate::Site;
use crate::collection::Collection;
use crate::list_query::{Query, Takes};
use crate::parsed_body::Place;
use crate::record_shape::Shape;
use crate::row_writer::{Read, Rows};
use trefoil_engine::{Done, Key, Operation, Outcome, answer_as};
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::format;
use trefoil_http::negotiation::format::Chosen;
use trefoil_model::error::{Error, Missing, Result};
use trefoil_model::naming::names;
use trefoil_model::{RecordType, TypeId};

/// One request about the records of a collection.
pub struct Ask<'a> {
    pub site: &'a Site,
    pub collection: &'a Collection,
    pub head: &'a Parts,
}

impl Ask<'_> {
    /// Where a POST to the collection is read.
    pub fn place(&self) -> Place {
        if self.collection.texts.is_some() { Place::Texts } else { Place::Collection }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    pub fn record(&self) -> &RecordType {
        self.site.engine.model().record(self.collection.record)
    }

    /// An id is a 64-bit integer, whether there is such a record or not.
    pub fn id(&self, text: &str) -> Result<i64, Problem> {
        let id = text.parse().ok().filter(|_| !text.starts_with('+'));
        id.ok_or_else(|| Problem::bad_request("MALFORMED_ID", "the id in the path must be a 64-bit integer"))
    }

    /// What the query of a list says of the form that it is wanted in.
    pub fn chosen(&self) -> Chosen {
        format::chosen(&self.head.uri)
    }

    /// The same for one record, which has no `format`.
    pub fn chosen_fields(&self) -> Chosen {
        if format::chooses_fields(&self.head.uri) { Chosen::Fields } else { Chosen::Nothing }
    }

    pub fn query(&self, record: TypeId, takes: Takes) -> Result<Query, Problem> {
        let engine = &self.site.engine;
        Query::read(&self.head.uri, engine.model().record(record), engine.limits(), takes)
    }

    /// The fields that a query asks for, all where it asks for none in particular.
    pub fn shape(&self, collection: &Collection, query: &Query) -> Arc<Shape> {
        match &query.fields {
            None => collection.whole.clone(),
            Some(fields) => {
                let (model, store) = (self.site.engine.model(), &self.site.store);
                Arc::new(Shape::of(model, store, collection.record, fields.clone()))
            }
        }
    }

    /// Runs operations that only read.
    pub async fn look(&self, operations: Vec<Operation>, rows: Rows) -> Result<(Read, Vec<Outcome>)> {
        look(&self.site.engine, operations, rows).await
    }

    /// Runs operations, all or nothing; what was kept under the key is given back as it was.
    pub async fn run(
        &self,
        operations: Vec<Result<Operation>>,
        rows: Rows,
        key: Option<Key>,
    ) -> Result<Done> {
        let request = trefoil_engine::Request { answer: Box::new(rows), key, atomic: true };
        self.site.engine.run(operations, request).await
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

    /// A page that may be kept as the collection says, unless it must not be kept at all.
    pub fn kept(&self, response: Response) -> Response {
        if response.headers().contains_key(CACHE_CONTROL) { response } else { self.negotiated(response) }
    }

    pub fn missing(&self, record: TypeId, id: i64) -> Problem {
        self.no_record(record, id).into()
    }

    pub fn no_record(&self, record: TypeId, id: i64) -> Error {
        let type_name = names::label(&self.site.engine.model().record(record).name);
        Error::NotFound { what: Missing::Record { type_name, id } }
    }
}

pub async fn look(
    engine: &trefoil_engine::Engine,
    operations: Vec<Operation>,
    rows: Rows,
) -> Result<(Read, Vec<Outcome>)> {
    let request = trefoil_engine::Request::new(Box::new(rows));
    match engine.run(operations.into_iter().map(Ok).collect(), request).await? {
        Done::Answered(answer) => {
            let (read, outcomes) = answer_as::<Rows>(answer)?.finish();
            let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect::<Result<_>>()?;
            Ok((read, outcomes))
        }
        Done::Replayed(_) => Err(Error::internal("a reading without a key was replayed")),
    }
}
