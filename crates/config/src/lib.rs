//! Flags, environment and `trefoil.toml` become one validated [`Config`] that knows where each value came from.

mod postgres_url;
mod setting_layers;
mod setting_syntax;
mod settings;

use std::path::PathBuf;
use std::time::Duration;

pub use crate::postgres_url::{PostgresUrl, TlsMode};
pub use crate::setting_layers::{FileSetting, ResolvedConfig, SettingLayers};
pub use crate::setting_syntax::{SettingSyntax, SizeSyntax};
pub use crate::settings::{SETTINGS, Setting};

/// Every setting of a running server, already validated.
#[derive(Debug, Clone)]
pub struct Config {
    /// A name or address to listen on; `localhost` means 127.0.0.1 and, where there is one, ::1.
    pub host: String,
    /// 0 lets the system choose.
    pub port: u16,
    /// The folder of the embedded store, its lock file included.
    pub data: PathBuf,
    pub database: DatabaseLocation,
    /// Connections to PostgreSQL for transactions and long lists, beside the few that are shared.
    pub database_connections: usize,
    /// How long a request waits for one of them.
    pub database_timeout: Duration,
    /// Whether nodes tell each other of changes with NOTIFY, or look for them ten times a second.
    pub database_notify: bool,
    /// Listening beyond loopback without authentication was asked for.
    pub open: bool,
    /// Reload the schema when its files change.
    pub watch: bool,
    /// Addresses or networks whose `Forwarded` headers count.
    pub trusted_proxies: Vec<IpNetwork>,
    /// Names that requests may call the server by, beside its own; empty means none, and beyond loopback any.
    pub allowed_hosts: Vec<String>,
    /// Origins that may call from a browser page elsewhere; empty means none.
    pub cors_origins: Vec<String>,
    pub log_format: LogFormat,
    pub introspection: bool,
    pub graphiql: bool,
    /// None: no rate limit.
    pub rate_limit: Option<RateLimit>,
    pub limits: ServerLimits,
    /// How long everything is still served after the signal to stop, while the readiness check already says no.
    pub shutdown_delay: Duration,
    /// How often an open subscription tells that it lives, and how far it has come.
    pub heartbeat: Duration,
    /// How many changes the log keeps at least for replay …
    pub keep_changes: u64,
    /// … and for how long.
    pub keep_changes_for: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// SQLite in the data folder.
    Embedded,
    /// SQLite in memory: gone with the process.
    Memory,
    Postgres(PostgresUrl),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Pretty on a terminal, JSON otherwise.
    Auto,
    Pretty,
    Json,
}

/// `requests` in each `period`, per client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub requests: u32,
    pub period: Duration,
}

/// An address with a prefix length: `10.0.0.0/8`, `::1/128`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    pub address: std::net::IpAddr,
    pub prefix: u8,
}

/// The limits of bytes, time and meaning; each names itself in the error it causes.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    pub body: usize,
    pub headers: usize,
    pub header_timeout: Duration,
    /// From the first byte of a request until its answer begins.
    pub request_timeout: Duration,
    /// A reader that takes no byte for so long is cut.
    pub stall_timeout: Duration,
    pub idle_timeout: Duration,
    pub connections: usize,
    pub depth: usize,
    pub tokens: usize,
    pub aliases: usize,
    pub cost: usize,
    pub page_size: usize,
    pub max_page_size: usize,
    pub conditions: usize,
    /// Bytes of parsed and planned documents kept for re-use.
    pub document_cache: usize,
    /// Bytes of answers kept for exact re-use; none with 0.
    pub answer_cache: usize,
    /// Bytes of rows and frames of list pages kept for re-use.
    pub page_parts: usize,
    /// Bytes of changes and events kept for subscribers that follow.
    pub event_cache: usize,
    /// Bytes of one WebSocket message from a client.
    pub socket_message: usize,
    /// Subscriptions open at once on one WebSocket.
    pub socket_subscriptions: usize,
    /// A WebSocket that has not sent `connection_init` by then is closed.
    pub socket_init_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            body: 1 << 20,
            headers: 16 << 10,
            header_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            connections: 16_384,
            depth: 15,
            tokens: 5_000,
            aliases: 50,
            cost: 10_000,
            page_size: 20,
            max_page_size: 1_000,
            conditions: 100,
            document_cache: 32 << 20,
            answer_cache: 32 << 20,
            page_parts: 8 << 20,
            event_cache: 16 << 20,
            socket_message: 256 << 10,
            socket_subscriptions: 100,
            socket_init_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            host: "localhost".into(),
            port: 8080,
            data: PathBuf::from("./trefoil-data"),
            database: DatabaseLocation::Embedded,
            database_connections: 8,
            database_timeout: Duration::from_secs(5),
            database_notify: true,
            open: false,
            watch: false,
            trusted_proxies: Vec::new(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            log_format: LogFormat::Auto,
            introspection: true,
            graphiql: true,
            rate_limit: None,
            limits: ServerLimits::default(),
            shutdown_delay: Duration::ZERO,
            heartbeat: Duration::from_secs(15),
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
