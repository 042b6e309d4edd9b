//! Sees every commit to the file, whoever made it: a connection that never writes and is asked for `data_version`.

use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use trefoil_engine::DataVersion;

use crate::sqlite::SharedState;
use crate::sqlite::connect::{ConnectionRole, connect};

const READ_DATA_VERSION: &str = "PRAGMA data_version";

#[derive(Default)]
pub struct DataVersionProbe(Mutex<ProbeConnection>);

#[derive(Default)]
struct ProbeConnection {
    connection: Option<Connection>,
    /// Versions of two connections cannot be compared.
    connection_number: i64,
}

impl DataVersionProbe {
    /// Nothing when it cannot be told; then nobody may rely on what was before.
    pub fn data_version(&self, shared: &SharedState) -> Option<DataVersion> {
        let mut seat = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seat.read_version(shared);
        if let Err(error) = &seen {
            tracing::debug!(%error, "the state of the data cannot be told");
            seat.connection = None;
        }
        seen.ok()
    }
}

impl ProbeConnection {
    fn read_version(&mut self, shared: &SharedState) -> rusqlite::Result<DataVersion> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                self.connection_number += 1;
                // It is asked on threads that must not wait; not to be able to tell is an answer too.
                let options = shared.options.without_waiting();
                none.insert(connect(&shared.location, ConnectionRole::Reader, &options)?)
            }
        };
        let mut statement = connection.prepare_cached(READ_DATA_VERSION)?;
        let version = statement.query_row([], |row| row.get(0))?;
        Ok(DataVersion([self.connection_number, version]))
    }
}
