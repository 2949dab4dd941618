//! The callers of this process: a table in shards, each behind a lock of its own, swept in small steps.
//!
//! There is no cap on callers, and live state is never evicted: forgetting early would hand out a fresh allowance.
//! State that has expired is swept a few buckets at a time by those who add a caller, so that a table is at most a
//! constant factor larger than what lives in it, and no request waits for a scan.

use crate::decision::Taken;
use crate::plan::Presented;
#[cfg(feature = "server")]
use crate::rate::Rate;
use crate::store::caller::{Allowance, Caller};
use crate::store::key::Key;
#[cfg(feature = "server")]
use crate::store::swept::change_all;
use crate::store::swept::{Keyed, Swept, lock, trim};
use crate::time::Clock;
#[cfg(feature = "server")]
use crate::time::Now;
#[cfg(feature = "server")]
use hashbrown::hash_table::Entry;
#[cfg(feature = "server")]
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

/// Enough that a shard of a million callers holds a thousand, so that its growth is no pause to speak of.
const SHARDS: u32 = 1024;

/// Buckets looked at for each new caller. Above 1, a table is swept more often than it can be filled.
const STEP: usize = 4;

/// All callers' allowances.
pub(crate) struct MemoryStore {
    shards: Box<[Shard]>,
}

/// A part of the callers. Aligned, so that a lock and its table share a cache line with each other and no one else.
#[derive(Default)]
#[repr(align(64))]
struct Shard(Mutex<Swept<Caller>>);

impl Keyed for Caller {
    fn key(&self) -> Key {
        self.key
    }
}

impl MemoryStore {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    /// Takes `cost` units of every rate that applies to the caller, or of none. The clock is read under the
    /// caller's lock, so that a caller's requests are judged in the order of their times.
    pub(crate) fn take(&self, key: Key, rates: &[Presented], cost: u64, clock: &dyn Clock) -> Taken {
        let mut table = self.lock(key);
        let (now, known) = (clock.now(), table.entries.len());
        let taken = table.entry(key).or_insert_with(|| Caller::new(key)).into_mut().take(rates, cost, now);
        if table.entries.len() > known {
            table.sweep(STEP, usize::MAX, |caller| caller.is_expired(now));
        }
        taken
    }

    /// How `cost` units of every rate that applies to the caller would fit, without touching anything.
    #[cfg(feature = "server")]
    pub(crate) fn weigh(&self, key: Key, rates: &[Presented], cost: u64, clock: &dyn Clock) -> Taken {
        let table = self.lock(key);
        let now = clock.now();
        let mut caller = table.find(key).map_or_else(|| Caller::new(key), Caller::clone);
        caller.take(rates, cost, now)
    }

    /// The caller's allowances, without touching them.
    pub(crate) fn look(&self, key: Key, clock: &dyn Clock) -> Vec<Allowance> {
        let table = self.lock(key);
        let now = clock.now();
        table.find(key).map_or_else(Vec::new, |caller| caller.look(now))
    }

    /// Forgets the rates that a policy brought, but for those to keep.
    #[cfg(feature = "server")]
    pub(crate) fn forget_policy_rates(&self, clock: &dyn Clock, keep: &HashSet<Rate>) {
        for shard in &self.shards {
            let now = clock.now();
            change_all(&shard.0, |caller| caller.forget_policy_rates(now, keep));
        }
    }

    /// Hands all callers to `write`, as bytes, their times as of `now`.
    #[cfg(feature = "server")]
    pub(crate) fn write<E>(&self, now: Now, mut write: impl FnMut(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let mut bytes = Vec::new();
        for shard in &self.shards {
            change_all(&shard.0, |caller| caller.write(&mut bytes, now));
            write(&mut bytes)?;
        }
        Ok(())
    }

    /// Puts a caller in the place of what is known of it.
    #[cfg(feature = "server")]
    pub(crate) fn put(&self, caller: Caller) {
        let mut table = self.lock(caller.key);
        match table.entry(caller.key) {
            Entry::Occupied(mut known) => *known.get_mut() = caller,
            Entry::Vacant(place) => drop(place.insert(caller)),
        }
    }

    /// The callers that have state.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(&shard.0).entries.len()).sum()
    }

    /// Drops all expired state, holding a lock for a few buckets at a time.
    pub(crate) fn sweep(&self, clock: &dyn Clock) {
        for shard in &self.shards {
            let now = clock.now();
            trim(&shard.0, |caller| caller.is_expired(now));
        }
    }

    fn lock(&self, key: Key) -> MutexGuard<'_, Swept<Caller>> {
        lock(&self.shards[key.shard(SHARDS)].0)
    }
}
