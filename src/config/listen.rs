//! Addresses to listen on, as text: `host:port`, `[::]:port` or `unix:/path`.

use super::kinds::{A_TEXT, Kind};
use super::value::Value;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

pub const ADDRESS: Kind<ListenAddress> = Kind::Is("an address", A_TEXT, address);

/// Where Tollgate listens, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where the gRPC services listen.
    pub grpc: ListenAddress,
    /// Where metrics and health are served over HTTP, if they are.
    pub metrics: Option<ListenAddress>,
    /// Whether whoever can reach the listener is trusted.
    pub trusted_network: bool,
    /// How old a connection may become before its client is asked to open another.
    pub max_connection_age: Option<Duration>,
}

/// A plain-text listener that others than this machine can reach, without a word that they are trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is open to other machines: whoever reaches it can pose as Envoy and assert any identity")]
pub struct UntrustedNetwork(ListenAddress);

impl UntrustedNetwork {
    /// What to do about it.
    pub const HINT: &str = "write `trusted_network: true` below `listen` if only Envoy can reach it (a private network, \
                            a NetworkPolicy); else listen on 127.0.0.1, [::1] or a Unix socket";
}

/// Where a listener stands: `host:port`, `[::]:port` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Why a text is no address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// It is no `host:port`, or the host is a name.
    #[error("want host:port with an IP address or localhost, such as 127.0.0.1:10003 or [::]:10003, or unix:/path")]
    Tcp,
    /// There is a port only.
    #[error("want a host before the port: 127.0.0.1 for this machine, 0.0.0.0 or [::] for every network")]
    NoHost,
    /// The path of a Unix socket is relative or empty.
    #[error("want an absolute path after unix:, such as unix:/run/tollgate/grpc.sock")]
    RelativePath,
    /// The path of a Unix socket is longer than the system takes.
    #[error("want a path of at most 107 bytes after unix:")]
    LongPath,
}

impl Listen {
    /// Makes sure that the listener is for this machine only, unless its network is trusted.
    ///
    /// # Errors
    ///
    /// [`UntrustedNetwork`], if it is not.
    pub fn check_trust(&self) -> Result<(), UntrustedNetwork> {
        let is_local = match &self.grpc {
            ListenAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
            ListenAddress::Unix(_) => true,
        };
        if is_local || self.trusted_network { Ok(()) } else { Err(UntrustedNetwork(self.grpc.clone())) }
    }
}

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            return unix(path);
        }
        if text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok()) {
            return Err(InvalidAddress::NoHost);
        }
        let tcp = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}").parse(),
            None => text.parse(),
        };
        tcp.map(Self::Tcp).map_err(|_| InvalidAddress::Tcp)
    }
}

fn unix(path: &str) -> Result<ListenAddress, InvalidAddress> {
    /// `sun_path` of Linux holds 108 bytes, the last one zero.
    const LONGEST: usize = 107;
    if path.len() > LONGEST {
        return Err(InvalidAddress::LongPath);
    }
    let names_a_file = Path::new(path).file_name().is_some() && !path.ends_with('/') && !path.contains('\0');
    if path.starts_with('/') && names_a_file {
        Ok(ListenAddress::Unix(path.into()))
    } else {
        Err(InvalidAddress::RelativePath)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn address(value: &mut Value<'_, '_>) -> Option<ListenAddress> {
    let text = value.text()?;
    text.parse().map_or_else(|error: InvalidAddress| value.wrong(&error.to_string()), Some)
}
