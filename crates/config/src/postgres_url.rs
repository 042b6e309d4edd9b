//! Parses a PostgreSQL URL and prints it without the password.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;

use trefoil_model::naming::names::nearest_name;

/// The address and connection parameters of a PostgreSQL database. Neither `Display` nor `Debug` shows the
/// password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct PostgresUrl {
    /// Host names, addresses or, with a leading slash, socket folders; tried in this order. Empty means this
    /// machine.
    pub hosts: Vec<(String, Option<u16>)>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: Option<String>,
    pub tls: TlsMode,
    /// Certificates that may sign the server's; without it those of the system.
    pub root_certificates: Option<PathBuf>,
    /// Parameters for the driver, by their libpq names.
    pub driver_parameters: Vec<(&'static str, String)>,
}

/// How strictly the server is verified. Above `Prefer` its certificate is always checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    Disable,
    /// Encrypted if the server supports it; certificates are not checked.
    #[default]
    Prefer,
    /// Same as `VerifyFull`: encryption without verification does not protect against anyone who can reach the
    /// network.
    Require,
    /// The certificate is checked, the host name is not.
    VerifyCa,
    VerifyFull,
}

const TLS_MODES: [(&str, TlsMode); 5] = [
    ("disable", TlsMode::Disable),
    ("prefer", TlsMode::Prefer),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

/// Parameters passed to the driver, with their allowed values; empty means any.
const DRIVER_PARAMETERS: [(&str, &[&str]); 5] = [
    ("application_name", &[]),
    ("channel_binding", &["disable", "prefer", "require"]),
    ("connect_timeout", &[]),
    ("options", &[]),
    ("target_session_attrs", &["any", "read-write"]),
];

const OWN_PARAMETERS: [&str; 7] = ["dbname", "host", "password", "port", "sslmode", "sslrootcert", "user"];

impl PostgresUrl {
    /// True if the text has a PostgreSQL scheme, valid or not.
    pub fn has_postgres_scheme(text: &str) -> bool {
        text.starts_with("postgres:") || text.starts_with("postgresql:")
    }

    /// Errors never quote the text around a host or port: an unescaped password would look like one.
    pub fn parse(text: &str) -> Result<PostgresUrl, String> {
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or("a PostgreSQL URL must start with postgres://")?;
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = location.split_once('/').unwrap_or((location, ""));
        let mut url = PostgresUrl::default();
        let hosts = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => {
                let (user, password) =
                    credentials.split_once(':').map_or((credentials, None), |(u, p)| (u, Some(p)));
                url.user = non_empty(percent_decode(user)?);
                url.password = password.map(percent_decode).transpose()?;
                hosts
            }
            None => authority,
        };
        for host in hosts.split(',').filter(|host| !host.is_empty()) {
            url.hosts.push(parse_host_and_port(host)?);
        }
        url.database = non_empty(percent_decode(database)?);
        url.apply_parameters(query)?;
        Ok(url)
    }

    fn apply_parameters(&mut self, query: &str) -> Result<(), String> {
        let (mut tls, mut ports) = (None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode(value)?;
            match key {
                "host" => self.hosts = value.split(',').map(|host| (host.to_owned(), None)).collect(),
                "port" => ports = value.split(',').map(parse_port).collect::<Result<_, _>>()?,
                "user" => self.user = Some(value),
                "password" => self.password = Some(value),
                "dbname" => self.database = Some(value),
                "sslmode" => tls = Some(parse_tls_mode(&value)?),
                "sslrootcert" => self.root_certificates = Some(PathBuf::from(value)),
                _ => self.driver_parameters.push(driver_parameter(key, value)?),
            }
        }
        self.apply_ports(&ports)?;
        self.resolve_tls(tls)
    }

    /// Applies the `port` parameter: one port for all hosts, or one for each.
    fn apply_ports(&mut self, ports: &[Option<u16>]) -> Result<(), String> {
        if ports.is_empty() {
            return Ok(());
        }
        if self.hosts.is_empty() {
            self.hosts.push(("localhost".to_owned(), None));
        }
        if ports.len() != 1 && ports.len() != self.hosts.len() {
            return Err("`port` must be one port, or one port for each host".to_owned());
        }
        for (position, (_, port)) in self.hosts.iter_mut().enumerate() {
            *port = *ports.get(position).unwrap_or(&ports[0]);
        }
        Ok(())
    }

    /// Decides the TLS mode: naming root certificates implies verification.
    fn resolve_tls(&mut self, requested: Option<TlsMode>) -> Result<(), String> {
        self.tls = match (requested, &self.root_certificates) {
            (None, Some(_)) => TlsMode::VerifyFull,
            (None, None) => TlsMode::default(),
            (Some(TlsMode::Disable | TlsMode::Prefer), Some(_)) => {
                return Err("`sslrootcert` needs sslmode=require, verify-ca or verify-full".to_owned());
            }
            (Some(tls), _) => tls,
        };
        // In libpq, `system` means the system's own certificates.
        self.root_certificates.take_if(|root| root.as_os_str() == "system");
        Ok(())
    }

    /// True if every host is this machine.
    pub fn is_local(&self) -> bool {
        self.hosts.iter().all(|(host, _)| {
            let address = host.parse::<IpAddr>();
            host.starts_with('/') || host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        })
    }
}

fn parse_tls_mode(text: &str) -> Result<TlsMode, String> {
    let found = TLS_MODES.iter().find(|(name, _)| *name == text).map(|(_, tls)| *tls);
    found.ok_or_else(|| "`sslmode` must be disable, prefer, require, verify-ca or verify-full".to_owned())
}

fn driver_parameter(key: &str, value: String) -> Result<(&'static str, String), String> {
    let Some((name, values)) = DRIVER_PARAMETERS.iter().find(|(name, _)| *name == key) else {
        let known = DRIVER_PARAMETERS.iter().map(|(name, _)| *name).chain(OWN_PARAMETERS);
        // The text may be part of a password, so it is never quoted; only a similar known parameter is named.
        return Err(match nearest_name(key, known.clone()) {
            Some(close) => format!("unknown parameter; did you mean `{close}`?"),
            None => {
                let mut known: Vec<&str> = known.collect();
                known.sort_unstable();
                format!("unknown parameter after ?; expected one of {}", known.join(", "))
            }
        });
    };
    if *name == "connect_timeout" && value.parse::<u32>().map_or(true, |seconds| seconds == 0) {
        return Err("`connect_timeout` must be a number of seconds, at least 1".to_owned());
    }
    if !values.is_empty() && !values.contains(&value.as_str()) {
        return Err(format!("`{name}` must be one of {}", values.join(", ")));
    }
    Ok((name, value))
}

fn parse_host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let host = percent_decode(host)?;
    let is_valid = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || "@?#".contains(c));
    if !is_valid {
        return Err(format!("invalid host; {ESCAPE_HINT}"));
    }
    Ok((host, port.map_or(Ok(None), parse_port)?))
}

fn parse_port(text: &str) -> Result<Option<u16>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|port| *port > 0);
    number.map(Some).ok_or_else(|| format!("invalid port: expected a number from 1 to 65535; {ESCAPE_HINT}"))
}

const ESCAPE_HINT: &str = "in a password, write / as %2F, @ as %40, : as %3A, ? as %3F and % as %25";

fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Decodes `%2F` to `/`.
fn percent_decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|c| c.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or("% must be followed by two hexadecimal digits; write % itself as %25")?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| "the percent-encoded text is not valid UTF-8".to_owned())
}

/// Encodes everything that could end its part of the URL.
fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'=' => {
                out.push(char::from(byte));
            }
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if self.user.is_some() || self.password.is_some() {
            let password = if self.password.is_some() { ":***" } else { "" };
            write!(f, "{}{password}@", percent_encode(self.user.as_deref().unwrap_or_default()))?;
        }
        for (position, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            let host = if host.contains(':') { format!("[{host}]") } else { percent_encode(host) };
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            write!(f, "{comma}{host}{port}")?;
        }
        write!(f, "/{}", percent_encode(self.database.as_deref().unwrap_or_default()))?;
        let tls = TLS_MODES.iter().find(|(_, tls)| *tls == self.tls && *tls != TlsMode::default());
        let mut parameters: Vec<(&str, String)> =
            tls.map(|(name, _)| ("sslmode", (*name).to_owned())).into_iter().collect();
        parameters.extend(
            self.root_certificates
                .iter()
                .map(|root| ("sslrootcert", percent_encode(&root.display().to_string()))),
        );
        parameters.extend(self.driver_parameters.iter().map(|(name, value)| (*name, percent_encode(value))));
        for (position, (name, value)) in parameters.iter().enumerate() {
            write!(f, "{}{name}={value}", if position == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> PostgresUrl {
        PostgresUrl::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    /// Asserts that `text` is parsed and printed as `shown`, which parses to the same.
    fn assert_prints(text: &str, shown: &str) {
        assert_eq!(read(text).to_string(), shown, "{text:?}");
        assert_eq!(format!("{:?}", read(shown)), shown);
    }

    fn assert_refused(text: &str, expected: &str) {
        let error = PostgresUrl::parse(text).map(|url| url.to_string()).expect_err(text);
        assert!(error.contains(expected) && !error.contains('\n'), "{text:?}: {error}");
        assert!(!error.contains("secret") && !error.contains("s3c"), "{text:?}: {error}");
    }

    #[test]
    fn urls_print_without_the_password() {
        assert_prints("postgres://", "postgres:///");
        assert_prints("postgresql://me@db.example/shop", "postgres://me@db.example/shop");
        assert_prints("postgres://me:s3c%2Fret@db:5433/shop", "postgres://me:***@db:5433/shop");
        assert_prints("postgres://me:s3c@ret@db/shop", "postgres://me:***@db/shop");
        assert_prints("postgres://db/shop?user=me&password=s3cret", "postgres://me:***@db/shop");
        assert_prints("postgres://a:1,[::1]:2,c/shop", "postgres://a:1,[::1]:2,c/shop");
        assert_prints("postgres:///shop?host=/run/postgresql", "postgres://%2Frun%2Fpostgresql/shop");
        assert_prints("postgres://%2Frun%2Fpostgresql/shop", "postgres://%2Frun%2Fpostgresql/shop");
        assert_prints("postgres:///shop?port=5433", "postgres://localhost:5433/shop");
        assert_prints("postgres://a,b/shop?port=1,2", "postgres://a:1,b:2/shop");
        assert_prints("postgres://a/d?sslmode=require", "postgres://a/d?sslmode=require");
        assert_prints("postgres://a/d?sslmode=prefer", "postgres://a/d");
        assert_prints(
            "postgres://a/d?sslrootcert=/etc/ca.pem",
            "postgres://a/d?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
        );
        assert_prints("postgres://a/d?sslrootcert=system", "postgres://a/d?sslmode=verify-full");
        assert_prints(
            "postgres://a/d?options=-c%20geqo%3Doff&connect_timeout=5",
            "postgres://a/d?options=-c%20geqo=off&connect_timeout=5",
        );
        let url = read("postgres://m%C3%A9:s3c%2Fret@db/shop?sslmode=verify-ca");
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("mé"), Some("s3c/ret")));
        assert_eq!((url.tls, url.database.as_deref()), (TlsMode::VerifyCa, Some("shop")));
    }

    #[test]
    fn errors_hide_the_password() {
        assert_refused("postgres:db", "must start with postgres://");
        assert_refused("postgres://me:secret/more@db/shop", "in a password, write / as %2F");
        assert_refused("postgres://me:secret@:5432/shop", "invalid host");
        assert_refused("postgres://me:secret@db:x/shop", "invalid port");
        assert_refused("postgres://me:secret@db:0/shop", "invalid port");
        assert_refused("postgres://me:secret%zz@db/shop", "%25");
        assert_refused("postgres://me:secret%@db/shop", "%25");
        assert_refused("postgres://me:secret%ff@db/shop", "UTF-8");
        assert_refused("postgres://me:secret@db/shop?sslmode=allow", "`sslmode` must be disable, prefer");
        assert_refused("postgres://me:secret@db/shop?sslmod=require", "did you mean `sslmode`?");
        assert_refused("postgres://me:secret@db/shop?secret=1", "expected one of application_name");
        assert_refused("postgres://me:secret@db/shop?sslmode=prefer&sslrootcert=x", "needs sslmode=require");
        assert_refused("postgres://db/shop?connect_timeout=0", "at least 1");
        assert_refused("postgres://db/shop?target_session_attrs=x", "any, read-write");
        assert_refused("postgres://a,b,c/shop?port=1,2", "one port for each host");
    }

    #[test]
    fn local_urls() {
        for local in
            ["postgres:///d", "postgres://localhost/d", "postgres://[::1],127.0.0.2/d", "postgres://%2Frun/d"]
        {
            assert!(read(local).is_local(), "{local}");
        }
        assert!(!read("postgres://localhost,db.example/d").is_local());
    }
}
