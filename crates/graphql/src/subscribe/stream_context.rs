//! Configuration, metrics and shutdown signal that open subscriptions of all transports use.

use tokio::time::Interval;

use trefoil_config::Config;
use trefoil_http::monitoring::metrics::Metrics;
use trefoil_http::shutdown::Shutdown;
use trefoil_http::streaming::response;

pub struct StreamContext {
    pub config: Config,
    pub metrics: Metrics,
    pub shutdown: Shutdown,
}

impl StreamContext {
    pub fn new(config: &Config, metrics: &Metrics, shutdown: &Shutdown) -> StreamContext {
        StreamContext { config: config.clone(), metrics: metrics.clone(), shutdown: shutdown.clone() }
    }

    pub fn heartbeat(&self) -> Interval {
        response::heartbeat_interval(self.config.heartbeat)
    }
}
