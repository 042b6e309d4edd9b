//! Makes connections to one PostgreSQL database: hosts in turn, within a time, with the same settings on each.

use std::path::Path;
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{AsyncMessage, Client, Config, Notification, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::postgres::connections::connect_error::{Trouble, words};
use crate::postgres::connections::tls;
use trefoil_config::{PostgresUrl, Tls};

/// For each host, from the first byte to a session that can be used.
const CONNECT: Duration = Duration::from_secs(3);
/// A server that takes no bytes for so long is gone, whatever the system's own patience is.
const UNHEARD: Duration = Duration::from_secs(5);
/// One that works off a batch reads nothing meanwhile. Silence of another kind is found by the watch.
const AT_WORK: Duration = Duration::from_secs(60);

/// Where this machine's PostgreSQL has its socket when nothing else is said.
const SOCKETS: [&str; 2] = ["/run/postgresql", "/var/run/postgresql"];

/// What is the same on every session, whatever the database's own defaults are: values are read as text.
/// A single statement sees what is committed when it begins, and numbering what is committed when it has its lock.
const SESSION: &str = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET client_encoding = 'UTF8'; \
                       SET default_transaction_isolation = 'read committed'; \
                       SELECT pg_backend_pid()";

/// What is set only where nobody has set it for the database, the role or in the address. A setting that the engine
/// does not have is passed over.
const BOUNDS: &str = "SELECT set_config(name, value, false) FROM (VALUES \
                      ('lock_timeout', $2), ('idle_in_transaction_session_timeout', '60s'), \
                      ('statement_timeout', $1)) AS wanted (name, value) \
                      WHERE current_setting(name, true) = '0'";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Single statements of everyone. They cannot be cancelled one by one, so each ends by itself.
    Shared,
    /// Numbering, reading and announcing changes.
    Log,
    /// One caller's transactions and streams. They end when the caller does.
    Own,
    /// Migration and inquiries: nothing bounds what they do.
    Alone,
}

impl Purpose {
    /// How long what was sent may wait to be taken.
    fn patience(self) -> Duration {
        match self {
            Purpose::Shared | Purpose::Log => UNHEARD,
            Purpose::Own | Purpose::Alone => AT_WORK,
        }
    }
}

/// One database, as often as it is connected to.
pub struct Target {
    /// One for each host.
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
    patience: Duration,
    /// The address without its password.
    shown: String,
}

/// A session, and the task that moves its bytes; the task ends with the reason why the connection did.
pub struct Session {
    pub client: Client,
    pub driver: JoinHandle<String>,
    /// The server's process; none where nobody says.
    pub pid: Option<i32>,
}

impl Target {
    pub fn new(url: &PostgresUrl) -> Result<Target, String> {
        let mut hosts = Vec::new();
        for (host, port) in &url.hosts {
            hosts.push(config(url, host, *port)?);
        }
        if hosts.is_empty() {
            let socket = SOCKETS.into_iter().find(|folder| Path::new(folder).is_dir());
            hosts.push(config(url, socket.unwrap_or("localhost"), None)?);
        }
        let patience = hosts.iter().find_map(Config::get_connect_timeout).copied().unwrap_or(CONNECT);
        Ok(Target { hosts, tls: tls::connector(url)?, patience, shown: url.to_string() })
    }

    pub fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// The first host that takes us. What it tells by NOTIFY goes to `heard`.
    pub async fn connect(
        &self,
        purpose: Purpose,
        heard: impl Fn(Notification) + Clone + Send + 'static,
    ) -> Result<Session, Trouble> {
        let mut troubles = Vec::new();
        for host in &self.hosts {
            let one = self.connect_to(host, purpose, heard.clone());
            let late = |_| Trouble::passing(format!("no answer within {:?}", self.patience));
            match tokio::time::timeout(self.patience, one).await.map_err(late).flatten() {
                Ok(session) => return Ok(session),
                Err(trouble) => troubles.push(trouble),
            }
        }
        let is_lasting = troubles.iter().all(|trouble| trouble.is_lasting);
        let is_answer = troubles.iter().any(|trouble| trouble.is_answer);
        let mut all: Vec<String> = troubles.into_iter().map(|trouble| trouble.words).collect();
        all.dedup();
        Err(Trouble { words: format!("{}: {}", self.shown, all.join("; ")), is_lasting, is_answer })
    }

    async fn connect_to(
        &self,
        host: &Config,
        purpose: Purpose,
        heard: impl Fn(Notification) + Send + 'static,
    ) -> Result<Session, Trouble> {
        let mut host = host.clone();
        host.tcp_user_timeout(purpose.patience());
        let (client, mut connection) =
            host.connect(self.tls.clone()).await.map_err(|error| Trouble::from(&error))?;
        let driver = tokio::spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => heard(notification),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return words(&error),
                    None => return "closed".to_owned(),
                }
            }
        });
        let abort = AbortOnDrop(Some(driver));
        let pid = set_up(&client, purpose).await.map_err(|error| Trouble::from(&error))?;
        Ok(Session { client, driver: abort.keep(), pid })
    }
}

/// A session that is not finished in time must not stay open.
struct AbortOnDrop(Option<JoinHandle<String>>);

impl AbortOnDrop {
    fn keep(mut self) -> JoinHandle<String> {
        self.0.take().expect("kept once")
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(driver) = &self.0 {
            driver.abort();
        }
    }
}

async fn set_up(client: &Client, purpose: Purpose) -> Result<Option<i32>, tokio_postgres::Error> {
    let answers = client.simple_query(SESSION).await?;
    let pid = answers.iter().find_map(|answer| {
        let SimpleQueryMessage::Row(row) = answer else { return None };
        row.get(0)?.parse().ok()
    });
    let (longest, locked) = match purpose {
        // Others wait behind whoever waits here; who needs longer goes on with a connection of its own.
        Purpose::Shared => ("30s", "250ms"),
        Purpose::Log => ("30s", "5s"),
        Purpose::Own => ("0", "5s"),
        Purpose::Alone => return Ok(pid),
    };
    client.query(BOUNDS, &[&longest, &locked]).await?;
    Ok(pid)
}

fn config(url: &PostgresUrl, host: &str, port: Option<u16>) -> Result<Config, String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
    let others: Vec<String> =
        url.others.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    let mut config: Config = others.join(" ").parse().map_err(|error| words(&error))?;
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
    if !url.others.iter().any(|(name, _)| *name == "target_session_attrs") {
        // A standby takes no writes; among several hosts this finds the one that does.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    config.ssl_mode(match url.tls {
        _ if host.starts_with('/') => SslMode::Disable,
        Tls::Disable => SslMode::Disable,
        Tls::Prefer => SslMode::Prefer,
        Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
    });
    config.keepalives_idle(UNHEARD).keepalives_interval(Duration::from_secs(2)).keepalives_retries(3);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    Ok(config)
}
