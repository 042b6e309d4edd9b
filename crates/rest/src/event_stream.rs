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

use crate::snapshot::Snapshot;
use trefoil_engine::changes::{Settled, cell_of};
use trefoil_engine::{Change, Deed, Feed, Row, Stretch};
use trefoil_http::client::Client;
use trefoil_http::errors::error_log::{LogScope, StreamEnd};
use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::monitoring::metrics::{Metrics, Open};
use trefoil_http::negotiation::format::Wanted;
use trefoil_http::response_headers::RequestId;
use trefoil_http::shutdown::{Drained, Shutdown};
use trefoil_http::streaming::response;
use trefoil_model::Cell;
use trefoil_model::error::{Error, Result};
use trefoil_resources::list_query::{Query, Takes};
use trefoil_resources::record_shape::Shape;
use trefoil_resources::request::Ask;

/// What every stream needs beside the records.
#[derive(Clone)]
pub struct Streams {
    pub heartbeat: Duration,
    pub metrics: Metrics,
    pub shutdown: Shutdown,
}

pub async fn stream_changes(request: &Ask<'_>, streams: &Streams) -> Result<Response, Problem> {
    let query = request.query(request.collection.record, Takes::Stream)?;
    etags::allow(request.headers(), None)?;
    let live = open_stream(request, &query, streams).await?;
    let body = stream::unfold(live, async |mut live| {
        let bytes = live.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(bytes)), live))
    });
    let headers = [(CONTENT_TYPE, Wanted::Events.content_type())];
    Ok(response::endless(request.negotiated((headers, Body::from_stream(body)).into_response())))
}

async fn open_stream(request: &Ask<'_>, query: &Query, streams: &Streams) -> Result<Live> {
    let engine = &request.site.engine;
    let feed = engine.feed();
    let settled = feed.settled().await;
    let last = response::last_event_id(request.headers());
    let (at, reset) = match last {
        None => (feed.now().await?, None),
        Some(id) => match feed.place(id).await {
            Ok(place) => (place, None),
            Err(error @ Error::EventId { .. }) => (feed.now().await?, Some(error)),
            Err(error) => return Err(error),
        },
    };
    let shape = request.shape(request.collection, query);
    let record = engine.model().record(request.collection.record);
    let column = |id: &trefoil_model::FieldId| record.field(*id).column.clone();
    let begins = last.is_none() || reset.is_some();
    let snapshot = (query.snapshot && begins)
        .then(|| Snapshot::new(engine.clone(), request.collection.record, shape.clone()));
    Ok(Live {
        feed: feed.clone(),
        settled,
        at,
        resource: record.name.clone(),
        deeds: request.collection.deeds.clone(),
        columns: shape.selection.columns.iter().map(column).collect(),
        shape,
        phase: reset.map_or(Phase::Start, Phase::Reset),
        snapshot,
        beat: response::heartbeat(streams.heartbeat),
        drained: streams.shutdown.drained(),
        request: Client::request_of(&request.head.extensions).cloned(),
        open: streams.metrics.subscribed("rest"),
    })
}

/// One client that follows.
struct Live {
    feed: Feed,
    /// A reload ends the stream: its client comes back to the new schema with the last id.
    settled: Settled,
    at: i64,
    resource: String,
    deeds: Vec<Deed>,
    /// Of the shape's fields.
    columns: Vec<String>,
    shape: Arc<Shape>,
    phase: Phase,
    snapshot: Option<Snapshot>,
    beat: Interval,
    drained: Drained,
    /// The request that opened it, for the log.
    request: Option<RequestId>,
    open: Open,
}

enum Phase {
    /// What the client came back with is gone: it must begin anew.
    Reset(Error),
    Start,
    Going,
    Over,
}

enum Happened {
    Drained,
    Changes(Result<Arc<Stretch>>),
    Beat,
}

impl Live {
    /// The next bytes that go out, or the end, which the log is told.
    async fn next(&mut self) -> Option<Vec<u8>> {
        match self.step().await {
            Ok(out) => out,
            Err(end) => {
                LogScope::of(self.request.as_ref()).stream_ended("rest", &end);
                match end {
                    StreamEnd::Failed(error @ Error::EventId { .. }) => Some(reset(&error)),
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
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Over => return Ok(None),
                Phase::Reset(error) => {
                    self.phase = Phase::Start;
                    return Ok(Some(reset(&error)));
                }
                Phase::Start => return Ok(Some(self.start().await?)),
                Phase::Going => {}
            }
            let out = match self.wait().await {
                Happened::Drained => return Err(StreamEnd::ServerStopping),
                // Says where the client is, so that one for whom there is nothing can come back all the same.
                Happened::Beat => format!(":\nid: {}\n\n", self.feed.id(self.at).await?).into_bytes(),
                Happened::Changes(stretch) => self.told(&*stretch?).await?,
            };
            if !self.feed.is_still(&self.settled) {
                return Err(StreamEnd::SchemaChanged);
            }
            self.phase = Phase::Going;
            if !out.is_empty() {
                return Ok(Some(out));
            }
        }
    }

    /// The snapshot a part at a time, and then where the live stream starts. A client that is cut off before knows no
    /// id and begins anew.
    async fn start(&mut self) -> Result<Vec<u8>> {
        if let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| !snapshot.is_whole()) {
            let part = snapshot.part(&self.feed, self.at).await?;
            self.phase = Phase::Start;
            // An empty list has no part to show.
            if !part.is_empty() {
                return Ok(part);
            }
        }
        self.phase = Phase::Going;
        let id = self.feed.id(self.at).await?;
        let told = if self.snapshot.is_some() { "event: live\ndata: {}\n" } else { "" };
        Ok(format!("{told}id: {id}\n\n").into_bytes())
    }

    async fn wait(&mut self) -> Happened {
        let Live { feed, at, beat, drained, .. } = self;
        tokio::select! {
            biased;
            () = poll_fn(|cx| drained.poll(cx)) => Happened::Drained,
            // Before changes, which could be of other records all the time.
            _ = beat.tick() => Happened::Beat,
            stretch = feed.after(*at) => Happened::Changes(stretch),
        }
    }

    async fn told(&mut self, stretch: &Stretch) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for change in stretch.changes.iter().filter(|change| self.concerns(change)) {
            let head =
                format!("event: {}\nid: {}\ndata: ", change.deed.name(), self.feed.id(change.number).await?);
            out.extend_from_slice(head.as_bytes());
            self.shape.write(&mut out, &Imaged { columns: &self.columns, change });
            out.extend_from_slice(b"\n\n");
            self.open.delivered();
        }
        self.at = stretch.until;
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.passed(self.at);
        }
        Ok(out)
    }

    fn concerns(&self, change: &Change) -> bool {
        let shown = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.shows(change));
        change.resource == self.resource && self.deeds.contains(&change.deed) && !shown
    }
}

fn reset(error: &Error) -> Vec<u8> {
    let told = serde_json::json!({ "code": error.code(), "message": error.to_string() });
    format!("event: reset\ndata: {told}\n\n").into_bytes()
}

/// The record as a change left it, or as it was when it was deleted.
struct Imaged<'a> {
    columns: &'a [String],
    change: &'a Change,
}

impl Row for Imaged<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self.columns.get(column).map_or(Cell::Null, |name| cell_of(&self.change.image, name))
    }

    fn each_child(&self, _child: usize, _visit: &mut dyn FnMut(&dyn Row)) {}
}
