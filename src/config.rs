//! Reads a deployment's configuration file, collecting every mistake of it.

use crate::answer::ResponseRules;
use crate::capability::Prefixes;
use crate::resolver::DefaultResolver;
use crate::token::TokenRules;
use std::net::SocketAddr;
use std::path::PathBuf;

/// One deployment's configuration, as meant.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the gRPC services listen.
    pub listen: ListenAddress,
    /// Where the identity comes from.
    pub token: TokenRules,
    /// The capability prefixes.
    pub prefixes: Prefixes,
    /// The default resolver as configured.
    pub callers: DefaultResolver,
    /// How answers look.
    pub response: ResponseRules,
    /// How the log looks.
    pub log: LogRules,
}

/// Where a listener stands: `host:port`, `[::]:port` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// How the log looks.
#[derive(Clone, Debug)]
pub struct LogRules {
    /// The form of a line.
    pub format: LogFormat,
    /// The lowest level that is written.
    pub level: LogLevel,
    /// How principals are written.
    pub principal: LogPrincipal,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Text for people.
    Text,
}

/// The lowest level that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How principals are written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPrincipal {
    /// As they are, control characters escaped.
    Plain,
    /// As a hash that is stable while the process lives.
    Hash,
    /// Not at all.
    Off,
}
