//! Pure: IP addresses of clients, the networks they lie in, and whose word about them is taken.

pub mod forwarded;
pub mod proxies;

pub use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};

/// Reads an IP address. A port, the brackets of an IPv6 address and a zone are cut off; an IPv4 address that is
/// mapped into IPv6 is IPv4.
///
/// ```
/// # use tollgate::network::address;
/// for text in ["192.0.2.1", "192.0.2.1:80", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"] {
///     assert_eq!(address(text.as_bytes()).unwrap().to_string(), "192.0.2.1");
/// }
/// assert_eq!(address(b"[fe80::1%eth0]:_port").unwrap().to_string(), "fe80::1");
/// assert_eq!(address(b"example.com"), None);
/// ```
pub fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            (behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port)).then(|| v6(host))?
        }
        None => match text.split_once(':') {
            Some((host, port)) if is_port(port) && !port.contains(':') => host.parse().ok(),
            Some(_) => v6(text),
            None => text.parse().ok(),
        },
    };
    address.map(|address: IpAddr| address.to_canonical())
}

fn v6(text: &str) -> Option<IpAddr> {
    let host = text.split_once('%').map_or(text, |(host, _)| host);
    host.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// A number, or one of the names that RFC 7239 lets a proxy write in its place.
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        }
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

/// Whether `client` lies in one of `networks`.
pub fn contains(networks: &[IpNet], client: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&client))
}

/// The network that stands for a client: an IPv4 address alone, of an IPv6 address the first `ipv6_prefix` bits, since
/// one client has many of these.
///
/// ```
/// # use tollgate::network::{prefix, wider};
/// let client = prefix("2001:db8:1:2:3::4".parse().unwrap(), 64);
/// assert_eq!(client.to_string(), "2001:db8:1:2::/64");
/// assert_eq!(wider(client).to_string(), "2001:db8:1::/48");
/// ```
pub fn prefix(client: IpAddr, ipv6_prefix: u8) -> IpNet {
    match client.to_canonical() {
        address @ IpAddr::V4(_) => address.into(),
        address @ IpAddr::V6(_) => cut(address.into(), ipv6_prefix),
    }
}

/// The network around `network` whose clients share one allowance where a table is full: the /24 of an IPv4 address,
/// the /48 of an IPv6 one. What is as wide as that already stays as it is.
pub fn wider(network: IpNet) -> IpNet {
    match network {
        IpNet::V4(_) => cut(network, 24),
        IpNet::V6(_) => cut(network, 48),
    }
}

fn cut(network: IpNet, length: u8) -> IpNet {
    IpNet::new(network.addr(), length.min(network.prefix_len())).unwrap_or(network).trunc()
}

/// A network as the bytes of a key: no two networks have the same.
pub fn bytes(network: IpNet) -> [u8; 18] {
    let (family, address) = match network.network() {
        IpAddr::V4(address) => (4, address.to_ipv6_mapped()),
        IpAddr::V6(address) => (6, address),
    };
    let mut bytes = [0; 18];
    bytes[0] = family;
    bytes[1..17].copy_from_slice(&address.octets());
    bytes[17] = network.prefix_len();
    bytes
}
