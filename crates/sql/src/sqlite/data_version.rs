//! Sees every commit to the file, whoever made it: a connection that never writes and is asked for `data_version`.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::sqlite::Shared;
use crate::sqlite::connect::{Role, connect};
use trefoil_engine::State;

const LOOK: &str = "PRAGMA data_version";

#[derive(Default)]
pub struct Witness(Mutex<Seat>);

#[derive(Default)]
struct Seat {
    connection: Option<Connection>,
    /// Versions of two connections cannot be compared.
    taken: i64,
}

impl Witness {
    /// Nothing when it cannot be told; then nobody may rely on what was before.
    pub fn state(&self, shared: &Shared) -> Option<State> {
        let mut seat = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seat.look(shared);
        if let Err(error) = &seen {
            tracing::debug!(%error, "the state of the data cannot be told");
            seat.connection = None;
        }
        seen.ok()
    }
}

impl Seat {
    fn look(&mut self, shared: &Shared) -> rusqlite::Result<State> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                self.taken += 1;
                // It is asked on threads that must not wait; not to be able to tell is an answer too.
                let options = shared.options.without_waiting();
                none.insert(connect(&shared.place, Role::Reader, &options)?)
            }
        };
        let mut statement = connection.prepare_cached(LOOK)?;
        let version = statement.query_row([], |row| row.get(0))?;
        Ok(State([self.taken, version]))
    }
}
