//! The callers of this process: a table in shards, each behind a lock of its own, swept in small steps.
//!
//! There is no cap on callers, and live state is never evicted: forgetting early would hand out a fresh allowance.
//! State that has expired is swept a few buckets at a time by those who add a caller, so that a table is at most a
//! constant factor larger than what lives in it, and no request waits for a scan.

use crate::decision::Taken;
use crate::rate::Rate;
use crate::store::caller::{Allowance, Caller};
use crate::store::key::Key;
use crate::time::{Clock, Now};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough that a shard of a million callers holds a thousand, so that its growth is no pause to speak of.
const SHARDS: u32 = 1024;

/// Buckets looked at for each new caller. Above 1, a table is swept more often than it can be filled.
const STEP: usize = 4;

/// Buckets looked at in one hold of a shard's lock by [`MemoryStore::sweep`].
const SWEEP_BATCH: usize = 64;

/// All callers' allowances.
pub(crate) struct MemoryStore {
    shards: Box<[Shard]>,
}

/// A part of the callers. Aligned, so that a lock and its table share a cache line with each other and no one else.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<Table>);

#[derive(Default)]
struct Table {
    callers: HashTable<Caller>,
    /// The bucket that the next sweeping step starts at.
    cursor: usize,
}

impl MemoryStore {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    /// Takes `cost` units of every rate that applies to the caller, or of none. The clock is read under the
    /// caller's lock, so that a caller's requests are judged in the order of their times.
    pub(crate) fn take(&self, key: Key, rates: &[Rate], cost: u64, clock: &dyn Clock) -> Taken {
        let mut table = self.lock(key);
        let (now, known) = (clock.now(), table.callers.len());
        let taken = table.caller(key).take(rates, cost, now);
        if table.callers.len() > known {
            table.sweep(STEP, now);
        }
        taken
    }

    /// How `cost` units of every rate that applies to the caller would fit, without touching anything.
    #[cfg(feature = "server")]
    pub(crate) fn weigh(&self, key: Key, rates: &[Rate], cost: u64, clock: &dyn Clock) -> Taken {
        let table = self.lock(key);
        let now = clock.now();
        let known = table.callers.find(key.bucket(), |caller| caller.key == key);
        let mut caller = known.map_or_else(|| Caller::new(key), Caller::clone);
        caller.take(rates, cost, now)
    }

    /// The caller's allowances, without touching them.
    pub(crate) fn look(&self, key: Key, clock: &dyn Clock) -> Vec<Allowance> {
        let table = self.lock(key);
        let now = clock.now();
        table.callers.find(key.bucket(), |caller| caller.key == key).map_or_else(Vec::new, |caller| caller.look(now))
    }

    /// The callers that have state.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().callers.len()).sum()
    }

    /// Drops all expired state, holding a lock for a few buckets at a time, and lets a shard that has become too large
    /// shrink, which moves what lives in it.
    pub(crate) fn sweep(&self, clock: &dyn Clock) {
        for shard in &self.shards {
            let mut left = shard.lock().callers.num_buckets();
            while left > 0 {
                let step = left.min(SWEEP_BATCH);
                shard.lock().sweep(step, clock.now());
                left -= step;
            }
            shard.lock().shrink();
        }
    }

    fn lock(&self, key: Key) -> MutexGuard<'_, Table> {
        self.shards[key.shard(SHARDS)].lock()
    }
}

impl Shard {
    /// A panic under the lock leaves an entry whole, so a poisoned shard goes on: one request's fault harms no other.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The caller's entry, made if it is missing.
    fn caller(&mut self, key: Key) -> &mut Caller {
        match self.callers.entry(key.bucket(), |caller| caller.key == key, |caller| caller.key.bucket()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Caller::new(key)).into_mut(),
        }
    }

    /// Looks at the next `buckets` buckets and drops the expired callers among them.
    fn sweep(&mut self, buckets: usize, now: Now) {
        for _ in 0..buckets.min(self.callers.num_buckets()) {
            self.cursor = (self.cursor + 1) % self.callers.num_buckets();
            if let Ok(entry) = self.callers.get_bucket_entry(self.cursor)
                && entry.get().is_expired(now)
            {
                entry.remove();
            }
        }
    }

    fn shrink(&mut self) {
        if self.callers.len() < self.callers.capacity() / 4 {
            self.callers.shrink_to(self.callers.len() * 2, |caller| caller.key.bucket());
        }
    }
}
