//! From a file to a configuration, or to why there is none.

use super::Config;
use super::diagnostics::Diagnostics;
use super::mistake::{Mistake, Mistakes};
use super::node::Span;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest configuration file, in bytes: 10 MiB.
pub const SIZE_LIMIT: u64 = 10 * 1024 * 1024;

/// Why a file gives no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{}: cannot read this file: {source}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is larger than [`SIZE_LIMIT`].
    #[error("{}: this file is larger than 10 MiB", path.display())]
    TooLarge {
        /// Its path.
        path: PathBuf,
    },
    /// Its snapshot would take its place.
    #[error("{}: a snapshot (store.memory.snapshot, and `.part`) would take the place of this very file", path.display())]
    Overwritten {
        /// Its path.
        path: PathBuf,
    },
    /// There are mistakes in it.
    #[error(transparent)]
    Mistakes(#[from] Diagnostics),
}

impl Config {
    /// Reads the configuration file `path`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if it cannot be read, is larger than [`SIZE_LIMIT`], has mistakes in it or names itself as the snapshot.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::from_bytes(path, &read(path)?)
    }

    /// Reads the content of the configuration file `path`.
    ///
    /// # Errors
    ///
    /// The diagnostics of its mistakes; or that a snapshot would take its place.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let config = match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(&name, text)?,
            Err(error) => return Err(not_utf8(&name, bytes, error.valid_up_to()).into()),
        };
        match &config.snapshot {
            Some(snapshot) if is_same(path, &snapshot.path) || is_same(path, &snapshot.part()) => {
                Err(ConfigError::Overwritten { path: path.into() })
            }
            _ => Ok(config),
        }
    }
}

/// Whether two paths name one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// The content of the configuration file `path`.
///
/// # Errors
///
/// [`ConfigError`] if it cannot be read, or is larger than [`SIZE_LIMIT`].
pub fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let bytes = read_most(path).map_err(|source| ConfigError::Unreadable { path: path.into(), source })?;
    if bytes.len() as u64 > SIZE_LIMIT { Err(ConfigError::TooLarge { path: path.into() }) } else { Ok(bytes) }
}

/// Reads one byte more than is allowed, so that a file which is too large shows.
fn read_most(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn not_utf8(name: &str, bytes: &[u8], start: usize) -> Diagnostics {
    let cause = format!("this file is not UTF-8: here is the byte 0x{:02x}", bytes.get(start).copied().unwrap_or(0));
    let line = 1 + bytes.iter().take(start).filter(|byte| **byte == b'\n').count();
    let span = Span { start, end: start + char::REPLACEMENT_CHARACTER.len_utf8(), line };
    let mut mistakes = Mistakes::default();
    mistakes.add::<()>(Mistake { span, cause, hint: "save the file as UTF-8".into() });
    Diagnostics::mistakes(name, &String::from_utf8_lossy(bytes), mistakes)
}
