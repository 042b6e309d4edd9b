//! One request for a collection: its path and query parsed, its operations run.

use std::sync::Arc;

use axum::response::Response;
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, VARY};
use http::request::Parts;

use trefoil_engine::{Engine, EngineRequest, IdempotencyKey, JobResult, Operation, Outcome};
use trefoil_http::errors::problem::Problem;
use trefoil_http::negotiation::format::{self, FormatChoice};
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, MissingItem, Result};
use trefoil_model::{FieldId, KeyForm, RecordId, RecordType, RecordTypeId};

use crate::ServedResources;
use crate::collection::{Collection, decode_segment, id_from_segment, readable_fields};
use crate::list_query::{ListQuery, ParamSet, included_relations, query_problem};
use crate::parsed_body::BodyKind;
use crate::record_shape::RecordShape;
use crate::row_writer::{EncodedRows, RowWriter};

/// A request for a collection or its records.
pub struct ResourceRequest<'a> {
    pub resources: &'a ServedResources,
    pub collection: &'a Collection,
    pub head: &'a Parts,
}

impl ResourceRequest<'_> {
    /// How the body of a POST to the collection is parsed.
    pub fn post_body_kind(&self) -> BodyKind {
        if self.collection.texts.is_some() { BodyKind::TextCollection } else { BodyKind::Collection }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    pub fn record(&self) -> &RecordType {
        self.resources.engine.model().record(self.collection.record)
    }

    /// Parses an id of the path; the record need not exist.
    pub fn parse_id(&self, text: &str) -> Result<RecordId, Problem> {
        self.parse_id_of(self.collection.record, text)
    }

    /// The same for the id of a nested record.
    pub fn parse_id_of(&self, record: RecordTypeId, text: &str) -> Result<RecordId, Problem> {
        let form = self.resources.engine.model().record(record).key_form();
        let malformed =
            |what| Problem::bad_request("MALFORMED_ID", format!("the id in the path must be {what}"));
        id_from_segment(form, text).map_err(|_| match form {
            KeyForm::Digits | KeyForm::Number => malformed("a 64-bit integer"),
            KeyForm::Uuid => malformed("a UUID"),
            // No record has such an id.
            KeyForm::Text => self.not_found(record, &RecordId::from(&*decode_segment(text))),
        })
    }

    /// The response format that the query of a list asks for.
    pub fn list_format_choice(&self) -> FormatChoice {
        format::chosen(&self.head.uri)
    }

    /// The same for one record, which has no parameter `format`.
    pub fn record_format_choice(&self) -> FormatChoice {
        if format::chooses_fields(&self.head.uri) { FormatChoice::Fields } else { FormatChoice::Unspecified }
    }

    pub async fn parse_query(&self, record: RecordTypeId, params: ParamSet) -> Result<ListQuery, Problem> {
        let engine = &self.resources.engine;
        let query = ListQuery::parse(
            &self.head.uri,
            engine.model(),
            engine.model().record(record),
            engine.limits(),
            params,
        )?;
        if let Some(view) = engine.access_view() {
            query.check_shown(engine.model(), view, record).map_err(query_problem)?;
        }
        self.check_included(&query, record, query.max_records()).await?;
        Ok(query)
    }

    /// Refuses an answer of so many records that would include too many related ones.
    pub async fn check_included(
        &self,
        query: &ListQuery,
        record: RecordTypeId,
        count: i64,
    ) -> Result<(), Problem> {
        let engine = &self.resources.engine;
        included_relations::check_cost(engine, record, &query.included, count).await.map_err(query_problem)
    }

    /// The shape with the fields and related records of the query.
    pub fn selected_shape(&self, collection: &Collection, query: &ListQuery) -> Arc<RecordShape> {
        let prepared = if query.all_fields { &collection.full_shape } else { &collection.stored_shape };
        let (engine, store) = (&self.resources.engine, &self.resources.store_id);
        let (model, record) = (engine.model(), collection.record);
        let owner = model.record(record);
        let is_whole = query.fields.is_none() && query.included.is_empty();
        if is_whole && readable_fields(owner).all(|field| self.shows_field(record, field)) {
            return prepared.clone();
        }
        let fields = query.fields.clone().unwrap_or_else(|| {
            readable_fields(owner)
                .filter(|field| query.all_fields || owner.field(*field).is_stored())
                .filter(|field| self.shows_field(record, *field))
                .collect()
        });
        let view = engine.access_view().map(Arc::as_ref);
        Arc::new(RecordShape::new((model, view), store, record, &fields, &query.included))
    }

    /// Of a record that was written but may not be read, only the id is shown.
    fn shows_field(&self, record: RecordTypeId, field: FieldId) -> bool {
        let engine = &self.resources.engine;
        engine.access_view().is_none()
            || engine.model().record(record).id_field() == field
            || (engine.may(AccessAction::Read, record) && engine.shows_field(record, field))
    }

    /// The tag of a version of a record, for those who see the same as the actor.
    pub fn etag(&self, shape: &RecordShape, version: i64, encoded: &[u8]) -> String {
        shape.etag(self.resources.engine.access_class(), version, encoded)
    }

    /// Runs operations that only read.
    pub async fn read_rows(
        &self,
        operations: Vec<Operation>,
        rows: RowWriter,
    ) -> Result<(EncodedRows, Vec<Outcome>)> {
        read_rows(&self.resources.engine, operations, rows).await
    }

    /// Runs operations in one transaction; replays the stored result of the idempotency key.
    pub async fn run_atomically(
        &self,
        operations: Vec<Result<Operation>>,
        rows: RowWriter,
        key: Option<IdempotencyKey>,
    ) -> Result<JobResult> {
        let request = EngineRequest { sink: Box::new(rows), idempotency_key: key, atomic: true };
        self.resources.engine.run(operations, request).await
    }

    /// Adds `Vary` and the collection's `Cache-Control`.
    pub fn with_negotiated_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(VARY, ACCEPT.into());
        if let Some(cache) = &self.collection.cache_control {
            headers.insert(CACHE_CONTROL, cache.clone());
        }
        response
    }

    /// The same, unless the page has its own `Cache-Control`.
    pub fn with_cache_headers(&self, response: Response) -> Response {
        if response.headers().contains_key(CACHE_CONTROL) {
            response
        } else {
            self.with_negotiated_headers(response)
        }
    }

    pub fn not_found(&self, record: RecordTypeId, id: &RecordId) -> Problem {
        self.not_found_error(record, id).into()
    }

    pub fn not_found_error(&self, record: RecordTypeId, id: &RecordId) -> Error {
        let type_name = self.resources.engine.model().record(record).label();
        Error::NotFound { what: MissingItem::Record { type_name, id: id.clone() }, hidden_by: None }
    }
}

pub async fn read_rows(
    engine: &Engine,
    operations: Vec<Operation>,
    rows: RowWriter,
) -> Result<(EncodedRows, Vec<Outcome>)> {
    let request = EngineRequest::new(Box::new(rows));
    let finished = engine.run(operations.into_iter().map(Ok).collect(), request).await?;
    let (encoded, outcomes) = finished.into_sink::<RowWriter>()?.finish();
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect::<Result<_>>()?;
    Ok((encoded, outcomes))
}
