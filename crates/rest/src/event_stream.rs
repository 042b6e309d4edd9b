//! The live stream of a collection: what the schema subscribes to, from where a client left off, after a snapshot if it wants.

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
use trefoil_engine::{ChangeBatch, ChangeFeed, ChangeKind, RecordChange, Row};
use trefoil_http::client::ClientInfo;
use trefoil_http::errors::error_log::{LogScope, StreamEnd};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::monitoring::metrics::{Metrics, OpenSubscription};
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_http::response_headers::RequestId;
use trefoil_http::shutdown::{DrainWaiter, Shutdown};
use trefoil_http::streaming::response;
use trefoil_model::CellValue;
use trefoil_model::error::{Error, Result};
use trefoil_resources::list_query::{ListQuery, ParamSet};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::ResourceRequest;

use crate::snapshot::ListSnapshot;

/// What every stream needs beside the records.
#[derive(Clone)]
pub struct StreamSettings {
    pub heartbeat: Duration,
    pub metrics: Metrics,
    pub shutdown: Shutdown,
}

pub async fn stream_changes(
    request: &ResourceRequest<'_>,
    streams: &StreamSettings,
) -> Result<Response, Problem> {
    let query = request.parse_query(request.collection.record, ParamSet::Stream)?;
    etags::check_if_match(request.headers(), None)?;
    let live = open_stream(request, &query, streams).await?;
    let body = stream::unfold(live, async |mut live| {
        let bytes = live.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(bytes)), live))
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
    let settled = feed.settled_generation().await;
    let last = response::last_event_id(request.headers());
    let (at, reset) = match last {
        None => (feed.last_change_number().await?, None),
        Some(id) => match feed.number_of_event(id).await {
            Ok(place) => (place, None),
            Err(error @ Error::EventId { .. }) => (feed.last_change_number().await?, Some(error)),
            Err(error) => return Err(error),
        },
    };
    let shape = request.selected_shape(request.collection, query);
    let record = engine.model().record(request.collection.record);
    let column = |id: &trefoil_model::FieldId| record.field(*id).column.clone();
    let begins = last.is_none() || reset.is_some();
    let snapshot = (query.snapshot && begins)
        .then(|| ListSnapshot::new(engine.clone(), request.collection.record, shape.clone()));
    Ok(ChangeStream {
        feed: feed.clone(),
        generation: settled,
        position: at,
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

/// One client that follows.
struct ChangeStream {
    feed: ChangeFeed,
    /// A reload ends the stream: its client comes back to the new schema with the last id.
    generation: FeedGeneration,
    position: i64,
    resource: String,
    change_kinds: Vec<ChangeKind>,
    /// Of the shape's fields.
    columns: Vec<String>,
    shape: Arc<RecordShape>,
    phase: ChangeStreamPhase,
    snapshot: Option<ListSnapshot>,
    heartbeat: Interval,
    drained: DrainWaiter,
    /// The request that opened it, for the log.
    request: Option<RequestId>,
    stream_guard: OpenSubscription,
}

enum ChangeStreamPhase {
    /// What the client came back with is gone: it must begin anew.
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
    /// The next bytes that go out, or the end, which the log is told.
    async fn next(&mut self) -> Option<Vec<u8>> {
        match self.step().await {
            Ok(out) => out,
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
            let out = match self.next_signal().await {
                ChangeStreamSignal::Drained => return Err(StreamEnd::ServerStopping),
                // Says where the client is, so that one for whom there is nothing can come back all the same.
                ChangeStreamSignal::Heartbeat => {
                    format!(":\nid: {}\n\n", self.feed.event_id(self.position).await?).into_bytes()
                }
                ChangeStreamSignal::Changes(stretch) => self.encode_changes(&*stretch?).await?,
            };
            if !self.feed.is_current(&self.generation) {
                return Err(StreamEnd::SchemaChanged);
            }
            self.phase = ChangeStreamPhase::Running;
            if !out.is_empty() {
                return Ok(Some(out));
            }
        }
    }

    /// The snapshot a part at a time, and then where the live stream starts. A client that is cut off before knows no
    /// id and begins anew.
    async fn start(&mut self) -> Result<Vec<u8>> {
        if let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| !snapshot.is_complete()) {
            let part = snapshot.read_part(&self.feed, self.position).await?;
            self.phase = ChangeStreamPhase::Start;
            // An empty list has no part to show.
            if !part.is_empty() {
                return Ok(part);
            }
        }
        self.phase = ChangeStreamPhase::Running;
        let id = self.feed.event_id(self.position).await?;
        let told = if self.snapshot.is_some() { "event: live\ndata: {}\n" } else { "" };
        Ok(format!("{told}id: {id}\n\n").into_bytes())
    }

    async fn next_signal(&mut self) -> ChangeStreamSignal {
        let ChangeStream { feed, position: at, heartbeat: beat, drained, .. } = self;
        tokio::select! {
            biased;
            () = poll_fn(|cx| drained.poll(cx)) => ChangeStreamSignal::Drained,
            // Before changes, which could be of other records all the time.
            _ = beat.tick() => ChangeStreamSignal::Heartbeat,
            stretch = feed.changes_after(*at) => ChangeStreamSignal::Changes(stretch),
        }
    }

    async fn encode_changes(&mut self, stretch: &ChangeBatch) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for change in stretch.changes.iter().filter(|change| self.is_relevant(change)) {
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
        self.position = stretch.until;
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.forget_up_to(self.position);
        }
        Ok(out)
    }

    fn is_relevant(&self, change: &RecordChange) -> bool {
        let shown = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.includes(change));
        change.type_name == self.resource && self.change_kinds.contains(&change.kind) && !shown
    }
}

fn reset_event(error: &Error) -> Vec<u8> {
    let told = serde_json::json!({ "code": error.code(), "message": error.to_string() });
    format!("event: reset\ndata: {told}\n\n").into_bytes()
}

/// The record as a change left it, or as it was when it was deleted.
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
