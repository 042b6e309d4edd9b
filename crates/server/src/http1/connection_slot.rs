//! One of the limited number of connections, from its acceptance to the end of its socket.

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::OwnedSemaphorePermit;

/// Lives as long as the socket, also as a WebSocket.
pub struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    open_connections: Gauge,
}

impl ConnectionSlot {
    pub fn new(permit: OwnedSemaphorePermit, open_connections: Gauge) -> ConnectionSlot {
        open_connections.inc();
        ConnectionSlot { _permit: permit, open_connections }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open_connections.dec();
    }
}
