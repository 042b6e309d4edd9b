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

/// The driver of PostgreSQL, which logs statements with their parameters: values of hidden fields, logins, hashes.
const DRIVER: &str = "tokio_postgres";

/// What is logged. More than the notices of the driver only if it is asked for by name.
fn log_filter(asked: Option<&str>) -> EnvFilter {
    let asked = asked.unwrap_or_default();
    let filter = EnvFilter::try_new(if asked.is_empty() { "info" } else { asked });
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("info"));
    // Of all targets: a level alone, or within a span.
    let is_detailed = |part: &str| {
        let (target, level) = part.trim().rsplit_once('=').unwrap_or(("", part.trim()));
        let is_of_all = target.is_empty() || target.starts_with('[');
        is_of_all && ["debug", "trace", "4", "5"].contains(&level.to_ascii_lowercase().as_str())
    };
    if asked.contains(DRIVER) || !asked.split(',').any(is_detailed) {
        return filter;
    }
    filter.add_directive(format!("{DRIVER}=info").parse().expect("a directive"))
}

/// Starts the log, unless an embedding program has already set up its own. Call [`flush`] before ending the process.
pub fn start_logging(format: LogFormat) {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let filter = log_filter(std::env::var(FILTER_VARIABLE).ok().as_deref());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_logged_only_by_the_name_of_the_driver() {
        for (asked, shown) in [
            (None, "info"),
            (Some(""), "info"),
            (Some("warn"), "warn"),
            (Some("info,trefoil=debug"), "trefoil=debug,info"),
            (Some("debug"), "tokio_postgres=info,debug"),
            (Some("TRACE,hyper=warn"), "tokio_postgres=info,hyper=warn,trace"),
            (Some("debug,tokio_postgres=debug"), "tokio_postgres=debug,debug"),
        ] {
            assert_eq!(log_filter(asked).to_string(), shown, "{asked:?}");
        }
    }
}
