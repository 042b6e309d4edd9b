//! Logs each outage of the database once when it begins and once when it ends.

use std::time::Instant;

use parking_lot::Mutex;

use crate::postgres::connections::connect_error::ConnectError;

/// Counts the open shared connections.
#[derive(Default)]
pub struct DatabaseAvailability(Mutex<AvailabilityState>);

#[derive(Default)]
struct AvailabilityState {
    open_connections: usize,
    outage: Option<DatabaseOutage>,
}

struct DatabaseOutage {
    since: Instant,
    /// Logged at the first failed attempt to reconnect: a lost connection alone may be a restart.
    is_logged: bool,
}

impl DatabaseAvailability {
    pub fn connection_opened(&self) {
        let mut state = self.0.lock();
        state.open_connections += 1;
        if let Some(DatabaseOutage { since, is_logged: true }) = state.outage.take() {
            let seconds = format!("{:.1}", since.elapsed().as_secs_f32());
            tracing::info!(seconds, "the database is available again");
        }
    }

    pub fn connection_lost(&self, reason: &str) {
        let mut state = self.0.lock();
        state.open_connections = state.open_connections.saturating_sub(1);
        tracing::debug!(reason, "lost a connection to the database");
        if state.open_connections == 0 {
            state.outage.get_or_insert(DatabaseOutage { since: Instant::now(), is_logged: false });
        }
    }

    pub fn connect_failed(&self, error: &ConnectError) {
        if let Some(outage) = self.0.lock().outage.as_mut().filter(|outage| !outage.is_logged) {
            outage.is_logged = true;
            tracing::error!(reason = error.message, "the database is unavailable; retrying");
        }
    }
}
