//! The limiter as a library for keys of any kind: so many units for each key, at a rate that is given with each call.

use crate::rate::Rate;
use crate::store::gcra::{Fit, Terms};
use crate::store::key::{Key, KeySpace};
use crate::store::limit::{LimitTable, TableCounts, WhenFull};
use crate::store::meter::{Level, Meter, Moment};
use crate::time::{Now, whole_seconds};
use std::fmt;
use std::time::Duration;

/// Holds keys of any kind, an account, a client, a resource, each to a rate.
///
/// It is for what is only known within a request: here an account, so that a rate is spent for accounts that exist.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, KeyedLimiter, Now, Rate, WhenFull};
///
/// struct App {
///     invitations: KeyedLimiter,
///     rate: Rate,
/// }
///
/// impl App {
///     /// The status of an answer, and its Retry-After.
///     fn invite(&self, account: Option<&str>, now: Now) -> (u16, Option<u64>) {
///         let Some(account) = account else { return (404, None) };
///         match self.invitations.check(account, self.rate, 1, now) {
///             Ok(_) => (201, None),
///             Err(exceeded) => (429, exceeded.retry_after_seconds()),
///         }
///     }
/// }
///
/// let app = App { invitations: KeyedLimiter::new(100_000, WhenFull::Overflow), rate: "2/1h".parse()? };
/// let now = Now::after(Duration::ZERO);
/// assert_eq!(app.invite(Some("alice"), now), (201, None));
/// assert_eq!(app.invite(None, now), (404, None));
/// assert_eq!(app.invite(Some("alice"), now), (201, None));
/// assert_eq!(app.invite(Some("alice"), now), (429, Some(1800)));
/// assert_eq!(app.invite(Some("bob"), now), (201, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyedLimiter {
    keys: KeySpace,
    table: LimitTable,
}

/// What an allowance holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Whole units that it holds.
    pub remaining: u64,
    /// The time until it is full, if nothing is spent meanwhile.
    pub full_in: Duration,
}

/// A key's allowance does not hold what was asked of it. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rate is exceeded")]
#[non_exhaustive]
pub struct Exceeded {
    /// Waiting so long suffices, if nothing is spent meanwhile. Where there was no room for the key, it is a second, after
    /// which there may be. `None`: waiting never helps.
    pub retry_after: Option<Duration>,
}

impl Exceeded {
    /// The wait as `Retry-After` tells it (RFC 9110, section 10.2.3): whole seconds, rounded up, at least 1.
    pub fn retry_after_seconds(self) -> Option<u64> {
        self.retry_after.map(whole_seconds)
    }
}

impl KeyedLimiter {
    /// A limiter that holds at most `max_keys` keys that have spent something, at least 1; `when_full` says what becomes
    /// of a new one beyond.
    pub fn new(max_keys: usize, when_full: WhenFull) -> Self {
        // The table only asks whether an allowance is full, which no rate changes.
        let meter = Meter::rolling(Rate::ONE_A_SECOND, 1);
        Self { keys: KeySpace::new("keyed"), table: LimitTable::new(meter, max_keys.max(1), when_full) }
    }

    /// Takes `cost` units of the allowance that `key` has at `rate`, or none, at `now`, which never decreases. A key has
    /// an allowance for each rate that it is asked for.
    ///
    /// # Errors
    ///
    /// [`Exceeded`], if it does not hold so many, or if there is no room for the key and [`WhenFull::Refuse`] holds: then
    /// the wait is a second.
    pub fn check(&self, key: impl AsRef<[u8]>, rate: Rate, cost: u64, now: Now) -> Result<Held, Exceeded> {
        let (meter, now) = (meter(rate), moment(now));
        let (key, wider) = (self.key(Some(key.as_ref()), rate), || self.key(None, rate));
        let place = if cost == 0 { self.table.look(key, wider) } else { self.table.place(key, wider, now) };
        if !place.is_room() {
            return Err(Exceeded { retry_after: Some(Duration::from_secs(1)) });
        }
        match meter.weigh(place.level, now, cost) {
            Fit::Never => Err(Exceeded { retry_after: None }),
            Fit::Wait(wait) => Err(Exceeded { retry_after: Some(Duration::from_nanos(wait.get())) }),
            Fit::Fits => {
                let level = meter.take(place.level, now, cost);
                place.put(level, now);
                Ok(held(meter, level, now))
            }
        }
    }

    /// What `key` has left at `rate`, without taking anything.
    pub fn peek(&self, key: impl AsRef<[u8]>, rate: Rate, now: Now) -> Held {
        held(
            meter(rate),
            self.table.look(self.key(Some(key.as_ref()), rate), || self.key(None, rate)).level,
            moment(now),
        )
    }

    /// Gives back `cost` units that were taken, exactly, whatever happened meanwhile: an allowance never holds more than
    /// its rate permits at once. A key without state, or one that shares an allowance with others, gets nothing.
    pub fn give_back(&self, key: impl AsRef<[u8]>, rate: Rate, cost: u64) {
        self.table.change(self.key(Some(key.as_ref()), rate), |level: Level| level.given_back(Terms::of(rate), cost));
    }

    /// Drops the state of keys whose allowance is full. New keys do so as they come; calling this from time to time frees
    /// what is left after a wave of keys.
    pub fn sweep(&self, now: Now) {
        self.table.trim(moment(now));
    }

    /// What its table holds and has come through.
    pub fn counts(&self) -> TableCounts {
        self.table.counts()
    }

    /// The key of a name at a rate, or of what all names share that find no room.
    fn key(&self, key: Option<&[u8]>, rate: Rate) -> Key {
        let numbers = [rate.count().to_le_bytes(), rate.nanos().to_le_bytes()];
        self.keys.key_of([key, Some(&numbers[0][..]), Some(&numbers[1][..])])
    }
}

fn moment(now: Now) -> Moment {
    Moment { monotonic: now.nanos(), unix: 0 }
}

fn meter(rate: Rate) -> Meter {
    Meter::rolling(rate, rate.count())
}

fn held(meter: Meter, level: Level, now: Moment) -> Held {
    let reading = meter.read(level, now);
    Held { remaining: reading.remaining, full_in: Duration::from_nanos(reading.full_in) }
}

impl fmt::Debug for KeyedLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
