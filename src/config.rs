//! Reads a deployment's configuration file, collecting every mistake of it.

mod diagnostics;
mod kinds;
mod listen;
mod load;
mod mistake;
mod node;
mod response;
mod section;
mod suggest;
mod syntax;
mod table;
mod token;
mod value;
mod yaml;

pub use diagnostics::Diagnostics;
pub use listen::{InvalidAddress, Listen, ListenAddress, UntrustedNetwork};
pub use load::{ConfigError, SIZE_LIMIT};

use crate::answer::ResponseRules;
use crate::capability::Prefixes;
use crate::resolver::DefaultResolver;
use crate::token::TokenRules;
use mistake::Mistakes;
use section::Section;
use std::time::Duration;

/// One deployment's configuration, as meant.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where Tollgate listens, and for whom.
    pub listen: Listen,
    /// Where the identity comes from.
    pub token: TokenRules,
    /// The capability prefixes.
    pub prefixes: Prefixes,
    /// The default resolver as configured.
    pub callers: DefaultResolver,
    /// How answers look.
    pub response: ResponseRules,
    /// How the process stops.
    pub shutdown: Shutdown,
    /// How the log looks.
    pub log: LogRules,
}

/// How the process stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// From SIGTERM until no new connection is taken; meanwhile the health says NOT_SERVING.
    pub delay: Duration,
    /// From the signal until the process ends, requests in flight or not. Longer than the delay.
    pub timeout: Duration,
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

impl Config {
    /// Reads the configuration `text`; `name` is what messages call it.
    ///
    /// # Errors
    ///
    /// Every mistake of the text, each with its place. Only a text that is no YAML has a single one.
    pub fn parse(name: &str, text: &str) -> Result<Self, Diagnostics> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut mistakes = Mistakes::default();
        let config = match yaml::parse(text) {
            Ok(document) => Section::document(&document, &mut mistakes, table::document),
            Err(mistake) => mistakes.add(mistake),
        };
        match config {
            Some(config) if mistakes.is_empty() => Ok(config),
            _ => Err(Diagnostics::new(name, text, mistakes)),
        }
    }
}
