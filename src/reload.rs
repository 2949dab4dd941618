//! The live configuration: one that changes as a whole or not at all, while requests are decided.

pub mod watch;

use crate::config::{Config, ConfigError, Listen, LogFormat, Shutdown, Snapshot, read};
use crate::envoy::ext_authz::ExtAuthz;
use crate::time::unix_now;
use arc_swap::{ArcSwap, Guard};
use aws_lc_rs::digest;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What answers Checks now. Each request asks for it once, and is judged by it alone.
pub struct Live {
    judge: ArcSwap<ExtAuthz>,
    /// Held by who writes a snapshot.
    writing: Mutex<()>,
    status: Mutex<Status>,
}

/// How the live configuration came about, and the snapshots of its state.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// What was read.
    pub hash: Hash,
    /// When it became live, in seconds since the Unix epoch.
    pub since: u64,
    /// Files that became live after the first.
    pub applied: u64,
    /// Files that did not.
    pub refused: u64,
    /// What the file holds; `None` if it cannot be read.
    pub seen: Option<Hash>,
    /// Whether the live configuration has changes that only a restart brings.
    pub needs_restart: bool,
    /// Snapshots that were written.
    pub snapshots_written: u64,
    /// Those that could not be.
    pub snapshots_failed: u64,
    /// When the last one was written, or else the first was waited for, in seconds since the Unix epoch.
    pub last_snapshot: Option<u64>,
}

impl Status {
    /// Whether the file is the live one.
    pub fn is_current(&self) -> bool {
        self.seen == Some(self.hash)
    }
}

impl Live {
    /// What answers Checks from now on.
    pub fn new(first: ExtAuthz, hash: Hash) -> Self {
        let status = Status {
            hash,
            since: unix_now(),
            applied: 0,
            refused: 0,
            seen: Some(hash),
            needs_restart: false,
            snapshots_written: 0,
            snapshots_failed: 0,
            last_snapshot: None,
        };
        Self { judge: ArcSwap::from_pointee(first), writing: Mutex::default(), status: Mutex::new(status) }
    }

    /// What answers Checks now.
    pub fn load(&self) -> Guard<Arc<ExtAuthz>> {
        self.judge.load()
    }

    /// How that came about.
    pub fn status(&self) -> Status {
        *self.status_mut()
    }

    /// Answers by `config` from now on, going on with the state of before. When this returns, no rate that only the earlier
    /// policy brought applies any more. `needs_restart`: some of `config` waits for a restart.
    pub fn replace(&self, config: Config, hash: Hash, needs_restart: bool) {
        let next = self.load().succeeded(config);
        let before = self.judge.swap(Arc::new(next));
        wait_until_unused(&before);
        self.load().engine.take_over();
        let mut status = self.status_mut();
        *status = Status { hash, since: unix_now(), applied: status.applied + 1, needs_restart, ..*status };
    }

    /// Writes a snapshot, after another that is being written.
    pub fn write_snapshot<E>(&self, write: impl FnOnce(&ExtAuthz) -> Result<(), E>) -> Result<(), E> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        write(&self.load())
    }

    /// Notes that snapshots are waited for from now on.
    pub fn awaits_snapshots(&self) {
        self.status_mut().last_snapshot.get_or_insert_with(unix_now);
    }

    /// Notes whether a snapshot could be written.
    pub fn wrote_snapshot(&self, is_written: bool) {
        let mut status = self.status_mut();
        if is_written {
            status.snapshots_written += 1;
            status.last_snapshot = Some(unix_now());
        } else {
            status.snapshots_failed += 1;
        }
    }

    /// Notes what the file holds, or that it cannot be read.
    pub fn saw(&self, file: Option<Hash>) {
        self.status_mut().seen = file;
    }

    /// Notes a file that cannot be used.
    pub fn refuse(&self) {
        self.status_mut().refused += 1;
    }

    fn status_mut(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until no request is judged by `before` any more, so that none brings back what is let go of. A Check takes
/// microseconds; a sweep that goes on for longer brings nothing.
fn wait_until_unused(before: &Arc<ExtAuthz>) {
    let mut turns = 0..100_000;
    while Arc::strong_count(before) > 1 && turns.next().is_some() {
        std::thread::yield_now();
    }
}

/// The configuration file, and what was read of it last.
pub struct Source {
    path: PathBuf,
    hash: Hash,
    started: Started,
}

/// SHA-256 of a file, of which its name in logs and metrics is the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash([u8; 32]);

/// What only counts when the process starts.
struct Started {
    listen: Listen,
    shutdown: Shutdown,
    snapshot: Option<Snapshot>,
    format: LogFormat,
    #[cfg(feature = "otlp")]
    otlp: Option<String>,
}

/// A file that was read anew.
pub struct Changed {
    /// What it holds, or why that cannot be used.
    pub config: Result<Config, ConfigError>,
    /// Sections that differ from those the process was started with, and need a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Hash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
        Self(hash)
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Source {
    /// Reads the configuration file `path` for the first time.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn open(path: &Path) -> Result<(Self, Config), ConfigError> {
        let bytes = read(path)?;
        let config = Config::from_bytes(path, &bytes)?;
        let started = Started {
            listen: config.listen.clone(),
            shutdown: config.shutdown,
            snapshot: config.snapshot.clone(),
            format: config.log.format,
            #[cfg(feature = "otlp")]
            otlp: config.otlp.clone(),
        };
        Ok((Self { path: path.into(), hash: Hash::of(&bytes), started }, config))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hash of what was read last, be it good or not.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The content of the file, if it is not what was read last.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if it cannot be read, which may be because it is being replaced.
    pub async fn peek(&self) -> Result<Option<Vec<u8>>, ConfigError> {
        let path = self.path.clone();
        // A volume that hangs holds up nothing else.
        let bytes = match tokio::task::spawn_blocking(move || read(&path)).await {
            Ok(bytes) => bytes?,
            Err(panic) => return Err(ConfigError::Unreadable { path: self.path.clone(), source: panic.into() }),
        };
        Ok(Some(bytes).filter(|bytes| Hash::of(bytes) != self.hash))
    }

    /// Takes in what [`peek`](Self::peek) found.
    pub fn take(&mut self, bytes: &[u8]) -> Changed {
        self.hash = Hash::of(bytes);
        let config = Config::from_bytes(&self.path, bytes);
        let needs_restart = config.as_ref().map_or_else(|_| Vec::new(), |config| self.started.differs(config));
        Changed { config, needs_restart }
    }
}

impl Started {
    fn differs(&self, config: &Config) -> Vec<&'static str> {
        let differs = [
            ("listen", self.listen != config.listen),
            ("store", self.snapshot != config.snapshot),
            ("shutdown", self.shutdown != config.shutdown),
            ("log.format", self.format != config.log.format),
            #[cfg(feature = "otlp")]
            ("traces", self.otlp != config.otlp),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}
