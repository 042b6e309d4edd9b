//! Opens connections to one PostgreSQL database: tries the hosts in turn, each with a timeout, and sets up the session.

use std::path::Path;
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, Notification, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use trefoil_config::{PostgresUrl, TlsMode};

use crate::postgres::connections::connect_error::{ConnectError, error_message};
use crate::postgres::connections::tls;

/// The time for each host, from the first byte to a usable session.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A server that acknowledges no bytes for this time is gone, whatever the system's own timeout is.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for connections whose server may be busy with a batch and not read meanwhile. Lost connections are detected
/// by `liveness` sooner.
const LONG_SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// The folders of the local server's socket, used if the URL names no host.
const SOCKET_FOLDERS: [&str; 2] = ["/run/postgresql", "/var/run/postgresql"];

/// Settings of every session, whatever the defaults of the database: values are read as text. Read committed, so that
/// a statement sees what is committed when it begins, and numbering what is committed when it has its lock.
const SESSION_SETTINGS: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET client_encoding = 'UTF8'; \
                       SET default_transaction_isolation = 'read committed'; SET jit = off; \
                       SELECT pg_backend_pid()";

/// Timeouts that are set unless the database, the role or the URL sets them. Settings that the server does not know are
/// skipped.
const SESSION_TIMEOUTS: &str = "SELECT set_config(name, value, false) FROM (VALUES \
                      ('lock_timeout', $2), ('idle_in_transaction_session_timeout', '60s'), \
                      ('statement_timeout', $1)) AS wanted (name, value) \
                      WHERE current_setting(name, true) = '0'";

/// The use of a connection, which determines its timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// Single statements of many callers. They cannot be cancelled individually, so each has a timeout.
    Shared,
    /// Numbers, reads and announces changes.
    ChangeLog,
    /// Transactions and streams of one caller, which end with the caller.
    Pooled,
    /// Migrations and lookups, without timeouts.
    Maintenance,
}

impl ConnectionPurpose {
    /// How long sent bytes may stay unacknowledged.
    fn send_timeout(self) -> Duration {
        match self {
            ConnectionPurpose::Shared | ConnectionPurpose::ChangeLog => SEND_TIMEOUT,
            ConnectionPurpose::Pooled | ConnectionPurpose::Maintenance => LONG_SEND_TIMEOUT,
        }
    }
}

/// The address and TLS settings of a database.
pub struct ConnectTarget {
    /// One configuration per host.
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    connect_timeout: Duration,
    /// The URL without its password.
    display_url: String,
}

/// A client and the task that drives its connection. The task returns the reason why the connection ended.
pub struct RawConnection {
    pub client: Client,
    pub driver: JoinHandle<String>,
    /// The server's process id; `None` if it is unknown.
    pub pid: Option<i32>,
}

impl ConnectTarget {
    pub fn new(url: &PostgresUrl) -> Result<ConnectTarget, String> {
        let mut hosts = Vec::new();
        for (host, port) in &url.hosts {
            hosts.push(connect_config(url, host, *port)?);
        }
        if hosts.is_empty() {
            let socket = SOCKET_FOLDERS.into_iter().find(|folder| Path::new(folder).is_dir());
            hosts.push(connect_config(url, socket.unwrap_or("localhost"), None)?);
        }
        let connect_timeout =
            hosts.iter().find_map(Config::get_connect_timeout).copied().unwrap_or(CONNECT_TIMEOUT);
        Ok(ConnectTarget {
            hosts,
            tls: tls::tls_connector(url)?,
            connect_timeout,
            display_url: url.to_string(),
        })
    }

    pub fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// Connects to the first host that accepts. Notifications go to `on_notification`.
    pub async fn connect(
        &self,
        purpose: ConnectionPurpose,
        on_notification: impl Fn(Notification) + Clone + Send + 'static,
    ) -> Result<RawConnection, ConnectError> {
        let mut errors = Vec::new();
        for host in &self.hosts {
            let attempt = self.connect_to(host, purpose, on_notification.clone());
            let timed_out =
                |_| ConnectError::transient(format!("no response within {:?}", self.connect_timeout));
            match tokio::time::timeout(self.connect_timeout, attempt).await.map_err(timed_out).flatten() {
                Ok(session) => return Ok(session),
                Err(error) => errors.push(error),
            }
        }
        let is_permanent = errors.iter().all(|error| error.is_permanent);
        let is_server_reply = errors.iter().any(|error| error.is_server_reply);
        let mut messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
        messages.dedup();
        Err(ConnectError {
            message: format!("{}: {}", self.display_url, messages.join("; ")),
            is_permanent,
            is_server_reply,
        })
    }

    async fn connect_to(
        &self,
        host: &Config,
        purpose: ConnectionPurpose,
        on_notification: impl Fn(Notification) + Send + 'static,
    ) -> Result<RawConnection, ConnectError> {
        let mut host = host.clone();
        host.tcp_user_timeout(purpose.send_timeout());
        let (client, mut connection) =
            host.connect(self.tls.clone()).await.map_err(|error| ConnectError::from(&error))?;
        let driver = tokio::spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => on_notification(notification),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return error_message(&error),
                    None => return "closed".to_owned(),
                }
            }
        });
        let guard = DriverGuard(Some(driver));
        let pid = configure_session(&client, purpose).await.map_err(|error| ConnectError::from(&error))?;
        Ok(RawConnection { client, driver: guard.into_handle(), pid })
    }
}

/// Aborts the driver if the session is not set up in time, so that the connection does not stay open.
struct DriverGuard(Option<JoinHandle<String>>);

impl DriverGuard {
    fn into_handle(mut self) -> JoinHandle<String> {
        self.0.take().expect("kept once")
    }
}

impl Drop for DriverGuard {
    fn drop(&mut self) {
        if let Some(driver) = &self.0 {
            driver.abort();
        }
    }
}

async fn configure_session(
    client: &Client,
    purpose: ConnectionPurpose,
) -> Result<Option<i32>, tokio_postgres::Error> {
    let messages = client.simple_query(SESSION_SETTINGS).await?;
    let pid = messages.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0)?.parse().ok()
    });
    let (statement_timeout, lock_timeout) = match purpose {
        // Other callers queue behind a lock wait here; a write that waits longer moves to a pooled connection.
        ConnectionPurpose::Shared => ("30s", "250ms"),
        ConnectionPurpose::ChangeLog => ("30s", "5s"),
        ConnectionPurpose::Pooled => ("0", "5s"),
        ConnectionPurpose::Maintenance => return Ok(pid),
    };
    client.query(SESSION_TIMEOUTS, &[&statement_timeout, &lock_timeout]).await?;
    Ok(pid)
}

fn connect_config(url: &PostgresUrl, host: &str, port: Option<u16>) -> Result<Config, String> {
    let quote = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let parameters: Vec<String> =
        url.driver_parameters.iter().map(|(name, value)| format!("{name}={}", quote(value))).collect();
    let mut config: Config = parameters.join(" ").parse().map_err(|error| error_message(&error))?;
    config.host(host).port(port.unwrap_or(5432));
    if let Some(user) = &url.user {
        config.user(user);
    }
    if let Some(password) = &url.password {
        config.password(password);
    }
    if let Some(database) = &url.database {
        config.dbname(database);
    }
    if config.get_application_name().is_none() {
        config.application_name("trefoil");
    }
    if !url.driver_parameters.iter().any(|(name, _)| *name == "target_session_attrs") {
        // A standby accepts no writes; among several hosts this finds the primary.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.ssl_mode(match url.tls {
        _ if host.starts_with('/') => SslMode::Disable,
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
    });
    config.keepalives_idle(SEND_TIMEOUT).keepalives_interval(Duration::from_secs(2)).keepalives_retries(3);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    Ok(config)
}
