//! Which records could not be read when the server started: an error in the log each, and the reason why it is not ready.

use std::sync::{Arc, Mutex, PoisonError};

use trefoil_model::error::Error;

/// The way out of a damaged store.
const HELP: &str = "the store is damaged: stop the server and restore a backup (trefoil restore)";

/// Shared by who looks at the tables and by the readiness check. What is noted stays until the next start.
#[derive(Debug, Clone, Default)]
pub struct UnreadableTables(Arc<Mutex<Vec<String>>>);

impl UnreadableTables {
    /// Notes a failed reading, unless the moment was to blame and not the table.
    pub fn note(&self, path: &str, error: &Error) {
        let Error::Internal { cause } = error else { return };
        tracing::error!(%cause, "the records of {path} cannot be read: {HELP}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    /// The error is a line for whoever asks whether the server is ready.
    pub fn check(&self) -> Result<(), String> {
        let paths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn only_what_stays_unreadable_is_noted() {
        let tables = UnreadableTables::default();
        tables.note("users", &Error::Cancelled);
        let busy = Error::Unavailable { reason: "busy".into(), retry_after: Duration::from_secs(1) };
        tables.note("users", &busy);
        assert_eq!(tables.check(), Ok(()));
        tables.clone().note("orders", &Error::internal("malformed"));
        tables.note("users", &Error::internal("malformed"));
        let told = tables.check().unwrap_err();
        assert!(told.starts_with("the records of orders, users cannot be read: ") && told.contains("backup"));
    }
}
