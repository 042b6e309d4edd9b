//! Where log lines go: standard error, one line each, for people on a terminal and as JSON for machines.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Read by habit of all programs that log with this library, when everything at level info is not what is wanted.
const FILTER: &str = "RUST_LOG";

/// Does nothing if the program that embeds us has already set up its own.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new("info"));
    // Whoever read the log may be gone. Complaining about that on the same stream would panic, and the signal that is to
    // end the server would never be acted on.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    let pretty = match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Pretty => true,
        LogFormat::Json => false,
    };
    let _ = if pretty {
        lines.with_ansi(io::stderr().is_terminal()).compact().try_init().ok()
    } else {
        lines.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init().ok()
    };
}
