//! The host check: compares the `Host` of a request with the server's own names and `allowed-hosts`.
//!
//! With DNS rebinding any site can make its own name resolve to this machine. To the browser such a request is
//! same-origin, and only the host name tells it from a legitimate one.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use http::header::HOST;
use http::{HeaderValue, StatusCode};

use trefoil_config::Config;

use crate::errors::problem::Problem;
use crate::response_headers::RequestId;

/// Longer names are cut in errors.
const LONGEST_NAME: usize = 255;

/// The names and addresses that a server answers to.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    /// The server listens on loopback only, or `allowed-hosts` is set.
    is_checked: bool,
    names: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
}

impl AllowedHosts {
    /// For a server that listens on these addresses.
    pub fn new(config: &Config, listen_addresses: &[SocketAddr]) -> AllowedHosts {
        let is_local = listen_addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
        let is_checked = is_local || !config.allowed_hosts.is_empty();
        let mut hosts = AllowedHosts { is_checked, names: Vec::new(), addresses: Vec::new() };
        config.allowed_hosts.iter().chain([&config.host]).for_each(|host| hosts.add(host));
        hosts
    }

    fn add(&mut self, host: &str) {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        match bare.parse::<IpAddr>() {
            Ok(address) => self.addresses.push(address.to_canonical()),
            Err(_) => self.names.push(host.strip_suffix('.').unwrap_or(host).into()),
        }
    }

    /// Refuses requests for other hosts. Health checks pass, because load balancers use whatever address they know, and
    /// the response reveals only that the server is up. HTTP/1.0 requests may have no host; browsers do not send them.
    pub fn check(&self, request: &Request, request_id: Option<&RequestId>) -> Result<(), Problem> {
        if !self.is_checked {
            return Ok(());
        }
        let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let named = target.or_else(|| request.headers().get(HOST).map(HeaderValue::as_bytes));
        match named {
            Some(host) if !self.answers_to(host) && !request.uri().path().starts_with("/health/") => {
                Err(refusal(host, request_id))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether this host is ours, the port aside: `localhost`, `LOCALHOST.:8080`, `[::1]:80`.
    fn answers_to(&self, host: &[u8]) -> bool {
        if let Some(rest) = host.strip_prefix(b"[") {
            let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
            return self.answers_at(&rest[..end]);
        }
        let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
        let name = name.strip_suffix(b".").unwrap_or(name);
        is_localhost(name)
            || self.names.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
            || name.first().is_some_and(u8::is_ascii_digit) && self.answers_at(name)
    }

    fn answers_at(&self, address: &[u8]) -> bool {
        let address = std::str::from_utf8(address).ok().and_then(|text| text.parse::<IpAddr>().ok());
        address
            .map(|address| address.to_canonical())
            .is_some_and(|address| address.is_loopback() || self.addresses.contains(&address))
    }
}

/// `localhost` and every name below it: they always resolve to this machine (RFC 6761).
fn is_localhost(name: &[u8]) -> bool {
    const LOCALHOST: &[u8] = b"localhost";
    let Some(before) = name.len().checked_sub(LOCALHOST.len()) else { return false };
    let (before, rest) = name.split_at(before);
    rest.eq_ignore_ascii_case(LOCALHOST) && (before.is_empty() || before.len() > 1 && before.ends_with(b"."))
}

fn refusal(host: &[u8], request_id: Option<&RequestId>) -> Problem {
    let shown = String::from_utf8_lossy(&host[..host.len().min(LONGEST_NAME)]).into_owned();
    tracing::warn!(
        request_id = request_id.map(RequestId::as_str),
        host = shown,
        "rejected a request for an unknown host; add it to allowed-hosts to serve it"
    );
    let detail =
        format!("the host {shown:?} (Host header) is not served; add it to allowed-hosts to serve it");
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "HOST_NOT_ALLOWED", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listens: &str, allowed: &[&str], host: &str) -> bool {
        let allowed_hosts = allowed.iter().map(|&name| name.to_owned()).collect();
        let config = Config { allowed_hosts, host: "Box.local".into(), ..Config::default() };
        let hosts = AllowedHosts::new(&config, &[listens.parse().expect("an address")]);
        let request =
            Request::builder().header(HOST, host).body(axum::body::Body::empty()).expect("a request");
        hosts.check(&request, None).is_ok()
    }

    #[test]
    fn loopback_server_accepts_own_names_only() {
        let ours = [
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "localhost.:80",
            "app.localhost",
            "a.b.LOCALHOST.:1",
            "127.0.0.1",
            "127.0.0.1:9",
            "127.255.1.2",
            "[::1]",
            "[::1]:80",
            "[::ffff:127.0.0.1]",
            "box.local:80",
        ];
        for host in ours {
            assert!(check("127.0.0.1:80", &[], host) && check("[::1]:80", &[], host), "{host}");
        }
        let others = [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            ".localhost",
            "localhost..",
            "127.0.0.1.evil.example",
            "128.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]:80",
            "192.168.1.5",
            "2130706433",
            "0x7f.1",
            "",
        ];
        for host in others {
            assert!(!check("127.0.0.1:80", &[], host) && !check("[::1]:80", &[], host), "{host}");
        }
    }

    #[test]
    fn allowed_hosts_are_accepted() {
        let listed = ["shop.example", "Other.Example.", "192.168.1.5", "fd00::1"];
        for host in ["shop.example", "SHOP.example.:443", "other.example", "192.168.1.5:80", "[fd00:0::1]:80"]
        {
            assert!(check("127.0.0.1:80", &listed, host) && check("0.0.0.0:80", &listed, host), "{host}");
        }
        for host in ["www.shop.example", "192.168.1.50", "[fd00::2]"] {
            assert!(!check("127.0.0.1:80", &listed, host) && !check("0.0.0.0:80", &listed, host), "{host}");
        }
        assert!(check("0.0.0.0:80", &listed, "localhost:80"), "nobody else can have that name");
        assert!(check("0.0.0.0:80", &[], "evil.example"), "who listens to all and lists none serves all");
    }
}
