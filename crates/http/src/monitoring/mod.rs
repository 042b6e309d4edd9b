//! Monitoring for operators: the access log, metrics and health checks.

pub mod access_log;
pub mod health;
pub mod metrics;
pub(crate) mod process_metrics;
pub mod refusals;
