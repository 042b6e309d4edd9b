//! The results of a batch: a status, headers and a body for each request.

use axum::response::Response;
use futures_util::StreamExt;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, VARY};
use serde_json::{Map, Value, json};

use trefoil_http::errors::problem::{Problem, RequestPart};
use trefoil_http::errors::render::problem_value;
use trefoil_model::error::PathSegment;

/// The results of a batch together have at most this many bytes.
const MAX_RESULT_BYTES: usize = 16 << 20;

/// How many bytes the results may still have.
pub struct ResultBudget(usize);

impl Default for ResultBudget {
    fn default() -> Self {
        ResultBudget(MAX_RESULT_BYTES)
    }
}

pub struct BatchResult {
    status: u16,
    headers: Map<String, Value>,
    pub(super) body: Value,
}

impl BatchResult {
    #[cfg(test)]
    pub(super) fn new(status: u16, body: Value) -> BatchResult {
        BatchResult { status, headers: Map::new(), body }
    }

    /// The result of a failed request that does not undo the others.
    pub fn from_problem(problem: &Problem, request_id: &str) -> BatchResult {
        let mut headers = header_map(problem.headers.iter().map(|(name, value)| (name, value)));
        headers.insert(CONTENT_TYPE.to_string(), "application/problem+json; charset=utf-8".into());
        BatchResult { status: problem.status.as_u16(), headers, body: problem_value(problem, request_id) }
    }

    /// The results in the response to a batch.
    pub fn stored(answer: &[u8]) -> Result<Vec<BatchResult>, Problem> {
        let stored: Vec<Value> = serde_json::from_slice(answer).map_err(Problem::internal)?;
        let read = |mut result: Value| {
            let status = result["status"].as_u64().and_then(|status| u16::try_from(status).ok());
            let body = result["body"].take();
            BatchResult { status: status.unwrap_or_default(), headers: Map::new(), body }
        };
        Ok(stored.into_iter().map(read).collect())
    }

    /// Reads a response to its end. The problem of one that failed is at its place in the batch.
    pub async fn read(
        mut response: Response,
        index: usize,
        budget: &mut ResultBudget,
    ) -> Result<BatchResult, Problem> {
        let status = response.status();
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            return Err(at_index(problem, index));
        }
        if status.is_client_error() || status.is_server_error() {
            return Err(at_index(Problem::from_status(status), index));
        }
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.unwrap_or_default().to_owned();
        if media_type.starts_with("text/event-stream") {
            let problem =
                Problem::bad_request("NOT_ACCEPTABLE", "a stream of events cannot be part of a batch");
            return Err(at_index(problem, index));
        }
        let without = [CONTENT_LENGTH, VARY];
        let headers = response.headers().iter().filter(|(name, _)| !without.contains(*name));
        let headers = header_map(headers);
        let mut bytes = Vec::new();
        let mut stream = response.into_body().into_data_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| at_index(Problem::internal(error), index))?;
            budget.0 = budget.0.checked_sub(chunk.len()).ok_or_else(|| {
                let detail = format!(
                    "the results of a batch may have at most {} MiB together; ask for less",
                    MAX_RESULT_BYTES >> 20
                );
                at_index(Problem::bad_request("LIMIT_EXCEEDED", detail), index)
            })?;
            bytes.extend_from_slice(&chunk);
        }
        let body = if bytes.is_empty() {
            Value::Null
        } else if media_type.contains("json") && !media_type.contains("ndjson") {
            serde_json::from_slice(&bytes).map_err(|error| at_index(Problem::internal(error), index))?
        } else {
            String::from_utf8_lossy(&bytes).into_owned().into()
        };
        Ok(BatchResult { status: status.as_u16(), headers, body })
    }

    pub fn is_error(&self) -> bool {
        StatusCode::from_u16(self.status)
            .is_ok_and(|status| status.is_client_error() || status.is_server_error())
    }
}

/// The problem of the request with this number; its violations point into the batch.
pub fn at_index(mut problem: Problem, index: usize) -> Problem {
    let is_body = problem.request_part == RequestPart::Body;
    for violation in problem.violations.iter_mut().filter(|_| is_body) {
        violation.path.splice(0..0, [PathSegment::Index(index), PathSegment::Field("body".to_owned())]);
    }
    problem.at_index(index)
}

fn header_map<'h>(
    headers: impl Iterator<Item = (&'h http::HeaderName, &'h http::HeaderValue)>,
) -> Map<String, Value> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.map(|(name, value)| (name.to_string(), text(value).into())).collect()
}

/// The response to a batch.
pub fn results_json(results: &[BatchResult]) -> Vec<u8> {
    let entry = |result: &BatchResult| json!({ "status": result.status, "headers": result.headers, "body": result.body });
    Value::from(results.iter().map(entry).collect::<Vec<_>>()).to_string().into_bytes()
}
