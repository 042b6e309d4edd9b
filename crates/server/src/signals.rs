//! SIGTERM and SIGINT: the first drains the server, the second exits at once.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::logging;

pub use trefoil_http::shutdown::Shutdown;

/// The signals that end the process; after [`TerminationSignals::install`] they no longer do so by themselves.
pub struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl TerminationSignals {
    pub fn install() -> io::Result<TerminationSignals> {
        Ok(TerminationSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The first signal makes the server unready for `delay`, then drains it; the second exits.
    pub fn drain_on_signal(mut self, shutdown: &Shutdown, delay: Duration) {
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            let first = self.next_signal().await;
            tracing::info!(
                signal = first,
                "stopping after running requests finish; send a second signal to stop immediately"
            );
            shutdown.begin_leaving();
            tokio::select! {
                () = tokio::time::sleep(delay) => shutdown.begin_draining(),
                () = async { self.exit_on_signal().await } => {}
            }
            self.exit_on_signal().await;
        });
    }

    /// Ends the process at the next signal, with the exit code that shells report for it: 128 plus its number.
    pub async fn exit_on_signal(&mut self) -> ! {
        let number = self.next_signal().await;
        tracing::warn!("stopped immediately");
        logging::flush();
        std::process::exit(128 + number);
    }

    async fn next_signal(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }
}
