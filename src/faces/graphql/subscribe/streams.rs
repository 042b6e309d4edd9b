//! What all open subscriptions share, whatever carries them: the settings, the count, and the news that the server stops.

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::config::Config;
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

    /// Ticks whenever a sign of life is due.
    pub fn heartbeat(&self) -> Interval {
        let period = self.config.heartbeat;
        let mut interval = interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    }
}
