//! Pure: IP addresses of clients and the networks they lie in.

pub use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// Reads an IP address. A port, the brackets of an IPv6 address and a zone are cut off; an IPv4 address that is
/// mapped into IPv6 is IPv4.
///
/// ```
/// # use tollgate::network::address;
/// for text in ["192.0.2.1", "192.0.2.1:80", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"] {
///     assert_eq!(address(text.as_bytes()).unwrap().to_string(), "192.0.2.1");
/// }
/// assert_eq!(address(b"fe80::1%eth0").unwrap().to_string(), "fe80::1");
/// assert_eq!(address(b"example.com"), None);
/// ```
pub fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let without_port = text.parse::<SocketAddr>().map(|address| address.ip());
    let without_brackets = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let without_zone = without_brackets.split('%').next().unwrap_or_default();
    without_port.or_else(|_| without_zone.parse()).ok().map(|address: IpAddr| address.to_canonical())
}

/// Whether `client` lies in one of `networks`.
pub fn contains(networks: &[IpNet], client: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&client))
}
