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
        Self { monotonic: nanos(since_origin).min(LAST) }
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

    /// The calendar (UTC): nanoseconds since the Unix epoch. Only limits with windows of the calendar and
    /// answers that tell a time of it ask for it.
    fn calendar(&self) -> u64 {
        system_calendar()
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the clock that others are handed")]
fn system_calendar() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    nanos(since)
}

/// A duration in nanoseconds, at most `u64::MAX`: 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Now {
        (**self).now()
    }

    fn calendar(&self) -> u64 {
        (**self).calendar()
    }
}

/// The machine's monotonic clock; its origin is the moment it was made, unless it is said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
    /// What it said then.
    begun: Duration,
}

impl SystemClock {
    /// The same clock, whose origin is so long ago: what happened before it was made can have a time on it.
    #[cfg(feature = "server")]
    pub fn begun(self, ago: Duration) -> Self {
        Self { begun: ago, ..self }
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the clock that others are handed")]
impl Default for SystemClock {
    fn default() -> Self {
        Self { origin: Instant::now(), begun: Duration::ZERO }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now::after(self.begun + self.origin.elapsed())
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
pub struct ManualClock {
    monotonic: AtomicU64,
    /// The calendar at the origin.
    calendar: AtomicU64,
}

impl ManualClock {
    /// Sets the time to `since_origin`, be it earlier or later than the present.
    pub fn set(&self, since_origin: Duration) {
        self.monotonic.store(Now::after(since_origin).nanos(), Ordering::Relaxed);
    }

    /// Sets what the calendar says at the origin, as the time since the Unix epoch; it goes on with the clock.
    pub fn set_calendar(&self, since_epoch: Duration) {
        self.calendar.store(Now::after(since_epoch).nanos(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        Now { monotonic: self.monotonic.load(Ordering::Relaxed) }
    }

    fn calendar(&self) -> u64 {
        self.calendar.load(Ordering::Relaxed).saturating_add(self.now().nanos())
    }
}

/// A moment of the calendar, in nanoseconds since the Unix epoch, as others want it.
#[cfg(feature = "otlp")]
pub fn from_calendar(nanos: u64) -> std::time::SystemTime {
    std::time::UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// How long something takes.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stopwatch(Instant);

#[cfg(feature = "server")]
#[allow(clippy::disallowed_methods, reason = "this is the clock that others are handed")]
impl Stopwatch {
    /// Starts one.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since it was started.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Seconds since the Unix epoch, for the times written into a token. A clock set before 1970 reads 0.
#[cfg(feature = "server")]
pub fn unix_now() -> u64 {
    system_calendar() / 1_000_000_000
}

/// RFC 9110, section 10.2.3: whole seconds. Rounded up, so that a client that waits so long is not too early, and since
/// no wait is zero, at least 1.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
