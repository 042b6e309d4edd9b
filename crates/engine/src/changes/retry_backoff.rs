//! Retries of reads for streams, while the store cannot be reached.

use std::time::Duration;

use tokio::time::sleep;

use trefoil_model::error::Error;

/// Delays between retries, from the first failure on.
const RETRY_DELAYS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// Waits between retries, longer each time, and logs the failure and its end once.
pub struct RetryBackoff {
    /// What is read, for the log.
    source: &'static str,
    failures: usize,
}

impl RetryBackoff {
    pub fn new(source: &'static str) -> RetryBackoff {
        RetryBackoff { source, failures: 0 }
    }

    pub async fn wait(&mut self, error: &Error) {
        if self.failures == 0 {
            tracing::warn!(cause = error.full_text(), "cannot read {}; retrying", self.source);
        }
        let delay = RETRY_DELAYS_MS[self.failures.min(RETRY_DELAYS_MS.len() - 1)];
        self.failures += 1;
        sleep(Duration::from_millis(delay)).await;
    }

    pub fn recovered(&mut self) {
        if std::mem::take(&mut self.failures) > 0 {
            tracing::info!("reading {} works again", self.source);
        }
    }
}
