//! The client of a request and its origin; forwarding headers count only when a trusted proxy sent them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::FORWARDED;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};

use trefoil_config::IpNetwork;
use trefoil_engine::{Actor, ActorIdentity, DataVersion, IdentityCheck};

use crate::negotiation::accept::AcceptHeader;
use crate::response_headers::RequestId;

/// The client as handlers see it; the router's handlers find it in the request's extensions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientInfo {
    /// `None` only where there is no connection, as in a test that calls the router directly.
    pub address: Option<IpAddr>,
    /// What the request's credential proves; `None` if it is anonymous.
    pub identity: Option<Arc<ActorIdentity>>,
    /// Where the identity is what the credential proved before: whether it still does.
    pub check: Option<IdentityCheck>,
    /// The session that the request came with, if it is the client's credential.
    pub session: Option<PresentedSession>,
    /// The cookie of a session came along that is not good any more.
    pub has_stale_cookie: bool,
    /// The version of the data at some time since the request arrived, if it was read to identify the client.
    pub data_version: Option<DataVersion>,
    /// The client spoke HTTPS, to a proxy if there is one.
    pub secure: bool,
    /// The id of the current request, for the log; `None` where `address` is.
    pub request: Option<RequestId>,
    /// The host that the client named to a proxy.
    host: Option<String>,
    /// The connection comes from this machine.
    has_local_peer: bool,
    /// A trusted proxy named the address.
    has_named_address: bool,
}

/// A session as a request brought it.
#[derive(Debug, Clone, PartialEq)]
pub struct PresentedSession {
    pub token: Arc<str>,
    /// It came in the session's cookie.
    pub is_cookie: bool,
}

impl ClientInfo {
    /// Who makes the request.
    pub fn actor(&self) -> Actor {
        Actor {
            address: self.address,
            identity: self.identity.clone(),
            check: self.check.clone(),
            request: self.request.clone(),
        }
    }

    /// `secure` tells whether the connection is encrypted; a trusted proxy says so of its own.
    pub fn from_request(
        peer: Option<IpAddr>,
        secure: bool,
        headers: &HeaderMap,
        trusted: &[IpNetwork],
    ) -> Self {
        let peer = peer.map(|address| address.to_canonical());
        let has_local_peer = peer.is_some_and(|address| address.is_loopback());
        let direct = ClientInfo { address: peer, secure, has_local_peer, ..ClientInfo::default() };
        if !peer.is_some_and(|address| is_trusted(trusted, address)) {
            return direct;
        }
        // A proxy sets one of the two and may pass on the client's own version of the other,
        // so if they disagree neither is trusted.
        match (from_forwarded(headers, trusted, secure), from_x_forwarded(headers, trusted, secure)) {
            (Some(one), Some(other)) if one.address != other.address => direct,
            (Some(client), _) | (None, Some(client)) => ClientInfo {
                address: client.address.or(peer),
                has_local_peer,
                has_named_address: client.address.is_some(),
                ..client
            },
            (None, None) => direct,
        }
    }

    /// Whether the client is on this machine. One whose address only an unknown proxy could tell is not.
    pub fn is_local(&self, headers: &HeaderMap) -> bool {
        let is_known = self.has_named_address || !headers.keys().any(is_proxy_header);
        self.has_local_peer && is_known && self.address.is_some_and(|address| address.is_loopback())
    }

    /// Who is named on the answer, if it may be a page. Data is the same for all who see the same.
    pub fn page_actor(&self, headers: &HeaderMap) -> &[u8] {
        let Some(identity) = &self.identity else { return b"" };
        let is_data = AcceptHeader::from_headers(headers).quality("text/html") == 0;
        if is_data { b"" } else { identity.name.as_bytes() }
    }

    /// The client of the request with these extensions.
    pub fn of(extensions: &Extensions) -> ClientInfo {
        extensions.get::<ClientInfo>().cloned().unwrap_or_default()
    }

    /// The id of the request with these extensions.
    pub fn request_of(extensions: &Extensions) -> Option<&RequestId> {
        extensions.get::<ClientInfo>().and_then(|client| client.request.as_ref())
    }

    /// The host that the client named to a trusted proxy, as a `Host` header.
    pub fn forwarded_host(&self) -> Option<HeaderValue> {
        self.host.as_deref().and_then(|host| HeaderValue::from_str(host).ok())
    }

    /// The forwarded scheme and host that [`ClientInfo::origin`] depends on.
    pub fn forwarded_origin(&self) -> [&[u8]; 2] {
        let scheme: &[u8] = if self.secure { b"https" } else { b"" };
        [scheme, self.host.as_deref().unwrap_or_default().as_bytes()]
    }

    /// Scheme and host for absolute URLs: `https://shop.example`. `host` is the request's `Host` header.
    pub fn origin(&self, host: Option<&HeaderValue>) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let named = host.and_then(|host| host.to_str().ok());
        format!("{scheme}://{}", self.host.as_deref().or(named).unwrap_or("localhost"))
    }
}

/// What proxies add to requests, whether or not it names the client.
fn is_proxy_header(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("x-forwarded-") || PROXY_HEADERS.contains(&name)
}

const PROXY_HEADERS: [&str; 5] = ["forwarded", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip"];

fn is_trusted(networks: &[IpNetwork], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// RFC 7239: each proxy appends an element, so the last one that does not describe a trusted proxy is the client's.
/// `secure` holds where no proxy says how the client came.
fn from_forwarded(headers: &HeaderMap, trusted: &[IpNetwork], secure: bool) -> Option<ClientInfo> {
    let elements: Vec<&str> = header_items(headers, FORWARDED.as_str());
    let mut found = None;
    for element in elements.into_iter().rev() {
        let field = |name| forwarded_parameter(element, name);
        let address = field("for").and_then(parse_address);
        let secure = field("proto").map_or(secure, is_https);
        let host = field("host").and_then(valid_host);
        found = Some(ClientInfo { address, secure, host, ..ClientInfo::default() });
        if !address.is_some_and(|address| is_trusted(trusted, address)) {
            break;
        }
    }
    found
}

fn from_x_forwarded(headers: &HeaderMap, trusted: &[IpNetwork], secure: bool) -> Option<ClientInfo> {
    let hops = header_items(headers, "x-forwarded-for");
    let (proto, host) =
        (header_items(headers, "x-forwarded-proto"), header_items(headers, "x-forwarded-host"));
    if hops.is_empty() && proto.is_empty() && host.is_empty() {
        return None;
    }
    let mut client = None;
    for hop in hops.into_iter().rev() {
        client = parse_address(hop);
        if !client.is_some_and(|address| is_trusted(trusted, address)) {
            break;
        }
    }
    let secure = proto.last().copied().map_or(secure, is_https);
    let host = host.last().copied().and_then(valid_host);
    Some(ClientInfo { address: client, secure, host, ..ClientInfo::default() })
}

fn is_https(proto: &str) -> bool {
    proto.eq_ignore_ascii_case("https")
}

fn header_items<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let lines = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn forwarded_parameter<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim().trim_matches('"'))
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let plain = text.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()));
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    plain.or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

/// Accepts only characters of a host name or address, because the host goes into links.
fn valid_host(host: &str) -> Option<String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
    (!host.is_empty() && host.len() <= 255 && host.bytes().all(allowed)).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::HOST;

    fn client_and_origin(peer: &str, lines: &[(&'static str, &'static str)]) -> (String, String) {
        let trusted = [("10.0.0.0", 8), ("::1", 128)]
            .map(|(address, prefix)| IpNetwork { address: address.parse().expect("address"), prefix });
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("inner:8080"));
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let client =
            ClientInfo::from_request(Some(peer.parse().expect("address")), false, &headers, &trusted);
        (client.address.expect("a peer").to_string(), client.origin(headers.get(HOST)))
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let xff = ("x-forwarded-for", "1.1.1.1");
        type ProxyRow<'a> = (&'a str, &'a [(&'static str, &'static str)], &'a str, &'a str);
        let table: &[ProxyRow<'_>] = &[
            ("9.9.9.9", &[xff], "9.9.9.9", "http://inner:8080"),
            ("10.1.2.3", &[xff], "1.1.1.1", "http://inner:8080"),
            ("::1", &[xff, ("x-forwarded-proto", "https")], "1.1.1.1", "https://inner:8080"),
            ("::ffff:10.0.0.1", &[xff], "1.1.1.1", "http://inner:8080"),
            ("11.0.0.1", &[xff], "11.0.0.1", "http://inner:8080"),
            (
                "10.0.0.1",
                &[("x-forwarded-for", "6.6.6.6, 1.1.1.1, 10.0.0.2")],
                "1.1.1.1",
                "http://inner:8080",
            ),
            (
                "10.0.0.1",
                &[("forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:4711\";proto=https;host=shop.example")],
                "2001:db8::1",
                "https://shop.example",
            ),
            ("10.0.0.1", &[("forwarded", "for=6.6.6.6"), xff], "10.0.0.1", "http://inner:8080"),
            ("10.0.0.1", &[("forwarded", "for=unknown")], "10.0.0.1", "http://inner:8080"),
            ("10.0.0.1", &[xff, ("x-forwarded-host", "evil/path")], "1.1.1.1", "http://inner:8080"),
        ];
        for (peer, lines, address, origin) in table {
            let expected = ((*address).to_owned(), (*origin).to_owned());
            assert_eq!(client_and_origin(peer, lines), expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn encryption_is_that_of_the_connection_unless_a_proxy_says_otherwise() {
        let trusted = [IpNetwork { address: "10.0.0.0".parse().expect("address"), prefix: 8 }];
        let xff = ("x-forwarded-for", "1.1.1.1");
        for (lines, secure) in [
            (&[][..], true),
            (&[xff], true),
            (&[xff, ("x-forwarded-proto", "http")], false),
            (&[("x-forwarded-host", "shop.example")], true),
            (&[("forwarded", "for=1.1.1.1")], true),
            (&[("forwarded", "for=1.1.1.1;proto=http")], false),
            (&[("forwarded", "for=1.1.1.1;proto=https")], true),
        ] {
            let lines = lines
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            let headers: HeaderMap = lines.collect();
            let peer = Some("10.0.0.1".parse().expect("address"));
            assert_eq!(
                ClientInfo::from_request(peer, true, &headers, &trusted).secure,
                secure,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn clients_are_local_only_if_their_address_is_known() {
        let trusted = [("127.0.0.2", 32), ("10.0.0.0", 8)]
            .map(|(address, prefix)| IpNetwork { address: address.parse().expect("address"), prefix });
        for (peer, lines, is_local) in [
            ("127.0.0.1", &[][..], true),
            ("::1", &[], true),
            ("::ffff:127.0.0.1", &[], true),
            ("9.9.9.9", &[], false),
            // A proxy that is not in `trusted-proxies`.
            ("127.0.0.1", &[("x-forwarded-for", "9.9.9.9")], false),
            ("127.0.0.1", &[("x-forwarded-proto", "https")], false),
            ("127.0.0.1", &[("x-forwarded-for", "127.0.0.1")], false),
            ("127.0.0.1", &[("forwarded", "for=127.0.0.1")], false),
            ("127.0.0.1", &[("via", "1.1 shop")], false),
            ("127.0.0.1", &[("x-real-ip", "127.0.0.1")], false),
            ("127.0.0.1", &[("true-client-ip", "9.9.9.9")], false),
            ("127.0.0.1", &[("cf-connecting-ip", "9.9.9.9")], false),
            // One that is.
            ("127.0.0.2", &[], true),
            ("127.0.0.2", &[("x-forwarded-for", "9.9.9.9")], false),
            ("127.0.0.2", &[("x-forwarded-for", "127.0.0.1, 9.9.9.9")], false),
            ("127.0.0.2", &[("x-forwarded-for", "9.9.9.9, 127.0.0.1")], true),
            ("127.0.0.2", &[("x-forwarded-for", "127.0.0.1"), ("via", "1.1 shop")], true),
            ("127.0.0.2", &[("x-real-ip", "127.0.0.1")], false),
            ("127.0.0.2", &[("x-forwarded-proto", "https")], false),
            ("127.0.0.2", &[("forwarded", "for=unknown")], false),
            ("127.0.0.2", &[("forwarded", "for=127.0.0.1"), ("x-forwarded-for", "9.9.9.9")], false),
            // The loopback of another machine.
            ("10.0.0.1", &[("x-forwarded-for", "127.0.0.1")], false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let peer_address = Some(peer.parse().expect("address"));
            let client = ClientInfo::from_request(peer_address, false, &headers, &trusted);
            assert_eq!(client.is_local(&headers), is_local, "{peer} {lines:?}");
        }
        assert!(!ClientInfo::default().is_local(&HeaderMap::new()));
    }
}
