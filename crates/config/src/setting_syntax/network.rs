//! Text forms of hosts, ports, networks and origins.

use std::net::IpAddr;

use crate::IpNetwork;
use crate::setting_syntax::SettingSyntax;

pub struct HostSyntax;

impl SettingSyntax for HostSyntax {
    type Value = String;
    const HINT: &'static str = "HOST";

    fn read(text: &str) -> Result<String, String> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if bare.parse::<IpAddr>().is_ok() {
            return Ok(bare.to_owned());
        }
        if text.contains(':') {
            return Err(format!(
                "{text:?} is not a host name or address; set the port with the setting `port`"
            ));
        }
        let is_name =
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        is_name.then(|| text.to_owned()).ok_or_else(|| format!("{text:?} is not a host name or address"))
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

pub struct PortSyntax;

impl SettingSyntax for PortSyntax {
    type Value = u16;
    const HINT: &'static str = "PORT";

    fn read(text: &str) -> Result<u16, String> {
        text.parse().map_err(|_| format!("{text:?} is not a port: expected a number from 0 to 65535"))
    }

    fn show(value: &u16) -> String {
        value.to_string()
    }
}

pub struct NetworkListSyntax;

impl SettingSyntax for NetworkListSyntax {
    type Value = Vec<IpNetwork>;
    const HINT: &'static str = "NETWORK,…";

    fn read(text: &str) -> Result<Vec<IpNetwork>, String> {
        comma_separated(text).map(parse_network).collect()
    }

    fn show(value: &Vec<IpNetwork>) -> String {
        let networks = value.iter().map(|network| format!("{}/{}", network.address, network.prefix));
        networks.collect::<Vec<_>>().join(",")
    }
}

fn parse_network(text: &str) -> Result<IpNetwork, String> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| format!("{text:?} is not an address or network"))?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => bits,
        Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= bits).ok_or_else(|| {
            format!("{text:?} is not a network: the prefix length after / must be from 0 to {bits}")
        })?,
    };
    let start = network_start(address, prefix);
    if start != address {
        return Err(format!("{text:?} has bits set after its prefix; did you mean \"{start}/{prefix}\"?"));
    }
    Ok(IpNetwork { address, prefix })
}

/// The address with all bits beyond the prefix cleared.
fn network_start(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((a.to_bits() & mask).into())
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((a.to_bits() & mask).into())
        }
    }
}

pub struct HostListSyntax;

impl SettingSyntax for HostListSyntax {
    type Value = Vec<String>;
    const HINT: &'static str = "NAME,…";

    fn read(text: &str) -> Result<Vec<String>, String> {
        comma_separated(text).map(host_name).collect()
    }

    fn show(value: &Vec<String>) -> String {
        value.join(",")
    }
}

/// A host name as browsers send it, or an address.
fn host_name(text: &str) -> Result<String, String> {
    let wrong = |reason: &str| format!("{text:?} is not a host name: {reason}, such as \"app.example.org\"");
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    if text.contains('/') {
        return Err(wrong("write only the name, without scheme and path"));
    }
    if text.contains(':') {
        return Err(wrong("write it without a port; it applies to all ports"));
    }
    if text.contains('*') {
        return Err(wrong("wildcards are not supported; list each name"));
    }
    let host = url::Host::parse(text.strip_suffix('.').unwrap_or(text));
    host.map(|host| host.to_string()).map_err(|_| wrong("write a name or an address"))
}

pub struct OriginListSyntax;

impl SettingSyntax for OriginListSyntax {
    type Value = Vec<String>;
    const HINT: &'static str = "ORIGIN,…";

    fn read(text: &str) -> Result<Vec<String>, String> {
        comma_separated(text).map(parse_origin).collect()
    }

    fn show(value: &Vec<String>) -> String {
        value.join(",")
    }
}

/// An origin as browsers send it, or `*`.
fn parse_origin(text: &str) -> Result<String, String> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    let wrong = || format!("{text:?} is not an origin: use a form such as \"https://app.example.org\"");
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    let is_bare =
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let origin = url.origin();
    if is_bare && origin.is_tuple() { Ok(origin.ascii_serialization()) } else { Err(wrong()) }
}

/// The items of a comma-separated list; an empty text is an empty list.
fn comma_separated(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting_syntax::tests::{assert_reads, assert_refuses};

    #[test]
    fn ports() {
        assert_reads::<PortSyntax>("0", "0");
        assert_refuses::<PortSyntax>("65536", "from 0 to 65535");
        assert_refuses::<PortSyntax>("http", "from 0 to 65535");
    }

    #[test]
    fn hosts() {
        assert_reads::<HostSyntax>("localhost", "localhost");
        assert_reads::<HostSyntax>("0.0.0.0", "0.0.0.0");
        assert_reads::<HostSyntax>("[::1]", "::1");
        assert_refuses::<HostSyntax>("localhost:80", "set the port with the setting");
        assert_refuses::<HostSyntax>("http://x", "set the port with the setting");
        assert_refuses::<HostSyntax>("", "is not a host");
        assert_refuses::<HostSyntax>("a b", "is not a host");
    }

    #[test]
    fn networks() {
        assert_reads::<NetworkListSyntax>("10.0.0.0/8, ::1", "10.0.0.0/8,::1/128");
        assert_reads::<NetworkListSyntax>("0.0.0.0/0,::/0", "0.0.0.0/0,::/0");
        assert_reads::<NetworkListSyntax>("", "");
        assert_refuses::<NetworkListSyntax>("10.1.2.3/8", "did you mean \"10.0.0.0/8\"?");
        assert_refuses::<NetworkListSyntax>("10.0.0.0/33", "from 0 to 32");
        assert_refuses::<NetworkListSyntax>("::1/129", "from 0 to 128");
        assert_refuses::<NetworkListSyntax>("proxy.local", "is not an address");
    }

    #[test]
    fn host_names() {
        assert_reads::<HostListSyntax>(
            "App.Example.org., 10.0.0.5,[FD00::1]",
            "app.example.org,10.0.0.5,fd00::1",
        );
        assert_reads::<HostListSyntax>("b\u{fc}cher.example", "xn--bcher-kva.example");
        assert_reads::<HostListSyntax>("", "");
        assert_refuses::<HostListSyntax>("https://app.example.org", "without scheme and path");
        assert_refuses::<HostListSyntax>("app.example.org/x", "without scheme and path");
        assert_refuses::<HostListSyntax>("app.example.org:443", "without a port");
        assert_refuses::<HostListSyntax>("*.example.org", "wildcards are not supported; list each name");
        assert_refuses::<HostListSyntax>("a b", "is not a host name");
        assert_refuses::<HostListSyntax>(".", "is not a host name");
    }

    #[test]
    fn origins() {
        assert_reads::<OriginListSyntax>(
            "https://app.example.org, http://localhost:3000/",
            "https://app.example.org,http://localhost:3000",
        );
        assert_reads::<OriginListSyntax>("*", "*");
        for wrong in ["app.example.org", "https://a.example/path", "https://u@a.example", "file:///x", "null"]
        {
            assert_refuses::<OriginListSyntax>(wrong, "is not an origin");
        }
    }
}
