//! `tollgate check`: says whether a configuration file can be used, and every mistake in it if not.

use super::Failure;
use crate::config::{Config, ConfigError, Diagnostics};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Check a configuration file, and show every mistake in it
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The configuration file, YAML
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Checks the file, and prints that it is good if it is.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    load(&arguments.file)?.warnings.iter().for_each(show);
    writeln!(io::stdout(), "{}: ok", arguments.file.display()).map_err(|error| Failure::output(&error))
}

/// Reads a configuration file for any command.
pub fn load(path: &Path) -> Result<Config, Failure> {
    Config::load(path).map_err(failure)
}

/// Mistakes are shown here, each with its line; the failure only counts them.
pub fn failure(error: ConfigError) -> Failure {
    let (code, hint) = match &error {
        ConfigError::Unreadable { .. } => (1, Some("check the path and its permissions, or name another file".into())),
        ConfigError::TooLarge { .. } => (2, Some("name the configuration file, or split the deployment in two".into())),
        ConfigError::Overwritten { .. } => (2, Some("write another path, such as `/var/lib/tollgate/state`".into())),
        ConfigError::Mistakes(mistakes) => {
            show(mistakes);
            return Failure { code: 2, message: mistakes.summary(), hint: None };
        }
    };
    Failure { code, message: error.to_string(), hint }
}

fn show(mistakes: &Diagnostics) {
    // https://no-color.org
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let text = if io::stderr().is_terminal() && !plain { mistakes.to_styled() } else { mistakes.to_string() };
    let _ = writeln!(io::stderr(), "{text}\n");
}
