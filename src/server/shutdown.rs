//! SIGTERM and SIGINT: the first one begins the end, the second one is the end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub use crate::faces::shutdown::Shutdown;

/// From now on the process ends by its signals. What a shell reports for a process that a signal has ended is
/// its number above 128; the second signal exits with that.
pub fn listen_to_signals(shutdown: &Shutdown) -> io::Result<()> {
    let mut signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let shutdown = shutdown.clone();
    tokio::spawn(async move {
        let first = next(&mut signals).await;
        tracing::info!(signal = first, "stopping: finishing what runs; a second signal stops at once");
        shutdown.drain();
        let second = next(&mut signals).await;
        tracing::warn!("stopped at once");
        std::process::exit(128 + second);
    });
    Ok(())
}

async fn next((terminate, interrupt): &mut (Signal, Signal)) -> i32 {
    tokio::select! {
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
    }
}
