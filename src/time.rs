//! The only window on the time: a monotonic clock that callers pass in, and the calendar for token times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A moment on a monotonic clock, in nanoseconds since an origin that the clock chooses.
///
/// Good for 292 years from the origin: later moments are taken as the last one, `i64::MAX` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    monotonic: u64,
}

impl Now {
    /// The moment that is `since_origin` after the clock's origin.
    pub fn after(since_origin: Duration) -> Self {
        const LAST: u64 = i64::MAX as u64;
        Self { monotonic: u64::try_from(since_origin.as_nanos()).map_or(LAST, |nanos| nanos.min(LAST)) }
    }

    /// Nanoseconds since the clock's origin.
    pub(crate) fn nanos(self) -> u64 {
        self.monotonic
    }
}

/// Tells the time to a limiter.
///
/// A clock must not run backwards. Should it do so all the same, a limiter admits too little until the clock has caught
/// up, and too much only where state that a later moment let expire is asked for at an earlier one.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Now;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Now {
        (**self).now()
    }
}

/// The machine's monotonic clock; its origin is the moment it was made.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

#[allow(clippy::disallowed_methods, reason = "this is the clock that others are handed")]
impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now::after(self.origin.elapsed())
    }
}

/// A clock that stands still until it is told to move. It is for tests and for replaying the past.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, ManualClock, Now};
///
/// let clock = ManualClock::default();
/// clock.set(Duration::from_secs(60));
/// assert_eq!(clock.now(), Now::after(Duration::from_secs(60)));
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Sets the time to `since_origin`, be it earlier or later than the present.
    pub fn set(&self, since_origin: Duration) {
        self.0.store(Now::after(since_origin).nanos(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        Now { monotonic: self.0.load(Ordering::Relaxed) }
    }
}

/// Seconds since the Unix epoch, for the times written into a token. A clock set before 1970 reads 0.
#[allow(clippy::disallowed_methods, reason = "this is the clock that others are handed")]
#[cfg(feature = "server")]
pub fn unix_now() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
