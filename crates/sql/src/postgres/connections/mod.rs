//! Connections to one PostgreSQL database: opening, TLS, sharing, pooling, and noticing lost ones.

pub(crate) mod availability;
pub(crate) mod connect;
pub(crate) mod connect_error;
pub(crate) mod connection;
pub(crate) mod liveness;
pub(crate) mod manager;
pub(crate) mod pool;
pub(crate) mod tls;
