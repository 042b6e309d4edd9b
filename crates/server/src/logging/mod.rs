//! Where log lines go: standard error, one line each, for people on a terminal and as JSON for machines.

pub(crate) mod json_lines;

use std::io::{self, IsTerminal};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, registry};

pub use crate::logging::json_lines::flush;
use trefoil_config::LogFormat;

/// Read by habit of all programs that log with this library, when everything at level info is not what is wanted.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// Does nothing if the program that embeds us has already set up its own. Whoever ends the process calls [`flush`].
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
    // Whoever read the log may be gone. Complaining about that on the same stream would panic, and the signal that is to
    // end the server would never be acted on.
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
