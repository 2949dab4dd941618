//! Strikes: attempts counted by key, and keys that are locked by them.
//!
//! ```text
//! a key is worth nothing from `until` on, the end of its last attempt that stands: rolling, now + window
//! attempt:  denied if locked, or held by provisional strikes;  else strikes + 1, and the threshold-th locks the key
//! cancel:   strikes - 1, as if it had never been;  a lockout that this very attempt engaged is lifted
//! confirm:  a provisional strike is kept;  the key is locked once `threshold` are
//! ```
//!
//! A new key takes the place of the one that was used least recently: of those with provisional strikes alone, else of
//! those that are not locked. A lockout is never given up. Every step looks at a few entries and no more: only the first of
//! each queue is looked at for what is over. Where a clock was set back, a window became shorter or an attempt was taken
//! back, a key may be over behind one that is not; it makes room when that one does, a window later at most.

mod ends;
#[cfg(feature = "server")]
mod service;
pub(crate) mod window;
#[cfg(feature = "server")]
pub(crate) mod written;

use crate::store::key::Key;
use crate::store::ranks::Ranks;
use crate::store::swept::{Keyed, next_place};
use ends::Ends;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use window::Span;

/// The strikes of many keys, and when they lock. Several may be of one lockout: that of the live policy, and that of the one
/// before it while a request is still judged by it. Time is in nanoseconds.
pub(crate) struct StrikeTable {
    threshold: u32,
    max_keys: usize,
    /// How long an outcome is waited for.
    patience: u64,
    contents: Arc<Contents>,
}

/// What a table holds, and has come through.
struct Contents {
    place: u64,
    strikes: Mutex<Strikes>,
    forgiven: AtomicU64,
    turned_away: AtomicU64,
}

/// The strikes, locked against other threads.
pub(crate) struct Strikes {
    keys: Ranks<Entry, 3>,
    /// The generation of the next entry: a key that was forgotten begins another.
    generation: u64,
}

/// The queues of the table.
const PROVISIONAL: usize = 0;
const COUNTING: usize = 1;
const LOCKED: usize = 2;

struct Entry {
    key: Key,
    /// When its lockout is over, or else the last of its strikes.
    until: u64,
    ends: Ends,
    generation: u64,
    strikes: u32,
    /// Strikes of which nobody has said yet whether they count.
    provisional: u32,
    /// Until when somebody may say so.
    awaited: u64,
}

/// One strike, by which it may be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    /// The table that it is in.
    pub table: u64,
    pub key: Key,
    pub generation: u64,
    /// When it is over.
    pub end: u64,
    /// Whether it only counts once it is confirmed.
    pub provisional: bool,
    /// Whether it engaged a lockout.
    pub engaged: bool,
}

/// What became of the key of a strike.
#[cfg_attr(not(feature = "server"), expect(dead_code, reason = "the library alone has no provisional strikes"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing: the key was forgotten since.
    Gone,
    Done,
    /// It is locked now.
    Engaged,
}

/// What a table has come through, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(hidden)]
pub struct StrikeCounts {
    /// Keys that it holds.
    pub live: usize,
    /// Those of them that are locked.
    pub locked: usize,
    /// Keys that were forgotten, because others took their place.
    pub forgiven: u64,
    /// Attempts that were denied, because every place was locked.
    pub turned_away: u64,
}

impl Keyed for Entry {
    fn key(&self) -> Key {
        self.key
    }
}

impl Entry {
    fn is_over(&self, span: Span) -> bool {
        span.is_over(self.until)
    }
}

impl StrikeTable {
    /// A table of at most `max_keys` keys, each locked by `threshold` strikes. Both are at least 1. The outcome of a
    /// provisional strike comes within `patience`.
    pub(crate) fn new(threshold: u32, max_keys: usize, patience: u64) -> Self {
        let contents = Contents {
            place: next_place(),
            strikes: Mutex::new(Strikes { keys: Ranks::new(max_keys), generation: 0 }),
            forgiven: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        };
        Self { threshold, max_keys, patience, contents: Arc::new(contents) }
    }

    /// A panic under the lock leaves an entry whole, so a poisoned table goes on.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Strikes> {
        self.contents.strikes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long `key` is denied, if it is: until its lockout is over; where provisional strikes hold it, as long as somebody
    /// may still say that they do not count; where every place is locked, until the first of them is free.
    pub(crate) fn denied(&self, strikes: &Strikes, key: Key, span: Span) -> Option<NonZeroU64> {
        let Some(at) = strikes.keys.find(key) else { return self.wait_for_room(strikes, span) };
        let entry = strikes.keys.get(at);
        let left = NonZeroU64::new(entry.until.saturating_sub(span.now)).filter(|_| !entry.is_over(span))?;
        let is_held = entry.provisional > 0 && entry.strikes >= self.threshold;
        let awaited = NonZeroU64::new(entry.awaited.saturating_sub(span.now));
        match strikes.keys.queue(at) {
            LOCKED => Some(left),
            _ if is_held => Some(awaited.map_or(left, |awaited| left.min(awaited))),
            _ => None,
        }
    }

    fn wait_for_room(&self, strikes: &Strikes, span: Span) -> Option<NonZeroU64> {
        let is_free = strikes.keys.len() < self.max_keys;
        if is_free || strikes.keys.first(PROVISIONAL).or(strikes.keys.first(COUNTING)).is_some() {
            return None;
        }
        let first = strikes.keys.get(strikes.keys.first(LOCKED)?);
        NonZeroU64::new(first.until.saturating_sub(span.now)).filter(|_| !first.is_over(span))
    }

    /// Counts an attempt of `key`, which is not [denied](Self::denied). One that is `provisional` locks nobody before it is
    /// confirmed.
    pub(crate) fn strike(&self, strikes: &mut Strikes, key: Key, span: Span, provisional: bool) -> Strike {
        let at = match strikes.keys.find(key) {
            Some(at) if strikes.keys.get(at).is_over(span) => {
                strikes.keys.remove(at);
                self.admit(strikes, key, span)
            }
            Some(at) => at,
            None => self.admit(strikes, key, span),
        };
        let entry = strikes.keys.get_mut(at);
        entry.strikes += 1;
        if provisional {
            entry.provisional += 1;
            entry.awaited = span.now.saturating_add(self.patience);
        }
        entry.until = entry.ends.add(span.end);
        let (table, generation, end) = (self.contents.place, entry.generation, entry.until);
        Strike { table, key, generation, end, provisional, engaged: self.used(strikes, at, span) }
    }

    /// Makes a place for a new key. A table with more keys than it is to have loses one beside.
    fn admit(&self, strikes: &mut Strikes, key: Key, span: Span) -> u32 {
        let surplus = (strikes.keys.len() + 1).saturating_sub(self.max_keys).min(2);
        for _ in 0..surplus {
            let Some(at) = strikes.to_displace(span) else { break };
            let is_over = strikes.keys.get(at).is_over(span);
            self.contents.forgiven.fetch_add(u64::from(!is_over), Relaxed);
            strikes.keys.remove(at);
        }
        strikes.generation += 1;
        let generation = strikes.generation;
        let entry = Entry { key, until: 0, ends: Ends::default(), generation, strikes: 0, provisional: 0, awaited: 0 };
        strikes.keys.add(entry, COUNTING)
    }

    /// The queue that an entry belongs to which is not locked yet.
    fn queue(&self, entry: &Entry) -> usize {
        match entry.strikes - entry.provisional {
            0 => PROVISIONAL,
            firm if firm >= self.threshold => LOCKED,
            _ => COUNTING,
        }
    }

    /// Moves an entry that was used to the end of its queue. It says whether it got locked: from now on for a window, also
    /// where attempts of before a reload count for longer.
    fn used(&self, strikes: &mut Strikes, at: u32, span: Span) -> bool {
        let queue = self.queue(strikes.keys.get(at));
        strikes.keys.move_to(at, queue);
        if queue == LOCKED {
            strikes.keys.get_mut(at).until = span.end;
        }
        queue == LOCKED
    }

    /// Takes back a strike.
    pub(crate) fn cancel(&self, strike: Strike, span: Span) -> Change {
        let mut strikes = self.lock();
        let Some(at) = self.find(&strikes, strike, span) else { return Change::Gone };
        self.take_back(&mut strikes, at, strike)
    }

    /// Takes back a strike: one of those with its end, if there is any.
    fn take_back(&self, strikes: &mut Strikes, at: u32, strike: Strike) -> Change {
        let queue = strikes.keys.queue(at);
        let entry = strikes.keys.get_mut(at);
        if !entry.ends.take_back(strike.end, entry.strikes) {
            return Change::Gone;
        }
        entry.strikes = entry.strikes.saturating_sub(1);
        entry.provisional = entry.provisional.saturating_sub(strike.provisional.into()).min(entry.strikes);
        if queue == LOCKED && !strike.engaged {
            return Change::Done;
        }
        entry.until = entry.ends.last();
        // To take back locks nobody, also where the threshold has become lower.
        match (entry.strikes, self.queue(entry).min(COUNTING)) {
            (0, _) => strikes.keys.remove(at),
            (_, belongs) if queue != belongs => strikes.keys.move_to(at, belongs),
            _ => {}
        }
        Change::Done
    }

    /// Forgets a key, lockout included.
    pub(crate) fn reset(&self, key: Key) {
        let mut strikes = self.lock();
        if let Some(at) = strikes.keys.find(key) {
            strikes.keys.remove(at);
        }
    }

    /// Takes back the last strike of a key that is not locked.
    pub(crate) fn refund(&self, key: Key, span: Span) {
        let mut strikes = self.lock();
        let counts = |at: &u32| strikes.keys.queue(*at) != LOCKED && !strikes.keys.get(*at).is_over(span);
        if let Some(at) = strikes.keys.find(key).filter(counts) {
            let Entry { until: end, generation, .. } = *strikes.keys.get(at);
            let table = self.contents.place;
            let last = Strike { table, key, generation, end, provisional: false, engaged: false };
            self.take_back(&mut strikes, at, last);
        }
    }

    /// Drops keys that are worth nothing, holding the lock for one at a time.
    pub(crate) fn sweep(&self, span: Span) {
        while self.lock().drop_worthless(span) {}
    }

    /// The entry that a strike belongs to, unless that was forgotten.
    fn find(&self, strikes: &Strikes, strike: Strike, span: Span) -> Option<u32> {
        let is_same = |&at: &u32| {
            let entry = strikes.keys.get(at);
            entry.generation == strike.generation && !entry.is_over(span)
        };
        strikes.keys.find(strike.key).filter(|_| strike.table == self.contents.place).filter(is_same)
    }

    pub(crate) fn counts(&self) -> StrikeCounts {
        let strikes = self.lock();
        StrikeCounts {
            live: strikes.keys.len(),
            locked: strikes.keys.len_of(LOCKED),
            forgiven: self.contents.forgiven.load(Relaxed),
            turned_away: self.contents.turned_away.load(Relaxed),
        }
    }
}

impl Strikes {
    /// The key that makes room: one that is worth nothing, or else the one used least recently that is not locked.
    fn to_displace(&self, span: Span) -> Option<u32> {
        self.worthless(span).or(self.keys.first(PROVISIONAL)).or(self.keys.first(COUNTING))
    }

    /// A key that is worth nothing, if the first of some queue is.
    fn worthless(&self, span: Span) -> Option<u32> {
        let firsts = [PROVISIONAL, COUNTING, LOCKED].into_iter().filter_map(|queue| self.keys.first(queue));
        firsts.into_iter().find(|&at| self.keys.get(at).is_over(span))
    }

    fn drop_worthless(&mut self, span: Span) -> bool {
        self.worthless(span).map(|at| self.keys.remove(at)).is_some()
    }
}
