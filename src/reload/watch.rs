//! When the configuration file may have changed: its directory says so, a signal, or the time to look again.

use super::Source;
use crate::config::ConfigError;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tracing::{info, warn};

/// How often the file is looked at, whatever the directory says: some file systems say nothing.
const LOOK: Duration = Duration::from_secs(10);

/// How long a file has to stay as it is, so that none is read that is still being written.
const SETTLE: Duration = Duration::from_millis(20);

/// Waits for changes of a configuration file.
pub struct Watch {
    hangup: Signal,
    events: mpsc::Receiver<()>,
    /// Whether it was said that the file cannot be read.
    is_missed: bool,
    _watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Watches the directory of the file `path`: a ConfigMap's links and an editor's renames change the directory, and not
    /// the file that was there.
    ///
    /// # Errors
    ///
    /// An I/O error, if SIGHUP cannot be listened for. A directory that cannot be watched is a warning: the file is looked
    /// at from time to time.
    pub fn start(path: &Path) -> std::io::Result<Self> {
        let (sender, events) = mpsc::channel(1);
        let watcher = watch(path, sender).map_err(|error| {
            let hint = "changes are seen within 10 seconds, or at SIGHUP";
            warn!(%error, hint, "the directory of the configuration cannot be watched");
        });
        Ok(Self { hangup: signal(SignalKind::hangup())?, events, is_missed: false, _watcher: watcher.ok() })
    }

    /// Waits until `source` has changed, and gives what it holds then.
    pub async fn changed(&mut self, source: &Source) -> Vec<u8> {
        loop {
            let cause = tokio::select! {
                _ = self.hangup.recv() => Cause::Signal,
                _ = self.events.recv() => Cause::Directory,
                () = tokio::time::sleep(LOOK) => Cause::Time,
            };
            match (settled(source).await, cause) {
                (Ok(Some(bytes)), _) => return bytes,
                (Ok(None), Cause::Signal) => info!("the configuration file holds what was read last"),
                (Ok(None), _) => self.is_missed = false,
                // It is gone while it is replaced; where it stays away, that is said once.
                (Err(error), Cause::Signal | Cause::Time) if !std::mem::replace(&mut self.is_missed, true) => {
                    warn!(%error, "the configuration file cannot be read; what was read last stays");
                }
                (Err(_), _) => {}
            }
        }
    }
}

/// Why the file is looked at.
enum Cause {
    Signal,
    Directory,
    Time,
}

/// What the file holds, once it stays so; `None` if it is what was read last.
async fn settled(source: &Source) -> Result<Option<Vec<u8>>, ConfigError> {
    let Some(mut bytes) = source.peek()? else { return Ok(None) };
    loop {
        tokio::time::sleep(SETTLE).await;
        match source.peek()? {
            Some(again) if again == bytes => return Ok(Some(bytes)),
            Some(again) => bytes = again,
            None => return Ok(None),
        }
    }
}

fn watch(path: &Path, sender: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let tell = move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_change(event.kind)) {
            // One word that waits is enough: the file is read after it.
            let _ = sender.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(tell)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Whether an event may change what a file holds. To read it is an event as well, and would be one for ever.
fn is_change(kind: EventKind) -> bool {
    !kind.is_access() || kind == EventKind::Access(AccessKind::Close(AccessMode::Write))
}
