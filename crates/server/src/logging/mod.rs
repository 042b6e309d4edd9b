//! The log on standard error: text for a terminal, JSON lines otherwise.

pub(crate) mod json_lines;

use std::io::{self, IsTerminal};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, registry};

pub use crate::logging::json_lines::flush;
use trefoil_config::LogFormat;

/// The variable that programs using `tracing` conventionally read for another log level.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// Starts the log, unless an embedding program has already set up its own. Call [`flush`] before ending the process.
pub fn start_logging(format: LogFormat) {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let filter = EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let pretty = match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Pretty => true,
        LogFormat::Json => false,
    };
    if !pretty && let Ok(lines) = json_lines::start_writer() {
        let _ = registry().with(filter).with(lines).try_init();
        return;
    }
    // The reader of the log may be gone. Reporting that on the same stream would panic, and the server would no longer
    // act on the signal to end it.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    let _ = if pretty {
        lines.with_ansi(io::stderr().is_terminal()).compact().try_init()
    } else {
        lines.json().flatten_event(true).try_init()
    };
}
