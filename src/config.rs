//! Reads a deployment's configuration file, collecting every mistake of it.

mod callers;
mod client;
mod costs;
mod diagnostics;
mod identity;
mod key_options;
mod keys;
mod kinds;
mod limits;
mod listen;
mod load;
mod lockouts;
mod matchers;
mod mistake;
mod nested;
mod node;
mod outcomes;
mod paths;
mod patterns;
mod reach;
mod reference;
mod response;
mod rules;
mod scopes;
mod section;
mod sense;
mod sources;
mod store;
mod suggest;
mod syntax;
mod table;
mod token;
mod value;
mod yaml;

pub use diagnostics::Diagnostics;
pub use listen::{InvalidAddress, Listen, ListenAddress, UntrustedNetwork};
pub use load::{ConfigError, SIZE_LIMIT, read};
pub use reference::Reference;

use crate::answer::ResponseRules;
use crate::capability::Prefixes;
use crate::policy::Policy;
use crate::rate::Rate;
use crate::token::TokenRules;
use mistake::Notes;
use section::Section;
use std::path::PathBuf;
use std::time::Duration;

/// One deployment's configuration, as meant.
#[derive(Debug)]
pub struct Config {
    /// Where Tollgate listens, and for whom.
    pub listen: Listen,
    /// Where the identity comes from.
    pub token: TokenRules,
    /// The capability prefixes.
    pub prefixes: Prefixes,
    /// What the deployment adds to the rates in tokens.
    pub policy: Policy,
    /// How answers look.
    pub response: ResponseRules,
    /// Where the state is written to, if it is.
    pub snapshot: Option<Snapshot>,
    /// How the process stops.
    pub shutdown: Shutdown,
    /// How the log looks.
    pub log: LogRules,
    /// The collector that spans are sent to, if they are.
    #[cfg(feature = "otlp")]
    pub otlp: Option<String>,
    /// What is no mistake of the file and yet may not be meant.
    pub warnings: Option<Diagnostics>,
}

/// Where the state is written to, so that it survives a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The file.
    pub path: PathBuf,
    /// How often.
    pub interval: Duration,
}

impl Snapshot {
    /// The file beside it that is written first.
    pub fn part(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        self.path.with_file_name(name)
    }
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
    /// How many lines a rule may write about what it refuses; `None`: all.
    pub refusals: Option<Rate>,
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
        let mut notes = Notes::default();
        let config = match yaml::parse(text) {
            Ok(document) => Section::document(&document, &mut notes, table::document),
            Err(mistake) => notes.mistakes.add(mistake),
        };
        match config {
            Some(config) if notes.mistakes.is_empty() => {
                let warnings = (!notes.warnings.is_empty()).then(|| Diagnostics::warnings(name, text, notes.warnings));
                Ok(Self { warnings, ..config })
            }
            _ => Err(Diagnostics::mistakes(name, text, notes.mistakes)),
        }
    }
}
