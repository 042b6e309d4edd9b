//! The settings of the server.
//!
//! [`SettingLayers`] merges command line flags, environment variables and `trefoil.toml` into one validated [`Config`]
//! and records the origin of each value. The command line and the server resolve it; HTTP and SQL code read it.

// The table of all settings.
mod settings;

// Their values as text.
mod postgres_url;
mod setting_syntax;

// Flags, environment, file and defaults merged.
mod setting_layers;

// Who else says who asks.
mod openid_provider;
mod token_issuer;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trefoil_model::ZoneOffsets;

pub use crate::openid_provider::{OpenIdProvider, SecretSource};
pub use crate::postgres_url::{PostgresUrl, TlsMode};
pub use crate::setting_layers::{FileSetting, ResolvedConfig, SettingLayers};
pub use crate::setting_syntax::{DurationSyntax, NetworkListSyntax, SettingSyntax, SizeSyntax};
pub use crate::settings::{SETTINGS, Setting};
pub use crate::token_issuer::{
    AccountClaim, IssuerKeySource, PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHMS, TokenIssuer,
};

/// Every setting of a running server, already validated.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name or address to listen on; `localhost` means 127.0.0.1 and, if available, ::1.
    pub host: String,
    /// 0 lets the system choose a port.
    pub port: u16,
    /// The folder of the embedded store, its lock file included.
    pub data: PathBuf,
    pub database: DatabaseLocation,
    /// PostgreSQL connections for transactions and long lists, in addition to a few shared ones.
    pub database_connections: usize,
    /// Maximum time that a request waits for one of them.
    pub database_timeout: Duration,
    /// Whether nodes announce changes with NOTIFY; otherwise they poll ten times a second.
    pub database_notify: bool,
    /// Allows listening beyond loopback although the schema has no rules.
    pub open: bool,
    /// Reloads the schema when its files change.
    pub watch: bool,
    /// The certificate in PEM, with those between it and the root; without it the server speaks plain HTTP.
    pub tls_cert: Option<PathBuf>,
    /// Its private key in PEM.
    pub tls_key: Option<PathBuf>,
    /// How long browsers are told to come by HTTPS only; zero tells them nothing.
    pub hsts: Duration,
    /// Proxies whose `Forwarded` headers are trusted.
    pub trusted_proxies: Vec<IpNetwork>,
    /// Host names that requests may use besides the server's own; empty means none, and beyond loopback any.
    pub allowed_hosts: Vec<String>,
    /// Origins of other sites whose pages may call the server; empty means none.
    pub cors_origins: Vec<String>,
    pub log_format: LogFormat,
    /// The zone in which times are grouped by days, months and other periods.
    pub time_zone: Arc<ZoneOffsets>,
    pub introspection: bool,
    pub graphiql: bool,
    /// No rate limit if `None`.
    pub rate_limit: Option<RateLimit>,
    /// Who may read `/metrics` from other machines, if the schema has rules.
    pub see_metrics: String,
    /// The flag or variable that gave that rule, for messages about it. `None` if `trefoil.toml` has it or may have it.
    pub see_metrics_place: Option<String>,
    /// Who may read the audit: a rule.
    pub see_audit: String,
    /// The same of that rule.
    pub see_audit_place: Option<String>,
    /// How people sign in, if a type of the schema has accounts.
    pub accounts: AccountSettings,
    pub limits: ServerLimits,
    /// Time between the stop signal and the end of service, during which the readiness check fails already.
    pub shutdown_delay: Duration,
    /// Interval at which an open subscription sends a heartbeat with its current position.
    pub heartbeat: Duration,
    /// Minimum number of changes kept for replay …
    pub keep_changes: u64,
    /// … and the minimum time.
    pub keep_changes_for: Duration,
}

/// Sessions, links and passwords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSettings {
    /// How long a session lasts without a request …
    pub session_idle: Duration,
    /// … and in any case.
    pub session_lifetime: Duration,
    pub link_lifetime: Duration,
    /// The fewest characters of a new password.
    pub password_length: usize,
    /// Bytes of memory that hashing takes.
    pub password_memory: usize,
    pub password_rounds: u32,
    /// Takes passwords and session cookies over plain HTTP from other machines.
    pub insecure: bool,
    pub audit: AuditMode,
    /// How long entries of the audit are kept.
    pub audit_for: Duration,
}

/// What the audit of an application with rules notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditMode {
    /// Sign-ins and credentials, and every write of a record.
    Writes,
    /// Sign-ins and credentials alone.
    Trust,
    Off,
}

impl Default for AccountSettings {
    fn default() -> AccountSettings {
        let day = Duration::from_secs(24 * 3600);
        AccountSettings {
            session_idle: 7 * day,
            session_lifetime: 30 * day,
            link_lifetime: day,
            password_length: 12,
            password_memory: 19 << 20,
            password_rounds: 2,
            insecure: false,
            audit: AuditMode::Writes,
            audit_for: 90 * day,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// SQLite in the data folder.
    Embedded,
    /// SQLite in memory, lost with the process.
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
    pub address: IpAddr,
    pub prefix: u8,
}

impl IpNetwork {
    /// Whether the address is in the network. An IPv4 address in IPv6 notation is an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
                u32::from(base) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix.min(128))).unwrap_or(0);
                u128::from(base) & mask == u128::from(address) & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Limits of sizes, times and requests; each is named in the error that it causes.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    pub body: usize,
    pub headers: usize,
    pub header_timeout: Duration,
    /// From the first byte of a request until its response begins.
    pub request_timeout: Duration,
    /// A client that reads no byte for this long is disconnected.
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
    /// Records that one operation creates, changes or deletes.
    pub bulk: usize,
    /// Requests in one batch.
    pub batch: usize,
    /// Records that a search without an index reads.
    pub search_rows: usize,
    /// Groups of one aggregate.
    pub groups: usize,
    /// Bytes of cached GraphQL documents, parsed and planned.
    pub document_cache: usize,
    /// Bytes of cached responses; 0 disables the cache.
    pub answer_cache: usize,
    /// Bytes of cached rows and frames of list pages.
    pub page_parts: usize,
    /// Bytes of cached changes and events for subscribers.
    pub event_cache: usize,
    /// Maximum size of a WebSocket message from a client.
    pub socket_message: usize,
    /// Subscriptions open at once on one WebSocket.
    pub socket_subscriptions: usize,
    /// A WebSocket is closed if it has not sent `connection_init` by then.
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
            bulk: 10_000,
            batch: 100,
            search_rows: 100_000,
            groups: 10_000,
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

impl Config {
    /// Whether clients reach the server by HTTPS.
    pub fn is_encrypted(&self) -> bool {
        self.tls_cert.is_some()
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
            time_zone: ZoneOffsets::utc(),
            introspection: true,
            graphiql: true,
            rate_limit: None,
            see_metrics: "false".into(),
            see_metrics_place: Some("auth-see-metrics".into()),
            see_audit: "false".into(),
            see_audit_place: Some("auth-see-audit".into()),
            accounts: AccountSettings::default(),
            limits: ServerLimits::default(),
            tls_cert: None,
            tls_key: None,
            hsts: Duration::ZERO,
            shutdown_delay: Duration::ZERO,
            heartbeat: Duration::from_secs(15),
            keep_changes: 100_000,
            keep_changes_for: Duration::from_secs(7 * 24 * 3600),
        }
    }
}
