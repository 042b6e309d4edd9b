//! Whether the database is there, told to the log once when it goes and once when it comes back.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::postgres::connections::connect_error::Trouble;

/// Counts the shared connections that stand.
#[derive(Default)]
pub struct Presence(Mutex<State>);

#[derive(Default)]
struct State {
    standing: usize,
    away: Option<Away>,
}

struct Away {
    since: Instant,
    /// A restart's first words are that a connection was closed; what is worth telling comes with the next try.
    told: bool,
}

impl Presence {
    pub fn connected(&self) {
        let mut state = self.state();
        state.standing += 1;
        if let Some(Away { since, told: true }) = state.away.take() {
            let seconds = format!("{:.1}", since.elapsed().as_secs_f32());
            tracing::info!(seconds, "the database is back");
        }
    }

    pub fn lost(&self, reason: &str) {
        let mut state = self.state();
        state.standing = state.standing.saturating_sub(1);
        tracing::debug!(reason, "a connection to the database was lost");
        if state.standing == 0 {
            state.away.get_or_insert(Away { since: Instant::now(), told: false });
        }
    }

    pub fn failed(&self, trouble: &Trouble) {
        if let Some(away) = self.state().away.as_mut().filter(|away| !away.told) {
            away.told = true;
            tracing::error!(reason = trouble.words, "the database is away; trying again until it is back");
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
