//! When the configuration file may have changed: its directory says so, a signal, or the time to look again.

use super::Source;
use crate::config::ConfigError;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use tracing::warn;

/// How often the file is looked at, whatever the directory says: some file systems say nothing.
const LOOK: Duration = Duration::from_secs(10);

/// How many looks a file is left alone after a piece of it was written: some file systems never say that it is closed.
const LEFT_ALONE: u32 = 6;

/// How long a file has to stay as it is, so that none is read that is still being written: where somebody says that it is
/// whole, and where nobody does.
const SETTLE: Duration = Duration::from_millis(20);
const SETTLE_UNTOLD: Duration = Duration::from_secs(1);

/// The most links that are followed, as in path_resolution(7).
const MOST_LINKS: usize = 40;

/// Waits for changes of a configuration file.
pub struct Watch {
    hangup: Signal,
    events: mpsc::Receiver<()>,
    look: Interval,
    writing: Arc<Writing>,
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
        let writing = Arc::<Writing>::default();
        let watcher = watch(path, sender, Arc::clone(&writing)).map_err(|error| {
            let hint = "changes are seen within 10 seconds, or at SIGHUP";
            warn!(%error, hint, "the directory of the configuration cannot be watched");
        });
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { hangup, events, look, writing, is_missed: false, _watcher: watcher.ok() }
    }

    /// Waits until there is news of `source`.
    pub async fn look(&mut self, source: &Source) -> Seen {
        loop {
            let cause = self.cause().await;
            let settle = if cause == Cause::Time { SETTLE_UNTOLD } else { SETTLE };
            let found = settled(source, settle).await;
            if let Some(news) = self.news(found, cause) {
                self.is_missed = matches!(news, Seen::Unreadable(_));
                return news;
            }
        }
    }

    /// Waits for a cause to look at the file.
    async fn cause(&mut self) -> Cause {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => return Cause::Signal,
                _ = self.events.recv() => return Cause::Directory,
                _ = self.look.tick() => if !self.writing.is_left_alone() { return Cause::Time },
            }
        }
    }

    /// What is news of what was found: to whoever asks, all is.
    fn news(&self, found: Result<Option<Vec<u8>>, ConfigError>, cause: Cause) -> Option<Seen> {
        let is_asked = cause == Cause::Signal;
        match found {
            Ok(Some(bytes)) => Some(Seen::Changed(bytes)),
            Ok(None) => (is_asked || self.is_missed).then_some(Seen::Same),
            // It is gone while it is replaced; where it stays away, that is said once.
            Err(error) => (is_asked || cause == Cause::Time && !self.is_missed).then_some(Seen::Unreadable(error)),
        }
    }
}

/// For how many looks the file is left alone, since somebody is writing it.
#[derive(Default)]
pub struct Writing(AtomicU32);

impl Writing {
    /// Notes an event of the file: a piece of it was written, or it is whole or gone. Whoever reads it meanwhile changes nothing.
    pub fn note(&self, kind: EventKind) {
        match kind {
            EventKind::Modify(ModifyKind::Data(_)) => self.0.store(LEFT_ALONE, Relaxed),
            kind if is_whole(kind) || kind.is_remove() => self.0.store(0, Relaxed),
            _ => {}
        }
    }

    /// Whether this look leaves it alone.
    pub fn is_left_alone(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |looks| looks.checked_sub(1)).is_ok()
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

fn watch(path: &Path, sender: mpsc::Sender<()>, writing: Arc<Writing>) -> notify::Result<RecommendedWatcher> {
    let file = path.to_owned();
    let tell = move |event: notify::Result<Event>| {
        let Ok(event) = event else { return };
        if !is_about(&event, &file) {
            return;
        }
        writing.note(event.kind);
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

/// Whether an event of the file's folder is about the file, or about a link or a folder that it goes through: a ConfigMap swaps one.
pub fn is_about(event: &Event, file: &Path) -> bool {
    let folder = whole(file.parent().unwrap_or(Path::new("")));
    let is_named = |path: &Path| {
        let name = path.strip_prefix(&folder).ok().and_then(|rest| rest.components().next());
        name.is_some_and(|name| event.paths.iter().any(|path| path.file_name() == Some(name.as_os_str())))
    };
    let mut path = folder.join(file.file_name().unwrap_or_default());
    for _ in 0..MOST_LINKS {
        if event.paths.is_empty() || is_named(&path) {
            return true;
        }
        let Some(target) = target(&path) else { return false };
        if is_named(&target) {
            return true;
        }
        path = whole(target.parent().unwrap_or(&folder)).join(target.file_name().unwrap_or_default());
    }
    false
}

/// Where a link leads, step by step as it is written.
fn target(link: &Path) -> Option<PathBuf> {
    let mut target = link.parent()?.to_owned();
    for step in link.read_link().ok()?.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => drop(target.pop()),
            step => target.push(step),
        }
    }
    Some(target)
}

/// A folder by its own path, free of links, if there is one.
fn whole(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// Whether a file may be whole from this event on: it was written and closed, or renamed. What is being written says so at
/// every piece, and what somebody reads does as well.
pub fn is_whole(kind: EventKind) -> bool {
    let is_written = kind == EventKind::Access(AccessKind::Close(AccessMode::Write));
    is_written || matches!(kind, EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any | EventKind::Other)
}
