//! A window that is aligned to the calendar (UTC): pure arithmetic on the index of a window and what was used in it.
//!
//! ```text
//! index     = floor(unix time / window); weeks begin on Monday
//! used      = 0 when the index grows
//! fits      iff used + cost <= count;  wait = the next boundary - now;  never iff cost > count
//! remaining = count - used
//! ```
//!
//! A clock that steps back keeps the stored index, so that nobody gets a window twice; an index more than one window in
//! the future is one of a clock that was wrong, and starts afresh.

use crate::store::gcra::Fit;
use std::num::NonZeroU64;

/// A count in a window, which is aligned to the calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedWindow {
    count: u64,
    window: u64,
    /// From the start of the first window to the Unix epoch.
    offset: u64,
}

/// What was used in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub index: u64,
    pub units: u64,
}

const DAY: u64 = 24 * 60 * 60 * 1_000_000_000;

impl FixedWindow {
    /// `count` units in each `window`, in nanoseconds.
    pub(crate) fn new(count: u64, window: u64) -> Self {
        // 1970 began on a Thursday, three days after a Monday.
        let offset = if window == 7 * DAY { 3 * DAY } else { 0 };
        Self { count, window, offset }
    }

    /// What counts as used at `unix`.
    pub(crate) fn used(self, stored: Used, unix: u64) -> Used {
        let index = unix.saturating_add(self.offset) / self.window;
        if stored.index == index || stored.index == index + 1 { stored } else { Used { index, units: 0 } }
    }

    pub(crate) fn weigh(self, stored: Used, unix: u64, cost: u64) -> Fit {
        if cost > self.count {
            return Fit::Never;
        }
        let used = self.used(stored, unix);
        if used.units.saturating_add(cost) <= self.count {
            return Fit::Fits;
        }
        Fit::Wait(NonZeroU64::new(self.until_next(used, unix)).unwrap_or(NonZeroU64::MIN))
    }

    /// What is used after a request that fits has been taken.
    pub(crate) fn take(self, stored: Used, unix: u64, cost: u64) -> Used {
        let used = self.used(stored, unix);
        Used { units: used.units.saturating_add(cost), ..used }
    }

    pub(crate) fn remaining(self, stored: Used, unix: u64) -> u64 {
        self.count.saturating_sub(self.used(stored, unix).units)
    }

    /// When the window of `unix` ends, as the time since the Unix epoch.
    pub(crate) fn end(self, unix: u64) -> u64 {
        unix.saturating_add(self.until_next(self.used(Used::default(), unix), unix))
    }

    /// Nanoseconds until the window after that of `used` begins.
    pub(crate) fn until_next(self, used: Used, unix: u64) -> u64 {
        (used.index + 1).saturating_mul(self.window).saturating_sub(unix.saturating_add(self.offset))
    }
}
