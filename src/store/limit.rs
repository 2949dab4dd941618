//! The allowances of one limit: a table in shards that holds so many keys and no more.
//!
//! An allowance that is full is worth what one is that does not exist, so full ones make room first. Where every key in
//! sight has spent something, the limit says what becomes of a new one: it shares an allowance with others, takes the
//! place of the key that was seen least recently, or is refused.

#[cfg(feature = "server")]
mod written;

use crate::store::key::Key;
use crate::store::meter::{Level, Meter, Moment};
#[cfg(feature = "server")]
use crate::store::swept::change_all;
use crate::store::swept::{Keyed, Swept, lock, next_place, trim};
use hashbrown::hash_table::Entry as Slot;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// The most shards of a table, and the fewest keys that make another shard worth it.
const SHARDS: usize = 64;
const KEYS_A_SHARD: usize = 256;

/// Buckets looked at for room by a new key that finds the table full.
const STEP: usize = 64;

/// The most wider networks that overflow has an allowance each for; those beyond share one.
const WIDER: usize = 4096;

/// What becomes of a new key where the table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It shares an allowance with the other new keys of its wider network, or with all.
    Overflow,
    /// It takes the place of the key that was seen least recently, which is forgiven what it spent.
    Evict,
    /// It is refused.
    Refuse,
}

/// The allowances of one limit, and how it counts. Several may be of one limit: that of the live policy, and that of the
/// one before it while a request is still judged by it.
pub(crate) struct LimitTable {
    pub meter: Meter,
    max_keys: usize,
    when_full: WhenFull,
    contents: Arc<Contents>,
}

/// What a table holds, and has come through.
struct Contents {
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "the library takes one lock at a time"))]
    place: u64,
    shards: Box<[Mutex<Table>]>,
    overflow: Mutex<Table>,
    /// Keys in all shards, those that a request has reserved room for included.
    live: AtomicUsize,
    counts: Counts,
}

/// Its cursor is where the next search for room starts.
type Table = Swept<Entry>;

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    level: Level,
    seen: u64,
}

#[derive(Default)]
struct Counts {
    evicted: AtomicU64,
    forgiven: AtomicU64,
    overflowed: AtomicU64,
    refused: AtomicU64,
}

/// What a limit's table has come through, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Keys that it holds.
    pub live: usize,
    /// Full allowances that made room.
    pub evicted: u64,
    /// Keys that were forgotten although they had spent something.
    pub forgiven: u64,
    /// Requests that shared an allowance, because there was no room.
    pub overflowed: u64,
    /// Requests that were refused, because there was no room.
    pub refused: u64,
    /// Allowances that are shared, because there was no room.
    pub shared: usize,
}

/// The place of one key's allowance, locked.
pub(crate) struct Place<'l> {
    limit: &'l LimitTable,
    key: Key,
    room: Room<'l>,
    pub level: Level,
}

enum Room<'l> {
    /// It is in the table.
    Known(MutexGuard<'l, Table>),
    /// It is not, and may be added.
    Reserved(MutexGuard<'l, Table>),
    /// It is not, and may take the place of another key.
    Taken(MutexGuard<'l, Table>),
    /// It shares an allowance.
    Shared(MutexGuard<'l, Table>, Key),
    /// There is none.
    None,
    /// It is only looked at.
    Unasked,
}

impl LimitTable {
    pub(crate) fn new(meter: Meter, max_keys: usize, when_full: WhenFull) -> Self {
        let shards = (max_keys / KEYS_A_SHARD).clamp(1, SHARDS);
        let contents = Contents {
            place: next_place(),
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            overflow: Mutex::default(),
            live: AtomicUsize::new(0),
            counts: Counts::default(),
        };
        Self { meter, max_keys, when_full, contents: Arc::new(contents) }
    }

    /// The same allowances, counted in another way.
    #[cfg(feature = "server")]
    pub(crate) fn succeeded(&self, meter: Meter, max_keys: usize, when_full: WhenFull) -> Self {
        Self { meter, max_keys, when_full, contents: Arc::clone(&self.contents) }
    }

    /// Its place in the order of locks.
    #[cfg(feature = "server")]
    pub(crate) fn lock_place(&self) -> u64 {
        self.contents.place
    }

    /// Lets no allowance owe more than a request can: after a change of the rate.
    #[cfg(feature = "server")]
    pub(crate) fn clamp(&self, now: Moment) {
        let clamp = |entry: &mut Entry| entry.level = self.meter.clamp(entry.level, now);
        self.contents.shards.iter().chain([&self.contents.overflow]).for_each(|table| change_all(table, clamp));
    }

    /// Locks the place of `key`. A key that is not known finds room for itself; where there is none it goes by
    /// `when_full`, sharing by `wider`.
    pub(crate) fn place(&self, key: Key, wider: impl FnOnce() -> Key, now: Moment) -> Place<'_> {
        let mut table = self.lock(key);
        if let Some(entry) = table.find_mut(key) {
            entry.seen = now.monotonic;
            let level = entry.level;
            return Place { limit: self, key, room: Room::Known(table), level };
        }
        if self.reserve() || self.reclaim(&mut table, now) {
            return Place { limit: self, key, room: Room::Reserved(table), level: Level::default() };
        }
        match self.when_full {
            WhenFull::Evict if !table.entries.is_empty() => {
                Place { limit: self, key, room: Room::Taken(table), level: Level::default() }
            }
            WhenFull::Refuse => {
                self.contents.counts.refused.fetch_add(1, Relaxed);
                Place { limit: self, key, room: Room::None, level: Level::default() }
            }
            WhenFull::Overflow | WhenFull::Evict => {
                drop(table);
                self.share(key, wider(), now)
            }
        }
    }

    /// The level of `key`, without a place for it: where there is no room for it, of what it would share.
    pub(crate) fn look(&self, key: Key, wider: impl FnOnce() -> Key) -> Place<'_> {
        let known = self.lock(key).level(key);
        let shares = known.is_none()
            && self.when_full == WhenFull::Overflow
            && self.contents.live.load(Relaxed) >= self.max_keys;
        let level = if shares { self.shared(&self.lock_overflow(), wider()).1 } else { known.unwrap_or_default() };
        Place { limit: self, key, room: Room::Unasked, level }
    }

    /// Changes the level of `key`, if it has one of its own.
    pub(crate) fn change(&self, key: Key, change: impl Fn(Level) -> Level) {
        if let Some(entry) = self.lock(key).find_mut(key) {
            entry.level = change(entry.level);
        }
    }

    /// The allowance that `key` shares with others of its wider network.
    fn share(&self, key: Key, wider: Key, now: Moment) -> Place<'_> {
        self.contents.counts.overflowed.fetch_add(1, Relaxed);
        let mut overflow = self.lock_overflow();
        if overflow.level(wider).is_none() && overflow.entries.len() >= self.most_shared() {
            overflow.reclaim(&self.meter, now);
        }
        let (wider, level) = self.shared(&overflow, wider);
        Place { limit: self, key, room: Room::Shared(overflow, wider), level }
    }

    /// By what keys of a wider network share, and what that holds: by their network, or where there are too many, by all.
    fn shared(&self, overflow: &Table, wider: Key) -> (Key, Level) {
        match overflow.level(wider) {
            Some(level) => (wider, level),
            None if overflow.entries.len() < self.most_shared() => (wider, Level::default()),
            None => (Key::SHARED, overflow.level(Key::SHARED).unwrap_or_default()),
        }
    }

    fn most_shared(&self) -> usize {
        WIDER.min(self.max_keys)
    }

    fn reserve(&self) -> bool {
        self.contents.live.fetch_update(Relaxed, Relaxed, |live| (live < self.max_keys).then_some(live + 1)).is_ok()
    }

    fn reclaim(&self, table: &mut Table, now: Moment) -> bool {
        let found = table.reclaim(&self.meter, now);
        self.contents.counts.evicted.fetch_add(found.into(), Relaxed);
        found
    }

    /// Drops allowances that are full, holding a lock for a few buckets at a time.
    pub(crate) fn trim(&self, now: Moment) {
        let is_full = |entry: &Entry| self.meter.is_full(entry.level, now);
        for shard in &self.contents.shards {
            self.contents.live.fetch_sub(trim(shard, is_full), Relaxed);
        }
        trim(&self.contents.overflow, is_full);
    }

    pub(crate) fn counts(&self) -> TableCounts {
        let Counts { evicted, forgiven, overflowed, refused } = &self.contents.counts;
        TableCounts {
            live: self.contents.live.load(Relaxed),
            evicted: evicted.load(Relaxed),
            forgiven: forgiven.load(Relaxed),
            overflowed: overflowed.load(Relaxed),
            refused: refused.load(Relaxed),
            shared: self.lock_overflow().entries.len(),
        }
    }

    fn lock(&self, key: Key) -> MutexGuard<'_, Table> {
        lock(&self.contents.shards[key.part(self.contents.shards.len())])
    }

    fn lock_overflow(&self) -> MutexGuard<'_, Table> {
        lock(&self.contents.overflow)
    }
}

impl Keyed for Entry {
    fn key(&self) -> Key {
        self.key
    }
}

impl Table {
    fn level(&self, key: Key) -> Option<Level> {
        self.find(key).map(|entry| entry.level)
    }

    /// Drops one full allowance of those in sight, for another to take its room.
    fn reclaim(&mut self, meter: &Meter, now: Moment) -> bool {
        self.sweep(STEP, 1, |entry| meter.is_full(entry.level, now)) > 0
    }

    /// Drops the key that was seen least recently of those that were just looked at for room.
    fn evict(&mut self, limit: &LimitTable) {
        let buckets = self.entries.num_buckets();
        let looked_at = (0..STEP.min(buckets)).map(|step| (self.cursor + buckets - step) % buckets);
        let seen = |&bucket: &usize| self.entries.get_bucket(bucket).map(|entry| entry.seen);
        let oldest = looked_at.filter(|bucket| seen(bucket).is_some()).min_by_key(seen);
        // None of these is in use: any that is will do.
        let oldest = oldest.or_else(|| (0..buckets).find(|bucket| seen(bucket).is_some()));
        if let Some(Ok(entry)) = oldest.map(|bucket| self.entries.get_bucket_entry(bucket)) {
            entry.remove();
            limit.contents.counts.forgiven.fetch_add(1, Relaxed);
        }
    }

    fn put(&mut self, key: Key, level: Level, seen: u64) {
        let new = Entry { key, level, seen };
        match self.entry(key) {
            Slot::Occupied(mut entry) => *entry.get_mut() = new,
            Slot::Vacant(entry) => drop(entry.insert(new)),
        }
    }
}

impl Place<'_> {
    /// Whether there is an allowance to take from.
    pub(crate) fn is_room(&self) -> bool {
        !matches!(self.room, Room::None)
    }

    /// Takes units: `level` is what is left.
    pub(crate) fn put(mut self, level: Level, now: Moment) {
        let (key, seen) = (self.key, now.monotonic);
        match std::mem::replace(&mut self.room, Room::Unasked) {
            Room::Known(mut table) | Room::Reserved(mut table) => table.put(key, level, seen),
            Room::Taken(mut table) => {
                table.evict(self.limit);
                table.put(key, level, seen);
            }
            Room::Shared(mut overflow, wider) => overflow.put(wider, level, seen),
            Room::None | Room::Unasked => {}
        }
    }
}

/// Room that was reserved and not taken is given back.
impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Room::Reserved(_) = self.room {
            self.limit.contents.live.fetch_sub(1, Relaxed);
        }
    }
}
