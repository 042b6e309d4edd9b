//! Runs a batch: each of its requests by the handler of its path, all in one transaction or each by itself.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use trefoil_engine::{AskedWrites, Engine, TransactionEnd, TransactionResult};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::idempotency::{self, IDEMPOTENCY_KEY};
use trefoil_http::rate_limit::ClientMeter;
use trefoil_resources::ServedResources;
use trefoil_resources::collection::SubPath;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::mark_replayed;
use trefoil_rest::batch::{BATCH_PATH, BatchRequest, BatchResult, ResultBudget, at_index, results_json};
use trefoil_rest::plain_lists;

use super::resource_router::{MatchedResource, ResourceState};

impl ResourceState {
    pub(crate) async fn handle_batch(&self, head: &Parts, body: &Bytes, client: &ClientInfo) -> Response {
        let answer = self.run_batch(head, body, client).await;
        answer.unwrap_or_else(|problem| problem.with_format(ErrorFormat::Json).into_response())
    }

    async fn run_batch(&self, head: &Parts, body: &Bytes, client: &ClientInfo) -> Result<Response, Problem> {
        let catalog = &*self.catalog.for_actor(|| client.actor());
        let batch = BatchRequest::parse(head, body, self.max_batch)?;
        // The batch itself has been counted as one.
        if let Some(meter) = head.extensions.get::<ClientMeter>() {
            batch.items.iter().skip(1).try_for_each(|_| meter.take_request())?;
        }
        if !batch.is_atomic {
            return Ok(json_response(self.run_each(catalog, head, &batch, client).await, false));
        }
        let target = format!("POST {BATCH_PATH} {}", head.uri.query().unwrap_or_default());
        let key = idempotency::idempotency_key(&head.headers, &target, body)?;
        let work = async |engine| {
            let resources = catalog.with_engine(engine);
            match self.run_all(&resources, &batch, client).await {
                Ok(answer) => TransactionEnd::Commit { result: Ok(answer.clone()), answer },
                Err(problem) => TransactionEnd::RollBack(Err(problem)),
            }
        };
        match catalog.engine.run_in_transaction(key, work).await? {
            TransactionResult::Ended(answer) => Ok(json_response(answer?, false)),
            TransactionResult::Replayed(answer) => {
                if catalog.engine.access_view().is_some() {
                    self.ask_again(catalog, &batch, &answer, client).await?;
                }
                Ok(json_response(answer, true))
            }
        }
    }

    /// Refuses a batch that was answered before, if its actor could not do now what it asks for, or if that cannot be told.
    /// What it expected of versions was so when it was answered.
    async fn ask_again(
        &self,
        catalog: &ServedResources,
        batch: &BatchRequest,
        answer: &[u8],
        client: &ClientInfo,
    ) -> Result<(), Problem> {
        let results = BatchResult::stored(answer)?;
        let asked = AskedWrites::default();
        let asking = |engine: Engine| catalog.with_engine(engine.asking_again(&asked));
        let (resources, all) = (asking(catalog.engine.clone()), asking(catalog.engine.as_operator()));
        for (index, item) in batch.items.iter().enumerate() {
            // What it refers to is in the answer.
            let (mut head, body) =
                item.resolve(index, &results).map_err(|problem| problem.at_index(index))?;
            [IF_MATCH, IF_NONE_MATCH].iter().for_each(|name| drop(head.headers.remove(name)));
            let ended = async |resources: &ServedResources| {
                let reply = self.run_item(resources, head.clone(), body.clone(), client).await;
                AskedEnd::new(&reply, &asked)
            };
            match ended(&resources).await {
                AskedEnd::Allowed => {}
                AskedEnd::Refused(problem) => return Err(at_index(problem, index)),
                AskedEnd::Missing(problem) => match ended(&all).await {
                    // A record that is gone has no rules.
                    AskedEnd::Missing(_) => {}
                    AskedEnd::Allowed | AskedEnd::Refused(_) => return Err(at_index(problem, index)),
                },
            }
        }
        Ok(())
    }

    /// The results of all requests, or the problem of the first that failed.
    async fn run_all(
        &self,
        resources: &ServedResources,
        batch: &BatchRequest,
        client: &ClientInfo,
    ) -> Result<Vec<u8>, Problem> {
        let (mut results, mut budget) = (Vec::with_capacity(batch.items.len()), ResultBudget::default());
        for (index, item) in batch.items.iter().enumerate() {
            let (head, body) = item.resolve(index, &results).map_err(|problem| problem.at_index(index))?;
            let response = self.run_item(resources, head, body, client).await;
            results.push(BatchResult::read(response, index, &mut budget).await?);
        }
        Ok(results_json(&results))
    }

    /// The results of all requests; each succeeds or fails on its own. The idempotency key of each is that of the batch
    /// with its number.
    async fn run_each(
        &self,
        resources: &ServedResources,
        batch_head: &Parts,
        batch: &BatchRequest,
        client: &ClientInfo,
    ) -> Vec<u8> {
        let (mut results, mut budget) = (Vec::with_capacity(batch.items.len()), ResultBudget::default());
        let request_id = client.request.as_ref().map(|id| id.as_str()).unwrap_or_default();
        let key = batch_head.headers.get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok());
        for (index, item) in batch.items.iter().enumerate() {
            let result = match item.resolve(index, &results) {
                Ok((mut head, body)) => {
                    let own_key = key.filter(|_| item.is_write()).map(|key| format!("{key}/{index}"));
                    if let Some(own_key) = own_key.and_then(|key| HeaderValue::try_from(key).ok()) {
                        head.headers.insert(IDEMPOTENCY_KEY, own_key);
                    }
                    let response = self.run_item(resources, head, body, client).await;
                    BatchResult::read(response, index, &mut budget).await
                }
                Err(problem) => Err(problem.at_index(index)),
            };
            results.push(result.unwrap_or_else(|problem| BatchResult::from_problem(&problem, request_id)));
        }
        results_json(&results)
    }

    async fn run_item(
        &self,
        resources: &ServedResources,
        mut head: Parts,
        body: Bytes,
        client: &ClientInfo,
    ) -> Response {
        head.extensions.insert(client.clone());
        let path = head.uri.path().to_owned();
        match self.match_path(&path) {
            Some(MatchedResource::Records(collection, sub_path)) if is_in_batch(sub_path) => {
                let request = ResourceRequest { resources, collection, head: &head };
                let handled = Box::pin(self.handle_records(&request, sub_path, Ok(body))).await;
                handled.unwrap_or_else(IntoResponse::into_response)
            }
            Some(MatchedResource::List(list)) => {
                plain_lists::respond(resources, list, None, &head, Ok(body)).await
            }
            Some(MatchedResource::ListValue(list, index)) => {
                plain_lists::respond(resources, list, Some(index), &head, Ok(body)).await
            }
            Some(MatchedResource::Records(..) | MatchedResource::Text(_)) | None => {
                let detail =
                    format!("{path:?} is not the path of records or of a plain list, which a batch is for");
                Problem::new(StatusCode::NOT_FOUND, "NOT_FOUND", detail).into_response()
            }
        }
    }
}

/// How a request of a batch ended that was asked about again.
enum AskedEnd {
    /// It was answered, or its write would be allowed.
    Allowed,
    /// There is no such record in sight.
    Missing(Problem),
    Refused(Problem),
}

impl AskedEnd {
    fn new(reply: &Response, asked: &AskedWrites) -> AskedEnd {
        let status = reply.status();
        let is_failure = status.is_client_error() || status.is_server_error();
        if asked.take_allowed() || !is_failure {
            return AskedEnd::Allowed;
        }
        let problem = reply.extensions().get::<Problem>().cloned();
        let problem = problem.unwrap_or_else(|| Problem::from_status(status));
        if status == StatusCode::NOT_FOUND { AskedEnd::Missing(problem) } else { AskedEnd::Refused(problem) }
    }
}

/// False for the pages of a collection.
fn is_in_batch(sub_path: SubPath<'_>) -> bool {
    match sub_path {
        SubPath::List | SubPath::Record(_) | SubPath::Nested(..) | SubPath::NestedRecord(..) => true,
        SubPath::New | SubPath::Summary | SubPath::Edit(_) | SubPath::Delete(_) => false,
    }
}

fn json_response(bytes: Vec<u8>, replayed: bool) -> Response {
    let content_type = HeaderValue::from_static("application/json; charset=utf-8");
    mark_replayed(([(CONTENT_TYPE, content_type)], bytes).into_response(), replayed)
}
