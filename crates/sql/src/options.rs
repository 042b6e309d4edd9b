//! The options of both stores.

use std::time::Duration;

use trefoil_config::PostgresUrl;

/// Settings of an SQLite store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Number of reader threads.
    pub reader_threads: usize,
    /// Page cache of each connection, in KiB.
    pub cache_kib: usize,
    /// How long to wait for a lock of another program.
    pub busy_timeout: Duration,
    /// Number of queued jobs at which callers have to wait.
    pub queue_length: usize,
    /// Number of changes that the change log keeps at least.
    pub keep_changes: u64,
    /// Age up to which the change log keeps all changes.
    pub keep_changes_for: Duration,
}

impl SqliteOptions {
    /// For connections used on threads of the async runtime, where a lock is an error and never a wait.
    pub(crate) fn without_waiting(&self) -> SqliteOptions {
        SqliteOptions { busy_timeout: Duration::ZERO, ..self.clone() }
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        SqliteOptions {
            reader_threads: cores.max(2),
            cache_kib: 16 << 10,
            busy_timeout: Duration::from_secs(5),
            queue_length: 4_096,
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// The options of a store on PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub url: PostgresUrl,
    /// The maximum number of pooled connections, in addition to the shared ones.
    pub pool_size: usize,
    /// How long to wait for a pooled connection.
    pub acquire_timeout: Duration,
    /// Nodes wake each other by LISTEN and NOTIFY; otherwise they poll frequently.
    pub notify: bool,
    /// The minimum number of changes that the log keeps.
    pub keep_changes: u64,
    /// The minimum time that the log keeps a change.
    pub keep_changes_for: Duration,
}

impl PostgresOptions {
    pub fn for_url(url: PostgresUrl) -> PostgresOptions {
        PostgresOptions {
            url,
            pool_size: 8,
            acquire_timeout: Duration::from_secs(5),
            notify: true,
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}
