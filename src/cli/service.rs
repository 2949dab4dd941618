//! Which service a command is about: its configuration file, and the address that may stand in for the file's.

use super::{Failure, check};
use crate::config::{Config, InvalidAddress, UntrustedNetwork};
use crate::reload::Source;
use std::path::PathBuf;

/// The options of every command about a service that listens.
#[derive(Debug, clap::Args)]
pub struct Service {
    /// The configuration file
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    config: PathBuf,
    /// The address instead of the file's listen.grpc: host:port, [::]:port or unix:/path
    #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_LISTEN")]
    listen: Option<String>,
}

impl Service {
    /// The configuration with the address that counts. An empty one, as a compose file leaves it, is not set.
    pub fn load(&self) -> Result<Config, Failure> {
        self.addressed(check::load(&self.config)?)
    }

    /// The same, with the file that it was read from.
    pub fn open(&self) -> Result<(Source, Config), Failure> {
        let (source, config) = Source::open(&self.config).map_err(check::failure)?;
        Ok((source, self.addressed(config)?))
    }

    fn addressed(&self, mut config: Config) -> Result<Config, Failure> {
        if let Some(listen) = self.listen.as_deref().filter(|listen| !listen.is_empty()) {
            config.listen.grpc = listen.parse().map_err(|error| bad_address(listen, &error))?;
            config.listen.check_trust().map_err(|error| untrusted(&error))?;
        }
        Ok(config)
    }
}

fn bad_address(listen: &str, error: &InvalidAddress) -> Failure {
    Failure {
        code: 2,
        message: format!("--listen or TOLLGATE_LISTEN is {listen:?}: {error}"),
        hint: Some("write host:port, [::]:port or unix:/path".to_owned()),
    }
}

fn untrusted(error: &UntrustedNetwork) -> Failure {
    let message = format!("--listen or TOLLGATE_LISTEN: {error}");
    Failure { code: 2, message, hint: Some(UntrustedNetwork::HINT.to_owned()) }
}
