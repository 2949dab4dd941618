//! Strikes: attempts counted by key, and keys that are locked by them.
//!
//! ```text
//! a key is worth nothing from `until` on, which an attempt sets to the end of its window: rolling, now + window
//! attempt:  denied if locked, or if strikes = threshold;  else strikes + 1, and the threshold-th locks the key
//! cancel:   strikes - 1;  a lockout that this very attempt engaged is lifted
//! confirm:  a provisional strike is kept;  the key is locked once `threshold` are
//! ```
//!
//! A new key takes the place of the one that was used least recently: of those with provisional strikes alone, else of
//! those that are not locked. A lockout is never given up. Every step looks at a few entries and no more.

#[cfg(feature = "server")]
pub(crate) mod written;

#[cfg(feature = "server")]
use crate::store::fixed_window::FixedWindow;
use crate::store::key::Key;
use crate::store::meter::Moment;
use crate::store::ranks::Ranks;
use crate::store::swept::{Keyed, next_place};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The strikes of many keys, and when they lock. Several may be of one lockout: that of the live policy, and that of the one
/// before it while a request is still judged by it. Time is in nanoseconds.
pub(crate) struct StrikeTable {
    threshold: u32,
    max_keys: usize,
    contents: Arc<Contents>,
}

/// What a table holds, and has come through.
struct Contents {
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "the library takes one lock at a time"))]
    place: u64,
    strikes: Mutex<Strikes>,
    forgiven: AtomicU64,
    turned_away: AtomicU64,
}

/// A moment, and when the window of an attempt at that moment ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub now: u64,
    pub end: u64,
    /// What ends later was noted by a clock that has been set back since; it is worth nothing.
    pub latest: u64,
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
    until: u64,
    generation: u64,
    strikes: u32,
    /// Strikes of which nobody has said yet whether they count.
    provisional: u32,
}

/// One strike, by which it may be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    pub key: Key,
    pub generation: u64,
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

/// How long an attempt counts, and a lockout lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Window {
    /// From the last attempt on.
    Rolling(u64),
    /// To the end of a window of the calendar, of this length.
    #[cfg(feature = "server")]
    Fixed(FixedWindow, u64),
}

impl Window {
    pub(crate) fn span(self, now: Moment) -> Span {
        match self {
            Self::Rolling(window) => {
                Span { now: now.monotonic, end: now.monotonic.saturating_add(window), latest: u64::MAX }
            }
            #[cfg(feature = "server")]
            Self::Fixed(window, length) => {
                let end = window.end(now.unix);
                Span { now: now.unix, end, latest: end.saturating_add(length) }
            }
        }
    }
}

impl Keyed for Entry {
    fn key(&self) -> Key {
        self.key
    }
}

impl Entry {
    fn is_over(&self, span: Span) -> bool {
        span.now >= self.until || self.until > span.latest
    }
}

impl StrikeTable {
    /// A table of at most `max_keys` keys, each locked by `threshold` strikes. Both are at least 1.
    pub(crate) fn new(threshold: u32, max_keys: usize) -> Self {
        let contents = Contents {
            place: next_place(),
            strikes: Mutex::new(Strikes { keys: Ranks::new(max_keys), generation: 0 }),
            forgiven: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
        };
        Self { threshold, max_keys, contents: Arc::new(contents) }
    }

    /// The same strikes, with another threshold and for another number of keys. A key stays locked as long as it was.
    #[cfg(feature = "server")]
    pub(crate) fn succeeded(&self, threshold: u32, max_keys: usize) -> Self {
        Self { threshold, max_keys, contents: Arc::clone(&self.contents) }
    }

    /// Its place in the order of locks.
    #[cfg(feature = "server")]
    pub(crate) fn lock_place(&self) -> u64 {
        self.contents.place
    }

    /// A panic under the lock leaves an entry whole, so a poisoned table goes on.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Strikes> {
        self.contents.strikes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long `key` is denied, if it is; for a key that finds every place locked, until the first of these is free.
    pub(crate) fn denied(&self, strikes: &Strikes, key: Key, span: Span) -> Option<NonZeroU64> {
        let Some(at) = strikes.keys.find(key) else { return self.wait_for_room(strikes, span) };
        let entry = strikes.keys.get(at);
        let is_denied = strikes.keys.queue(at) == LOCKED || entry.strikes >= self.threshold;
        NonZeroU64::new(entry.until.saturating_sub(span.now)).filter(|_| is_denied && !entry.is_over(span))
    }

    fn wait_for_room(&self, strikes: &Strikes, span: Span) -> Option<NonZeroU64> {
        let is_free = strikes.keys.len() < self.max_keys;
        if is_free || strikes.keys.first(PROVISIONAL).or(strikes.keys.first(COUNTING)).is_some() {
            return None;
        }
        let first = strikes.keys.get(strikes.keys.first(LOCKED)?);
        let wait = NonZeroU64::new(first.until.saturating_sub(span.now)).filter(|_| !first.is_over(span))?;
        self.contents.turned_away.fetch_add(1, Relaxed);
        Some(wait)
    }

    /// Counts an attempt of `key`, which is not [denied](Self::denied). One that is `provisional` locks nobody before it is
    /// [confirmed](Self::confirm).
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
        entry.provisional += u32::from(provisional);
        entry.until = entry.until.max(span.end);
        let generation = entry.generation;
        Strike { key, generation, engaged: self.used(strikes, at) }
    }

    /// Makes a place for a new key.
    fn admit(&self, strikes: &mut Strikes, key: Key, span: Span) -> u32 {
        if strikes.keys.len() >= self.max_keys
            && let Some(at) = strikes.to_displace(span)
        {
            let is_over = strikes.keys.get(at).is_over(span);
            self.contents.forgiven.fetch_add(u64::from(!is_over), Relaxed);
            strikes.keys.remove(at);
        }
        strikes.generation += 1;
        let entry = Entry { key, until: span.end, generation: strikes.generation, strikes: 0, provisional: 0 };
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

    /// Moves an entry that was used to the end of its queue. It says whether it got locked.
    fn used(&self, strikes: &mut Strikes, at: u32) -> bool {
        let queue = self.queue(strikes.keys.get(at));
        strikes.keys.move_to(at, queue);
        queue == LOCKED
    }

    /// Takes back a strike.
    pub(crate) fn cancel(&self, strike: Strike, provisional: bool, span: Span) -> Change {
        let mut strikes = self.lock();
        let Some(at) = strikes.find(strike, span) else { return Change::Gone };
        self.take_back(&mut strikes, at, provisional, strike.engaged);
        Change::Done
    }

    fn take_back(&self, strikes: &mut Strikes, at: u32, provisional: bool, lifts: bool) {
        let queue = strikes.keys.queue(at);
        let entry = strikes.keys.get_mut(at);
        entry.strikes = entry.strikes.saturating_sub(1);
        entry.provisional = entry.provisional.saturating_sub(provisional.into()).min(entry.strikes);
        // To take back locks nobody, also where the threshold has become lower.
        let (is_unused, belongs) = (entry.strikes == 0, self.queue(entry).min(COUNTING));
        match queue {
            LOCKED if !lifts => {}
            _ if is_unused => strikes.keys.remove(at),
            queue if queue != belongs => strikes.keys.move_to(at, belongs),
            _ => {}
        }
    }

    /// Keeps a provisional strike. A lockout that it engages begins now.
    #[cfg(feature = "server")]
    pub(crate) fn confirm(&self, strike: Strike, span: Span) -> Change {
        let mut strikes = self.lock();
        let Some(at) = strikes.find(strike, span) else { return Change::Gone };
        let entry = strikes.keys.get_mut(at);
        entry.provisional = entry.provisional.saturating_sub(1);
        if strikes.keys.queue(at) == LOCKED || !self.used(&mut strikes, at) {
            return Change::Done;
        }
        let entry = strikes.keys.get_mut(at);
        entry.until = entry.until.max(span.end);
        Change::Engaged
    }

    /// Forgets the key of a strike, lockout included.
    #[cfg(feature = "server")]
    pub(crate) fn reset_by(&self, strike: Strike, span: Span) -> Change {
        let mut strikes = self.lock();
        let Some(at) = strikes.find(strike, span) else { return Change::Gone };
        strikes.keys.remove(at);
        Change::Done
    }

    /// Forgets a key, lockout included.
    pub(crate) fn reset(&self, key: Key) {
        let mut strikes = self.lock();
        if let Some(at) = strikes.keys.find(key) {
            strikes.keys.remove(at);
        }
    }

    /// Lowers the strikes of a key that is not locked.
    pub(crate) fn refund(&self, key: Key, span: Span) {
        let mut strikes = self.lock();
        let counts = |at: &u32| strikes.keys.queue(*at) != LOCKED && !strikes.keys.get(*at).is_over(span);
        if let Some(at) = strikes.keys.find(key).filter(counts) {
            self.take_back(&mut strikes, at, false, false);
        }
    }

    /// Drops keys that are worth nothing, holding the lock for one at a time.
    pub(crate) fn sweep(&self, span: Span) {
        while self.lock().drop_worthless(span) {}
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

    /// The entry that a strike belongs to, unless that was forgotten.
    fn find(&self, strike: Strike, span: Span) -> Option<u32> {
        let is_same = |&at: &u32| {
            let entry = self.keys.get(at);
            entry.generation == strike.generation && !entry.is_over(span)
        };
        self.keys.find(strike.key).filter(is_same)
    }
}
