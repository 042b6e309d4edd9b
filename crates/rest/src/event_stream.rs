//! The server-sent event stream of a collection: its changes, resumable by `Last-Event-ID`, after a snapshot on request.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::header::CONTENT_TYPE;
use tokio::time::Interval;

use trefoil_engine::changes::{FeedGeneration, image_cell};
use trefoil_engine::{ChangeBatch, ChangeFeed, ChangeKind, Engine, RecordChange, Row};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::error_log::{LogScope, StreamEnd};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::monitoring::metrics::{Metrics, OpenSubscription};
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_http::response_headers::RequestId;
use trefoil_http::shutdown::{DrainWaiter, Shutdown};
use trefoil_http::streaming::response;
use trefoil_model::error::{Error, Result};
use trefoil_model::{CellValue, FieldId, RecordTypeId};
use trefoil_resources::list_query::{ListQuery, ParamSet};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::ResourceRequest;

use crate::stream_snapshot::ListSnapshot;

/// Settings and services shared by all change streams.
#[derive(Clone)]
pub struct StreamSettings {
    pub heartbeat: Duration,
    pub metrics: Metrics,
    pub shutdown: Shutdown,
}

/// Responds with an event stream of the collection's changes.
pub async fn stream_changes(
    request: &ResourceRequest<'_>,
    streams: &StreamSettings,
) -> Result<Response, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Stream).await?;
    etags::check_if_match(request.headers(), None)?;
    let changes = open_stream(request, &query, streams).await?;
    let body = stream::unfold(changes, async |mut changes| {
        let bytes = changes.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(bytes)), changes))
    });
    let headers = [(CONTENT_TYPE, ResponseFormat::EventStream.content_type())];
    Ok(response::long_lived(
        request.with_negotiated_headers((headers, Body::from_stream(body)).into_response()),
    ))
}

async fn open_stream(
    request: &ResourceRequest<'_>,
    query: &ListQuery,
    streams: &StreamSettings,
) -> Result<ChangeStream> {
    let engine = &request.resources.engine;
    let feed = engine.feed();
    let generation = feed.settled_generation().await;
    let last_id = response::last_event_id(request.headers());
    let (position, reset) = match last_id {
        None => (feed.last_change_number().await?, None),
        Some(id) => match feed.number_of_event(id).await {
            Ok(number) => (number, None),
            Err(error @ Error::EventId { .. }) => (feed.last_change_number().await?, Some(error)),
            Err(error) => return Err(error),
        },
    };
    let shape = request.selected_shape(request.collection, query);
    let record = engine.model().record(request.collection.record);
    let column = |id: &FieldId| record.field(*id).column.clone();
    let starts_anew = last_id.is_none() || reset.is_some();
    let snapshot = (query.snapshot && starts_anew)
        .then(|| ListSnapshot::new(engine.clone(), request.collection.record, shape.clone()));
    Ok(ChangeStream {
        engine: engine.clone(),
        record: request.collection.record,
        feed: feed.clone(),
        generation,
        position,
        resource: record.name.clone(),
        change_kinds: request.collection.subscribed_changes.clone(),
        columns: shape.selection.columns.iter().map(column).collect(),
        shape,
        phase: reset.map_or(ChangeStreamPhase::Start, ChangeStreamPhase::Reset),
        snapshot,
        heartbeat: response::heartbeat_interval(streams.heartbeat),
        drained: streams.shutdown.drain_waiter(),
        request: ClientInfo::request_of(&request.head.extensions).cloned(),
        stream_guard: streams.metrics.subscription_opened("rest"),
    })
}

/// The change stream of one client.
struct ChangeStream {
    /// Of the actor, who gets the changes that they may see.
    engine: Engine,
    record: RecordTypeId,
    feed: ChangeFeed,
    /// A schema reload ends the stream. The client reconnects to the new schema with its last event id.
    generation: FeedGeneration,
    /// Number of the last change sent or skipped.
    position: i64,
    resource: String,
    change_kinds: Vec<ChangeKind>,
    /// Columns of the shape's fields.
    columns: Vec<String>,
    shape: Arc<RecordShape>,
    phase: ChangeStreamPhase,
    snapshot: Option<ListSnapshot>,
    heartbeat: Interval,
    drained: DrainWaiter,
    /// The request that opened the stream, for the log.
    request: Option<RequestId>,
    stream_guard: OpenSubscription,
}

enum ChangeStreamPhase {
    /// The client's last event id is no longer in the log: it must start anew.
    Reset(Error),
    Start,
    Running,
    Ended,
}

enum ChangeStreamSignal {
    Drained,
    Changes(Result<Arc<ChangeBatch>>),
    Heartbeat,
}

impl ChangeStream {
    /// The next bytes to send. None at the end of the stream, which is logged.
    async fn next(&mut self) -> Option<Vec<u8>> {
        match self.step().await {
            Ok(bytes) => bytes,
            Err(end) => {
                LogScope::of(self.request.as_ref()).stream_ended("rest", &end);
                match end {
                    StreamEnd::Failed(error @ Error::EventId { .. }) => Some(reset_event(&error)),
                    StreamEnd::Failed(_)
                    | StreamEnd::ServerStopping
                    | StreamEnd::SchemaChanged
                    | StreamEnd::DoesNotFit(_) => None,
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Vec<u8>>, StreamEnd> {
        loop {
            match std::mem::replace(&mut self.phase, ChangeStreamPhase::Ended) {
                ChangeStreamPhase::Ended => return Ok(None),
                ChangeStreamPhase::Reset(error) => {
                    self.phase = ChangeStreamPhase::Start;
                    return Ok(Some(reset_event(&error)));
                }
                ChangeStreamPhase::Start => return Ok(Some(self.start().await?)),
                ChangeStreamPhase::Running => {}
            }
            let bytes = match self.next_signal().await {
                ChangeStreamSignal::Drained => return Err(StreamEnd::ServerStopping),
                // The id lets a client resume here even if none of the changes concerned it.
                ChangeStreamSignal::Heartbeat => {
                    format!(":\nid: {}\n\n", self.feed.event_id(self.position).await?).into_bytes()
                }
                ChangeStreamSignal::Changes(batch) => self.encode_changes(&*batch?).await?,
            };
            if !self.feed.is_current(&self.generation) {
                return Err(StreamEnd::SchemaChanged);
            }
            self.phase = ChangeStreamPhase::Running;
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
    }

    /// Sends the snapshot part by part, then the id at which the live stream starts. A client disconnected before that
    /// has no event id and starts anew.
    async fn start(&mut self) -> Result<Vec<u8>> {
        if let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| !snapshot.is_complete()) {
            let part = snapshot.read_part(&self.feed, self.position).await?;
            self.phase = ChangeStreamPhase::Start;
            // The part of an empty list is empty: go on to the live stream at once.
            if !part.is_empty() {
                return Ok(part);
            }
        }
        self.phase = ChangeStreamPhase::Running;
        let id = self.feed.event_id(self.position).await?;
        let live_event = if self.snapshot.is_some() { "event: live\ndata: {}\n" } else { "" };
        Ok(format!("{live_event}id: {id}\n\n").into_bytes())
    }

    async fn next_signal(&mut self) -> ChangeStreamSignal {
        let ChangeStream { feed, position, heartbeat, drained, .. } = self;
        tokio::select! {
            biased;
            () = poll_fn(|cx| drained.poll(cx)) => ChangeStreamSignal::Drained,
            // Before changes: a constant flow of changes to other records must not hold it back.
            _ = heartbeat.tick() => ChangeStreamSignal::Heartbeat,
            batch = feed.changes_after(*position) => ChangeStreamSignal::Changes(batch),
        }
    }

    async fn encode_changes(&mut self, batch: &ChangeBatch) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let seen = self.engine.visible_changes(self.record, batch).await?;
        for change in seen.iter().filter(|change| self.is_relevant(change)) {
            let head = format!(
                "event: {}\nid: {}\ndata: ",
                change.kind.name(),
                self.feed.event_id(change.number).await?
            );
            out.extend_from_slice(head.as_bytes());
            self.shape.write_json(&mut out, &ChangeRow { columns: &self.columns, change });
            out.extend_from_slice(b"\n\n");
            self.stream_guard.event_delivered();
        }
        self.position = batch.until;
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.forget_up_to(self.position);
        }
        Ok(out)
    }

    fn is_relevant(&self, change: &RecordChange) -> bool {
        let is_in_snapshot = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.includes(change));
        change.type_name == self.resource && self.change_kinds.contains(&change.kind) && !is_in_snapshot
    }
}

fn reset_event(error: &Error) -> Vec<u8> {
    let data = serde_json::json!({ "code": error.code(), "message": error.to_string() });
    format!("event: reset\ndata: {data}\n\n").into_bytes()
}

/// The record after a change, or as it was before its deletion.
struct ChangeRow<'a> {
    columns: &'a [String],
    change: &'a RecordChange,
}

impl Row for ChangeRow<'_> {
    fn cell(&self, column: usize) -> CellValue<'_> {
        self.columns.get(column).map_or(CellValue::Null, |name| image_cell(&self.change.image, name))
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
