//! Binds the port: an open application on loopback unless `open` is set, with a suggestion if the port is taken.

pub mod tls;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use trefoil_config::Config;

/// How many ports above a taken one are tried for the suggestion.
const PORTS_TO_TRY: u16 = 100;

/// How often port 0 is retried when the chosen port is free on only some of the addresses.
const PORT_ZERO_TRIES: usize = 10;

/// Binds every address of the host on one port; the error is one line.
pub async fn bind_listeners(config: &Config, is_protected: bool) -> Result<Vec<TcpListener>, String> {
    let (host, port) = (config.host.as_str(), config.port);
    let addresses = resolve_host(host).await?;
    let is_reachable = addresses.iter().any(|address| !address.to_canonical().is_loopback());
    if is_reachable && !config.open && !is_protected {
        return Err(format!(
            "other machines can reach host {host}, and without rules (@allow) all of them may read and change everything: \
             add --open to allow this"
        ));
    }
    let error = match bind_all(&addresses, port).await {
        Ok(listeners) => return Ok(listeners),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Err(format!("cannot listen on {host}:{port}: {error}"));
    }
    Err(match next_free_port(&addresses, port).await {
        Some(free) => {
            format!("port {port} on {host} is already in use; port {free} is free: use --port {free}")
        }
        None => format!(
            "port {port} on {host} is already in use; choose another with --port, or 0 for any free port"
        ),
    })
}

/// Whether other machines reach one of these addresses.
pub fn is_reachable(addresses: &[SocketAddr]) -> bool {
    addresses.iter().any(|address| !address.ip().to_canonical().is_loopback())
}

/// The URL of the first of these addresses.
pub fn server_url(addresses: &[SocketAddr], is_encrypted: bool) -> String {
    let scheme = if is_encrypted { "https" } else { "http" };
    match addresses.first() {
        Some(address) if address.ip() == Ipv4Addr::LOCALHOST || address.ip().is_unspecified() => {
            format!("{scheme}://localhost:{}", address.port())
        }
        Some(address) => format!("{scheme}://{address}"),
        None => "nowhere".to_owned(),
    }
}

/// Resolves the host. `localhost` is both loopback addresses, whatever the system's tables say.
async fn resolve_host(host: &str) -> Result<Vec<IpAddr>, String> {
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let found = tokio::net::lookup_host((bare, 0)).await;
    let mut addresses: Vec<_> = found
        .map_err(|error| format!("cannot resolve the host {host}: {error}"))?
        .map(|found| found.ip())
        .collect();
    addresses.dedup();
    Ok(addresses)
}

async fn bind_all(addresses: &[IpAddr], port: u16) -> io::Result<Vec<TcpListener>> {
    let mut last = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    for _ in 0..if port == 0 { PORT_ZERO_TRIES } else { 1 } {
        last = bind_once(addresses, port).await;
        if last.as_ref().err().map(io::Error::kind) != Some(io::ErrorKind::AddrInUse) {
            break;
        }
    }
    last
}

/// Skips addresses that this machine does not have (::1 in many containers), as long as one remains.
async fn bind_once(addresses: &[IpAddr], mut port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    let mut missing = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpListener::bind(SocketAddr::new(*address, port)).await {
            Ok(listener) => {
                port = listener.local_addr()?.port();
                listeners.push(listener);
            }
            Err(error) if is_missing_address(&error) => missing = error,
            Err(error) => return Err(error),
        }
    }
    if listeners.is_empty() { Err(missing) } else { Ok(listeners) }
}

fn is_missing_address(error: &io::Error) -> bool {
    // EAFNOSUPPORT, from a kernel without IPv6, has no stable `ErrorKind`.
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(97)
}

async fn next_free_port(addresses: &[IpAddr], taken: u16) -> Option<u16> {
    for port in taken.checked_add(1)?..=taken.saturating_add(PORTS_TO_TRY) {
        if bind_once(addresses, port).await.is_ok() {
            return Some(port);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(host: &str, port: u16) -> Config {
        Config { host: host.into(), port, ..Config::default() }
    }

    #[tokio::test]
    async fn localhost_binds_all_loopback_addresses_on_one_port() {
        let listeners = bind_listeners(&config("localhost", 0), false).await.expect("a free port");
        let ports: Vec<_> = listeners.iter().map(|l| l.local_addr().expect("bound").port()).collect();
        assert!(ports[0] != 0 && ports.iter().all(|port| *port == ports[0]), "{ports:?}");
        assert_eq!(listeners[0].local_addr().expect("bound").ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }

    #[tokio::test]
    async fn taken_port_suggests_a_free_one() {
        let taken = bind_listeners(&config("127.0.0.1", 0), false).await.expect("a free port");
        let port = taken[0].local_addr().expect("bound").port();
        let message = bind_listeners(&config("127.0.0.1", port), false).await.expect_err("it is taken");
        let free = message.rsplit("--port ").next().and_then(|free| free.parse::<u16>().ok());
        let free = free.unwrap_or_else(|| panic!("no port in {message:?}"));
        assert!(free > port && message.contains(&port.to_string()) && !message.contains('\n'), "{message}");
        bind_listeners(&config("127.0.0.1", free), false).await.expect("the one it named");
    }

    #[tokio::test]
    async fn listening_beyond_loopback_requires_open() {
        for host in ["0.0.0.0", "::", "192.168.1.1"] {
            let message = bind_listeners(&config(host, 0), false).await.expect_err("not open");
            assert!(message.contains("--open"), "{message}");
        }
        for host in ["127.8.8.8", "LOCALHOST", "::ffff:127.0.0.1"] {
            bind_listeners(&config(host, 0), false).await.expect("loopback");
        }
        let open = Config { open: true, ..config("0.0.0.0", 0) };
        bind_listeners(&open, false).await.expect("open");
    }

    #[tokio::test]
    async fn unknown_host_is_named() {
        let message = bind_listeners(&config("no-such-host.invalid", 0), false).await.expect_err("unknown");
        assert!(message.contains("no-such-host.invalid"), "{message}");
    }
}
