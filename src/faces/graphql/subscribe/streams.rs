//! What all open subscriptions share, whatever carries them: the settings, the count, and the news that the server stops.

use tokio::time::Interval;

use crate::config::Config;
use crate::faces::follow;
use crate::faces::metrics::Metrics;
use crate::faces::shutdown::Shutdown;

pub struct Streams {
    pub config: Config,
    pub metrics: Metrics,
    pub shutdown: Shutdown,
}

impl Streams {
    pub fn new(config: &Config, metrics: &Metrics, shutdown: &Shutdown) -> Streams {
        Streams { config: config.clone(), metrics: metrics.clone(), shutdown: shutdown.clone() }
    }

    pub fn heartbeat(&self) -> Interval {
        follow::heartbeat(self.config.heartbeat)
    }
}
