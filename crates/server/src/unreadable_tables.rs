//! Tables that could not be read at the start: each is logged as an error and makes the server not ready.

use std::sync::Arc;

use parking_lot::Mutex;

use trefoil_model::error::Error;

/// The advice for a damaged store.
const HELP: &str = "the store is damaged: stop the server and restore a backup (trefoil restore)";

/// Shared by the banner, which reads all tables, and the readiness check. Entries stay until the next start.
#[derive(Debug, Clone, Default)]
pub struct UnreadableTables(Arc<Mutex<Vec<String>>>);

impl UnreadableTables {
    /// Records a failed read, unless the error is temporary.
    pub fn note(&self, path: &str, error: &Error) {
        let Error::Internal { cause } = error else { return };
        tracing::error!(%cause, "the records of {path} cannot be read: {HELP}");
        self.0.lock().push(path.to_owned());
    }

    /// The error is one line for the readiness check.
    pub fn check(&self) -> Result<(), String> {
        let paths = self.0.lock();
        match paths.as_slice() {
            [] => Ok(()),
            paths => Err(format!("the records of {} cannot be read: {HELP}", paths.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn temporary_errors_are_not_recorded() {
        let tables = UnreadableTables::default();
        tables.note("users", &Error::Cancelled);
        let busy = Error::Unavailable { reason: "busy".into(), retry_after: Duration::from_secs(1) };
        tables.note("users", &busy);
        assert_eq!(tables.check(), Ok(()));
        tables.clone().note("orders", &Error::internal("malformed"));
        tables.note("users", &Error::internal("malformed"));
        let message = tables.check().unwrap_err();
        assert!(
            message.starts_with("the records of orders, users cannot be read: ")
                && message.contains("backup")
        );
    }
}
