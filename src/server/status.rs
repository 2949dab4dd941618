//! How the process is: whether it takes requests, and its connections.

use crate::time::Stopwatch;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How the process is. All clones tell the same.
#[derive(Clone, Default)]
pub struct Status {
    ready: Arc<AtomicBool>,
    pub connections: Connections,
}

impl Status {
    /// Whether requests are taken, and go on being taken.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Relaxed)
    }

    /// Says whether they are.
    pub fn tell(&self, is_ready: bool) {
        self.ready.store(is_ready, Relaxed);
    }
}

/// Connections that are open, by when they were opened.
#[derive(Clone, Default)]
pub struct Connections {
    open: Arc<Mutex<BTreeSet<(Stopwatch, u64)>>>,
    opened: Arc<AtomicU64>,
}

/// One of them, until it is dropped.
pub struct Opened {
    connections: Connections,
    id: (Stopwatch, u64),
}

impl Connections {
    /// Counts one more.
    pub fn open_one(&self) -> Opened {
        let id = (Stopwatch::start(), self.opened.fetch_add(1, Relaxed));
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        Opened { connections: self.clone(), id }
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many were opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Relaxed)
    }

    /// The age of the oldest.
    pub fn oldest(&self) -> Option<Duration> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.first().map(|(since, _)| since.elapsed())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.connections.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
