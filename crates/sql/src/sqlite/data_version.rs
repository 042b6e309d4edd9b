//! Detects every commit to the file, also of other programs: `data_version` on a connection that never writes.

use parking_lot::Mutex;
use rusqlite::Connection;

use trefoil_engine::DataVersion;

use crate::sqlite::connect::{ConnectionRole, connect};
use crate::sqlite::session::SharedState;

const READ_DATA_VERSION: &str = "PRAGMA data_version";

#[derive(Default)]
pub struct DataVersionProbe(Mutex<ProbeConnection>);

#[derive(Default)]
struct ProbeConnection {
    connection: Option<Connection>,
    /// Part of the version, because the versions of two connections cannot be compared.
    connection_number: i64,
}

impl DataVersionProbe {
    /// `None` if it cannot be read; the caller must then assume that the data changed.
    pub fn data_version(&self, shared: &SharedState) -> Option<DataVersion> {
        let mut probe = self.0.lock();
        let version = probe.read_version(shared);
        if let Err(error) = &version {
            tracing::debug!(%error, "cannot determine the version of the data");
            probe.connection = None;
        }
        version.ok()
    }
}

impl ProbeConnection {
    fn read_version(&mut self, shared: &SharedState) -> rusqlite::Result<DataVersion> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                self.connection_number += 1;
                // Called on threads that must not wait; to fail is acceptable.
                let options = shared.options.without_waiting();
                none.insert(connect(&shared.location, ConnectionRole::Reader, &options)?)
            }
        };
        let mut statement = connection.prepare_cached(READ_DATA_VERSION)?;
        let version = statement.query_row([], |row| row.get(0))?;
        Ok(DataVersion([self.connection_number, version]))
    }
}
