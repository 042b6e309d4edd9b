//! Makes connections to one PostgreSQL database: hosts in turn, within a time, with the same settings on each.

use std::path::Path;
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, Notification, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::postgres::connections::connect_error::{ConnectError, error_message};
use crate::postgres::connections::tls;
use trefoil_config::{PostgresUrl, TlsMode};

/// For each host, from the first byte to a session that can be used.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A server that takes no bytes for so long is gone, whatever the system's own patience is.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// One that works off a batch reads nothing meanwhile. Silence of another kind is found by the watch.
const LONG_SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Where this machine's PostgreSQL has its socket when nothing else is said.
const SOCKET_FOLDERS: [&str; 2] = ["/run/postgresql", "/var/run/postgresql"];

/// What is the same on every session, whatever the database's own defaults are: values are read as text.
/// A single statement sees what is committed when it begins, and numbering what is committed when it has its lock.
const SESSION_SETTINGS: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET client_encoding = 'UTF8'; \
                       SET default_transaction_isolation = 'read committed'; \
                       SELECT pg_backend_pid()";

/// What is set only where nobody has set it for the database, the role or in the address. A setting that the engine
/// does not have is passed over.
const SESSION_TIMEOUTS: &str = "SELECT set_config(name, value, false) FROM (VALUES \
                      ('lock_timeout', $2), ('idle_in_transaction_session_timeout', '60s'), \
                      ('statement_timeout', $1)) AS wanted (name, value) \
                      WHERE current_setting(name, true) = '0'";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// Single statements of everyone. They cannot be cancelled one by one, so each ends by itself.
    Shared,
    /// Numbering, reading and announcing changes.
    ChangeLog,
    /// One caller's transactions and streams. They end when the caller does.
    Pooled,
    /// Migration and inquiries: nothing bounds what they do.
    Maintenance,
}

impl ConnectionPurpose {
    /// How long what was sent may wait to be taken.
    fn send_timeout(self) -> Duration {
        match self {
            ConnectionPurpose::Shared | ConnectionPurpose::ChangeLog => SEND_TIMEOUT,
            ConnectionPurpose::Pooled | ConnectionPurpose::Maintenance => LONG_SEND_TIMEOUT,
        }
    }
}

/// One database, as often as it is connected to.
pub struct ConnectTarget {
    /// One for each host.
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    connect_timeout: Duration,
    /// The address without its password.
    display_url: String,
}

/// A session, and the task that moves its bytes; the task ends with the reason why the connection did.
pub struct RawConnection {
    pub client: Client,
    pub driver: JoinHandle<String>,
    /// The server's process; none where nobody says.
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
        let patience = hosts.iter().find_map(Config::get_connect_timeout).copied().unwrap_or(CONNECT_TIMEOUT);
        Ok(ConnectTarget {
            hosts,
            tls: tls::tls_connector(url)?,
            connect_timeout: patience,
            display_url: url.to_string(),
        })
    }

    pub fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// The first host that takes us. What it tells by NOTIFY goes to `heard`.
    pub async fn connect(
        &self,
        purpose: ConnectionPurpose,
        heard: impl Fn(Notification) + Clone + Send + 'static,
    ) -> Result<RawConnection, ConnectError> {
        let mut troubles = Vec::new();
        for host in &self.hosts {
            let one = self.connect_to(host, purpose, heard.clone());
            let late = |_| ConnectError::transient(format!("no answer within {:?}", self.connect_timeout));
            match tokio::time::timeout(self.connect_timeout, one).await.map_err(late).flatten() {
                Ok(session) => return Ok(session),
                Err(trouble) => troubles.push(trouble),
            }
        }
        let is_lasting = troubles.iter().all(|trouble| trouble.is_permanent);
        let is_answer = troubles.iter().any(|trouble| trouble.is_server_reply);
        let mut all: Vec<String> = troubles.into_iter().map(|trouble| trouble.message).collect();
        all.dedup();
        Err(ConnectError {
            message: format!("{}: {}", self.display_url, all.join("; ")),
            is_permanent: is_lasting,
            is_server_reply: is_answer,
        })
    }

    async fn connect_to(
        &self,
        host: &Config,
        purpose: ConnectionPurpose,
        heard: impl Fn(Notification) + Send + 'static,
    ) -> Result<RawConnection, ConnectError> {
        let mut host = host.clone();
        host.tcp_user_timeout(purpose.send_timeout());
        let (client, mut connection) =
            host.connect(self.tls.clone()).await.map_err(|error| ConnectError::from(&error))?;
        let driver = tokio::spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => heard(notification),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return error_message(&error),
                    None => return "closed".to_owned(),
                }
            }
        });
        let abort = DriverGuard(Some(driver));
        let pid = configure_session(&client, purpose).await.map_err(|error| ConnectError::from(&error))?;
        Ok(RawConnection { client, driver: abort.into_handle(), pid })
    }
}

/// A session that is not finished in time must not stay open.
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
    let answers = client.simple_query(SESSION_SETTINGS).await?;
    let pid = answers.iter().find_map(|answer| {
        let SimpleQueryMessage::Row(row) = answer else { return None };
        row.get(0)?.parse().ok()
    });
    let (longest, locked) = match purpose {
        // Others wait behind whoever waits here; who needs longer goes on with a connection of its own.
        ConnectionPurpose::Shared => ("30s", "250ms"),
        ConnectionPurpose::ChangeLog => ("30s", "5s"),
        ConnectionPurpose::Pooled => ("0", "5s"),
        ConnectionPurpose::Maintenance => return Ok(pid),
    };
    client.query(SESSION_TIMEOUTS, &[&longest, &locked]).await?;
    Ok(pid)
}

fn connect_config(url: &PostgresUrl, host: &str, port: Option<u16>) -> Result<Config, String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let others: Vec<String> =
        url.driver_parameters.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    let mut config: Config = others.join(" ").parse().map_err(|error| error_message(&error))?;
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
        // A standby takes no writes; among several hosts this finds the one that does.
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
