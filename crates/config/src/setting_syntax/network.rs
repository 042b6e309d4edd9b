//! How hosts, ports, networks and web origins are written.

use std::net::IpAddr;

use crate::Network;
use crate::setting_syntax::Kind;

pub struct Host;

impl Kind for Host {
    type Value = String;
    const HINT: &'static str = "HOST";

    fn read(text: &str) -> Result<String, String> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if bare.parse::<IpAddr>().is_ok() {
            return Ok(bare.to_owned());
        }
        if text.contains(':') {
            return Err(format!("{text:?} is no host name or address; the port is a setting of its own"));
        }
        let named = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        named.then(|| text.to_owned()).ok_or_else(|| format!("{text:?} is no host name or address"))
    }

    fn show(value: &String) -> String {
        value.clone()
    }
}

pub struct Port;

impl Kind for Port {
    type Value = u16;
    const HINT: &'static str = "PORT";

    fn read(text: &str) -> Result<u16, String> {
        text.parse().map_err(|_| format!("{text:?} is no port: a number from 0 to 65535"))
    }

    fn show(value: &u16) -> String {
        value.to_string()
    }
}

pub struct Networks;

impl Kind for Networks {
    type Value = Vec<Network>;
    const HINT: &'static str = "NETWORK,…";

    fn read(text: &str) -> Result<Vec<Network>, String> {
        items(text).map(network).collect()
    }

    fn show(value: &Vec<Network>) -> String {
        let each = value.iter().map(|network| format!("{}/{}", network.address, network.prefix));
        each.collect::<Vec<_>>().join(",")
    }
}

fn network(text: &str) -> Result<Network, String> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| format!("{text:?} is no address or network"))?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => bits,
        Some(prefix) => prefix
            .parse()
            .ok()
            .filter(|prefix| *prefix <= bits)
            .ok_or_else(|| format!("{text:?} is no network: the part after / goes from 0 to {bits}"))?,
    };
    let start = first_address(address, prefix);
    if start != address {
        return Err(format!("{text:?} has bits beyond its prefix; did you mean \"{start}/{prefix}\"?"));
    }
    Ok(Network { address, prefix })
}

/// The address with everything beyond the prefix set to zero.
fn first_address(address: IpAddr, prefix: u8) -> IpAddr {
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

pub struct HostNames;

impl Kind for HostNames {
    type Value = Vec<String>;
    const HINT: &'static str = "NAME,…";

    fn read(text: &str) -> Result<Vec<String>, String> {
        items(text).map(host_name).collect()
    }

    fn show(value: &Vec<String>) -> String {
        value.join(",")
    }
}

/// A name as browsers send it, or an address.
fn host_name(text: &str) -> Result<String, String> {
    let wrong = |why: &str| format!("{text:?} is no host name: {why}, like \"app.example.org\"");
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    if text.contains('/') {
        return Err(wrong("write the name alone, without scheme and path"));
    }
    if text.contains(':') {
        return Err(wrong("write it without a port, every port is meant"));
    }
    if text.contains('*') {
        return Err(wrong("list each name on its own"));
    }
    let host = url::Host::parse(text.strip_suffix('.').unwrap_or(text));
    host.map(|host| host.to_string()).map_err(|_| wrong("write a name or an address"))
}

pub struct Origins;

impl Kind for Origins {
    type Value = Vec<String>;
    const HINT: &'static str = "ORIGIN,…";

    fn read(text: &str) -> Result<Vec<String>, String> {
        items(text).map(origin).collect()
    }

    fn show(value: &Vec<String>) -> String {
        value.join(",")
    }
}

/// An origin as browsers send it, or `*`.
fn origin(text: &str) -> Result<String, String> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    let wrong = || format!("{text:?} is no origin: write it like \"https://app.example.org\"");
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    let bare =
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let origin = url.origin();
    if bare && origin.is_tuple() { Ok(origin.ascii_serialization()) } else { Err(wrong()) }
}

/// The parts of a list written with commas; an empty text is an empty list.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting_syntax::tests::{reads, refuses};

    #[test]
    fn ports() {
        reads::<Port>("0", "0");
        refuses::<Port>("65536", "from 0 to 65535");
        refuses::<Port>("http", "from 0 to 65535");
    }

    #[test]
    fn hosts() {
        reads::<Host>("localhost", "localhost");
        reads::<Host>("0.0.0.0", "0.0.0.0");
        reads::<Host>("[::1]", "::1");
        refuses::<Host>("localhost:80", "port is a setting of its own");
        refuses::<Host>("http://x", "port is a setting of its own");
        refuses::<Host>("", "is no host");
        refuses::<Host>("a b", "is no host");
    }

    #[test]
    fn networks() {
        reads::<Networks>("10.0.0.0/8, ::1", "10.0.0.0/8,::1/128");
        reads::<Networks>("0.0.0.0/0,::/0", "0.0.0.0/0,::/0");
        reads::<Networks>("", "");
        refuses::<Networks>("10.1.2.3/8", "did you mean \"10.0.0.0/8\"?");
        refuses::<Networks>("10.0.0.0/33", "from 0 to 32");
        refuses::<Networks>("::1/129", "from 0 to 128");
        refuses::<Networks>("proxy.local", "is no address");
    }

    #[test]
    fn host_names() {
        reads::<HostNames>("App.Example.org., 10.0.0.5,[FD00::1]", "app.example.org,10.0.0.5,fd00::1");
        reads::<HostNames>("b\u{fc}cher.example", "xn--bcher-kva.example");
        reads::<HostNames>("", "");
        refuses::<HostNames>("https://app.example.org", "without scheme and path");
        refuses::<HostNames>("app.example.org/x", "without scheme and path");
        refuses::<HostNames>("app.example.org:443", "without a port");
        refuses::<HostNames>("*.example.org", "list each name on its own");
        refuses::<HostNames>("a b", "is no host name");
        refuses::<HostNames>(".", "is no host name");
    }

    #[test]
    fn origins() {
        reads::<Origins>(
            "https://app.example.org, http://localhost:3000/",
            "https://app.example.org,http://localhost:3000",
        );
        reads::<Origins>("*", "*");
        for wrong in ["app.example.org", "https://a.example/path", "https://u@a.example", "file:///x", "null"]
        {
            refuses::<Origins>(wrong, "is no origin");
        }
    }
}
