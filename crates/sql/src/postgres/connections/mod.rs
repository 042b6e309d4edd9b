//! Connections to one PostgreSQL database: opening, TLS, sharing, pooling and detecting lost ones.

// All connections of the process.
pub(crate) mod manager;
pub(crate) mod pool;

// One connection.
pub(crate) mod connect;
pub(crate) mod connect_error;
pub(crate) mod connection;
pub(crate) mod tls;

// Detecting lost connections and outages.
pub(crate) mod availability;
pub(crate) mod liveness;
