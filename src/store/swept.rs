//! A table of entries by key that is swept in small steps: a cursor goes round it, and what is worth nothing is dropped.

use crate::store::key::Key;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buckets looked at in one hold of a table's lock by [`trim`].
const BATCH: usize = 64;

/// The place of a table in the order in which locks are taken, whatever the order of the file: a table keeps it through
/// reloads, so that requests of two policies cannot wait for each other.
pub(crate) fn next_place() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}

/// What stands in a table under a key.
pub(crate) trait Keyed {
    fn key(&self) -> Key;
}

pub(crate) struct Swept<T> {
    pub entries: HashTable<T>,
    /// The bucket that the next step starts at.
    pub cursor: usize,
}

impl<T> Default for Swept<T> {
    fn default() -> Self {
        Self { entries: HashTable::new(), cursor: 0 }
    }
}

impl<T: Keyed> Swept<T> {
    pub(crate) fn find(&self, key: Key) -> Option<&T> {
        self.entries.find(key.bucket(), |entry| entry.key() == key)
    }

    pub(crate) fn find_mut(&mut self, key: Key) -> Option<&mut T> {
        self.entries.find_mut(key.bucket(), |entry| entry.key() == key)
    }

    /// The place of `key`, with an entry or without.
    pub(crate) fn entry(&mut self, key: Key) -> Entry<'_, T> {
        self.entries.entry(key.bucket(), |entry| entry.key() == key, |entry| entry.key().bucket())
    }

    /// Looks at the next `buckets` buckets and drops up to `most` entries among them that are worth nothing. It says how
    /// many.
    pub(crate) fn sweep(&mut self, buckets: usize, most: usize, is_worthless: impl Fn(&T) -> bool) -> usize {
        let mut dropped = 0;
        for _ in 0..buckets.min(self.entries.num_buckets()) {
            self.cursor = (self.cursor + 1) % self.entries.num_buckets();
            if let Ok(entry) = self.entries.get_bucket_entry(self.cursor)
                && is_worthless(entry.get())
            {
                entry.remove();
                dropped += 1;
                if dropped == most {
                    break;
                }
            }
        }
        dropped
    }

    fn shrink(&mut self) {
        if self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2, |entry| entry.key().bucket());
        }
    }
}

/// A panic under the lock leaves an entry whole, so a poisoned table goes on: one request's fault harms no other.
pub(crate) fn lock<T>(table: &Mutex<Swept<T>>) -> MutexGuard<'_, Swept<T>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops all entries that are worth nothing, holding the lock for a few buckets at a time, and lets a table that has
/// become too large shrink, which moves what lives in it. It says how many it dropped.
pub(crate) fn trim<T: Keyed>(table: &Mutex<Swept<T>>, is_worthless: impl Fn(&T) -> bool) -> usize {
    let (mut left, mut dropped) = (lock(table).entries.num_buckets(), 0);
    while left > 0 {
        let step = left.min(BATCH);
        dropped += lock(table).sweep(step, usize::MAX, &is_worthless);
        left -= step;
    }
    lock(table).shrink();
    dropped
}

/// Changes all entries, holding the lock for a few buckets at a time. A table that grows or shrinks meanwhile is begun again,
/// so that none is passed over: a change that is made twice has to be as good as one.
#[cfg(feature = "server")]
pub(crate) fn change_all<T: Keyed>(table: &Mutex<Swept<T>>, mut change: impl FnMut(&mut T)) {
    let (mut next, mut buckets) = (0, lock(table).entries.num_buckets());
    while next < buckets {
        let mut table = lock(table);
        if table.entries.num_buckets() != buckets {
            (next, buckets) = (0, table.entries.num_buckets());
        }
        for bucket in next..(next + BATCH).min(buckets) {
            table.entries.get_bucket_mut(bucket).map(&mut change);
        }
        next += BATCH;
    }
}
