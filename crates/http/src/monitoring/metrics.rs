//! Metrics of the server, in OpenMetrics text at `/metrics` for Prometheus.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{Extensions, HeaderMap, Method};
use parking_lot::{Mutex, RwLock};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use trefoil_model::error::Error;

use crate::errors::problem::Problem;
use crate::monitoring::process_metrics::ProcessMetrics;
use crate::monitoring::refusals::RequestRefusals;
use crate::routing::RouteTable;

/// The bucket boundaries that OpenTelemetry recommends for HTTP request durations, in seconds.
const BUCKETS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// The metrics of a server; clones share the counters.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    durations: Family<RequestLabels, Histogram, fn() -> Histogram>,
    /// The histograms of `durations` by a hash of their labels, to find them without allocating labels.
    histograms_by_hash: Arc<RwLock<HashMap<u64, Histogram>>>,
    pub(crate) active_requests: Gauge,
    pub connections: Gauge,
    subscriptions: Family<TransportLabels, Gauge>,
    events: Family<TransportLabels, Counter>,
    refused: Family<RefusalLabels, Counter>,
    sign_ins: Family<SignInLabels, Counter>,
    /// Responses from the response cache.
    pub repeated_responses: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransportLabels {
    transport: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SignInLabels {
    outcome: &'static str,
}

/// One open subscription, counted as long as it exists.
pub struct OpenSubscription {
    gauge: Gauge,
    events: Counter,
}

impl OpenSubscription {
    /// Counts an event passed to the transport.
    pub fn event_delivered(&self) {
        self.events.inc();
    }
}

impl Drop for OpenSubscription {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let metrics = Metrics {
            registry: Arc::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            histograms_by_hash: Arc::default(),
            active_requests: Gauge::default(),
            connections: Gauge::default(),
            subscriptions: Family::default(),
            events: Family::default(),
            refused: Family::default(),
            sign_ins: Family::default(),
            repeated_responses: Counter::default(),
        };
        metrics.with_registry(|registry| metrics.register(registry));
        metrics
    }

    fn with_registry<T>(&self, access: impl FnOnce(&mut Registry) -> T) -> T {
        access(&mut self.registry.lock())
    }

    fn register(&self, registry: &mut Registry) {
        let help = "Duration of HTTP requests until the end of the response";
        registry.register("http_server_request_duration_seconds", help, self.durations.clone());
        registry.register(
            "http_server_active_requests",
            "Requests in progress",
            self.active_requests.clone(),
        );
        registry.register("http_server_connections", "Open connections", self.connections.clone());
        registry.register("trefoil_subscriptions", "Open subscriptions", self.subscriptions.clone());
        registry.register("trefoil_subscription_events", "Events sent to subscribers", self.events.clone());
        let help = "Refusals by rules or for want of a good credential";
        registry.register("trefoil_refused", help, self.refused.clone());
        registry.register("trefoil_sign_ins", "Tries to sign in", self.sign_ins.clone());
        let help = "Responses served from the cache because nothing had changed";
        registry.register("trefoil_answers_repeated", help, self.repeated_responses.clone());
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        registry.register("trefoil_build", "The running version", Info::new(version));
        registry.register_collector(Box::new(ProcessMetrics::start()));
    }

    /// Counts a try to sign in.
    pub fn count_sign_in(&self, outcome: &'static str) {
        self.sign_ins.get_or_create(&SignInLabels { outcome }).inc();
    }

    /// `route` is the template that matched, never the path: there is no bound on the number of paths.
    pub(crate) fn observe_request(&self, method: &Method, route: Option<&str>, status: u16, took: Duration) {
        let (method, route) = (method_label(method), route.unwrap_or("unmatched"));
        let seed = xxh3_64_with_seed(method.as_bytes(), status.into());
        let key = xxh3_64_with_seed(route.as_bytes(), seed);
        let known = self.histograms_by_hash.read().get(&key).cloned();
        let histogram = known.unwrap_or_else(|| {
            let labels = RequestLabels { method, route: route.to_owned(), status };
            let histogram = self.durations.get_or_create(&labels).clone();
            let mut known = self.histograms_by_hash.write();
            known.entry(key).or_insert(histogram).clone()
        });
        histogram.observe(took.as_secs_f64());
    }

    /// Counts what was refused of a request or of an operation.
    pub fn count_refusals(&self, refusals: &RequestRefusals) {
        for code in refusals.codes() {
            self.refused.get_or_create(&RefusalLabels { code }).inc();
        }
    }

    /// Counts a subscription as open until the returned value is dropped.
    pub fn subscription_opened(&self, transport: &'static str) -> OpenSubscription {
        let labels = TransportLabels { transport };
        let open = OpenSubscription {
            gauge: self.subscriptions.get_or_create(&labels).clone(),
            events: self.events.get_or_create(&labels).clone(),
        };
        open.gauge.inc();
        open
    }

    fn encode_text(&self) -> Result<String, Problem> {
        let mut text = String::new();
        let written =
            self.with_registry(|registry| prometheus_client::encoding::text::encode(&mut text, registry));
        written.map(|()| text).map_err(|error| Problem::internal(format!("encoding the metrics: {error}")))
    }
}

/// Refuses who may not see the metrics.
pub type MetricsCheck = Arc<dyn Fn(&Extensions, &HeaderMap) -> Result<(), Error> + Send + Sync>;

pub fn metrics_routes(metrics: &Metrics, check: MetricsCheck) -> RouteTable {
    let metrics = metrics.clone();
    RouteTable::default().get("/metrics", async move |request: Request| {
        check(request.extensions(), request.headers())?;
        serve_metrics(&metrics)
    })
}

fn serve_metrics(metrics: &Metrics) -> Result<Response, Problem> {
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, media)], metrics.encode_text()?).into_response())
}

/// Clients can invent methods, and the number of labels must stay bounded.
fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    KNOWN.into_iter().find(|known| method == known).unwrap_or("_OTHER")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_method() {
        let metrics = Metrics::new();
        metrics.observe_request(&Method::GET, Some("/users/{id}"), 200, Duration::from_millis(7));
        metrics.observe_request(&Method::from_bytes(b"BREW").expect("a token"), None, 405, Duration::ZERO);
        let text = metrics.encode_text().expect("text");
        for line in [
            r#"http_server_request_duration_seconds_bucket{le="0.005",method="GET",route="/users/{id}",status="200"} 0"#,
            r#"http_server_request_duration_seconds_bucket{le="0.01",method="GET",route="/users/{id}",status="200"} 1"#,
            r#"http_server_request_duration_seconds_count{method="_OTHER",route="unmatched",status="405"} 1"#,
            concat!(r#"trefoil_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
