//! When the configuration file may have changed: its directory says so, a signal, or the time to look again.

use super::Source;
use crate::config::ConfigError;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use tracing::warn;

/// How often the file is looked at, whatever the directory says: some file systems say nothing.
const LOOK: Duration = Duration::from_secs(10);

/// How many looks a file is left alone that somebody has begun to write: some file systems never say that it is closed.
const LEFT_ALONE: u32 = 6;

/// How long a file has to stay as it is, so that none is read that is still being written: where somebody says that it is
/// whole, and where nobody does.
const SETTLE: Duration = Duration::from_millis(20);
const SETTLE_UNTOLD: Duration = Duration::from_secs(1);

/// Waits for changes of a configuration file.
pub struct Watch {
    hangup: Signal,
    events: mpsc::Receiver<()>,
    look: Interval,
    /// Whether somebody has begun to write the file, and not closed it.
    is_open: Arc<AtomicBool>,
    /// Looks since then.
    left_alone: u32,
    /// Whether it was said that the file cannot be read.
    is_missed: bool,
    _watcher: Option<RecommendedWatcher>,
}

impl Watch {
    /// Watches the directory of the file `path`: a ConfigMap's links and an editor's renames change the directory, and not
    /// the file that was there. A directory that cannot be watched is a warning: the file is looked at from time to time, and
    /// at every `hangup`.
    pub fn start(path: &Path, hangup: Signal) -> Self {
        let (sender, events) = mpsc::channel(1);
        let is_open = Arc::<AtomicBool>::default();
        let watcher = watch(path, sender, Arc::clone(&is_open)).map_err(|error| {
            let hint = "changes are seen within 10 seconds, or at SIGHUP";
            warn!(%error, hint, "the directory of the configuration cannot be watched");
        });
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { hangup, events, look, is_open, left_alone: 0, is_missed: false, _watcher: watcher.ok() }
    }

    /// Waits until there is news of `source`.
    pub async fn look(&mut self, source: &Source) -> Seen {
        loop {
            let cause = tokio::select! {
                _ = self.hangup.recv() => Cause::Signal,
                _ = self.events.recv() => Cause::Directory,
                _ = self.look.tick() => Cause::Time,
            };
            if cause == Cause::Time && self.is_being_written() {
                continue;
            }
            let was_missed = self.is_missed;
            let settle = if cause == Cause::Time { SETTLE_UNTOLD } else { SETTLE };
            match (settled(source, settle).await, cause) {
                (Ok(Some(bytes)), _) => {
                    self.is_missed = false;
                    return Seen::Changed(bytes);
                }
                (Ok(None), cause) if was_missed || cause == Cause::Signal => {
                    self.is_missed = false;
                    return Seen::Same;
                }
                // It is gone while it is replaced; where it stays away, that is said once, and to whoever asks.
                (Err(error), cause) if cause == Cause::Signal || cause == Cause::Time && !was_missed => {
                    self.is_missed = true;
                    return Seen::Unreadable(error);
                }
                (Ok(None) | Err(_), _) => {}
            }
        }
    }
}

impl Watch {
    /// Whether to leave the file alone this time, since somebody is writing it.
    fn is_being_written(&mut self) -> bool {
        let is_open = self.is_open.load(Relaxed);
        self.left_alone = if is_open { self.left_alone + 1 } else { 0 };
        is_open && self.left_alone <= LEFT_ALONE
    }
}

/// What is to be seen of the file.
pub enum Seen {
    /// It holds something else now.
    Changed(Vec<u8>),
    /// It holds what was read last: somebody asked, or it could not be read before.
    Same,
    /// It cannot be read, which may last.
    Unreadable(ConfigError),
}

/// Why the file is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Signal,
    Directory,
    Time,
}

/// What the file holds, once it stays so; `None` if it is what was read last.
async fn settled(source: &Source, settle: Duration) -> Result<Option<Vec<u8>>, ConfigError> {
    let Some(mut bytes) = source.peek().await? else { return Ok(None) };
    loop {
        tokio::time::sleep(settle).await;
        match source.peek().await? {
            Some(again) if again == bytes => return Ok(Some(bytes)),
            Some(again) => bytes = again,
            None => return Ok(None),
        }
    }
}

fn watch(path: &Path, sender: mpsc::Sender<()>, is_open: Arc<AtomicBool>) -> notify::Result<RecommendedWatcher> {
    let file = path.to_owned();
    let tell = move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        if !is_about(&event, &file) {
            return;
        }
        is_open.store(matches!(event.kind, EventKind::Modify(ModifyKind::Data(_))), Relaxed);
        if is_whole(event.kind) {
            // One word that waits is enough: the file is read after it.
            let _ = sender.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(tell)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watcher.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Whether an event is about the file. Behind a link any may be: a ConfigMap swaps another one.
pub fn is_about(event: &Event, file: &Path) -> bool {
    let is_link = || file.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    event.paths.is_empty() || event.paths.iter().any(|path| path.file_name() == file.file_name()) || is_link()
}

/// Whether a file may be whole from this event on: it was written and closed, or renamed. What is being written says so at
/// every piece, and what somebody reads does as well.
pub fn is_whole(kind: EventKind) -> bool {
    let is_written = kind == EventKind::Access(AccessKind::Close(AccessMode::Write));
    is_written || matches!(kind, EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any | EventKind::Other)
}
