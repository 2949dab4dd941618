//! The generic cell rate algorithm (GCRA) for one allowance: pure arithmetic on one number.
//!
//! An allowance is one instant, its theoretical arrival time (`tat`): the moment it will be full again.
//!
//! ```text
//! interval  = max(floor(window / count), 1)                                what one unit costs, in nanoseconds
//! tolerance = min(floor(burst * window / count), interval * (burst + 1) - 1)   how much debt is permitted
//! debt      = tat - now, at least 0
//! need      = debt + cost * interval
//! fits      iff need <= tolerance;  wait = need - tolerance;  never iff cost * interval > tolerance
//! taken:    tat = max(tat, now) + cost * interval
//! remaining = floor((tolerance - debt) / interval)
//! next unit in debt + (remaining + 1) * interval - tolerance, while remaining < burst
//! ```
//!
//! The burst is the count, unless a limit says otherwise. The tolerance is not simply the window, because the interval is
//! rounded down, so that `7/10ns` (interval 1) would permit 10 calls at once. Capped at one nanosecond less than
//! `burst + 1` intervals, a full allowance is worth exactly `burst` calls for every rate whose count does not exceed its
//! window in nanoseconds. What is admitted over any time `t` is at most `burst + floor((t + rest) / interval)`, where
//! `rest` is what the tolerance has over `burst` intervals: less than one nanosecond a call, 0 if `count` divides `window`.
//!
//! Nothing wraps: count and window are at most 2^63 - 1, a larger tolerance saturates, and an instant is at most 2^63 - 1
//! with a debt of at most the tolerance on top. A cost that saturates exceeds every tolerance, so it never fits.

use crate::rate::Rate;
use std::num::NonZeroU64;

/// The terms of a rate: what one unit costs and how much debt is permitted, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    interval: u64,
    pub tolerance: u64,
}

/// Whether a request fits into an allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It fits now.
    Fits,
    /// It fits after so many nanoseconds.
    Wait(NonZeroU64),
    /// It costs more than a full allowance holds.
    Never,
}

impl Terms {
    pub(crate) fn of(rate: Rate) -> Self {
        let interval = (rate.nanos() / rate.count()).max(1);
        let exactly_count = interval * rate.count() + (interval - 1);
        Self { interval, tolerance: rate.nanos().min(exactly_count) }
    }

    /// The terms of a rate that permits `burst` units at once.
    pub(crate) fn with_burst(rate: Rate, burst: u64) -> Self {
        let interval = (rate.nanos() / rate.count()).max(1);
        let refill = u128::from(burst) * u128::from(rate.nanos()) / u128::from(rate.count());
        let exactly_burst = u128::from(interval) * (u128::from(burst) + 1) - 1;
        Self { interval, tolerance: u64::try_from(refill.min(exactly_burst)).unwrap_or(u64::MAX) }
    }

    pub(crate) fn weigh(self, tat: u64, now: u64, cost: u64) -> Fit {
        let price = self.price(cost);
        if price > self.tolerance {
            return Fit::Never;
        }
        let need = debt(tat, now).saturating_add(price);
        NonZeroU64::new(need.saturating_sub(self.tolerance)).map_or(Fit::Fits, Fit::Wait)
    }

    /// The arrival time after a request that fits has been taken.
    pub(crate) fn take(self, tat: u64, now: u64, cost: u64) -> u64 {
        tat.max(now).saturating_add(self.price(cost))
    }

    /// The units that an allowance holds.
    pub(crate) fn remaining(self, tat: u64, now: u64) -> u64 {
        self.tolerance.saturating_sub(debt(tat, now)) / self.interval
    }

    /// The arrival time after `cost` units have been given back.
    pub(crate) fn give_back(self, tat: u64, cost: u64) -> u64 {
        tat.saturating_sub(self.price(cost))
    }

    /// Nanoseconds until an allowance that holds fewer than `burst` units holds one more.
    pub(crate) fn next_unit(self, tat: u64, now: u64) -> u64 {
        let units = self.interval.saturating_mul(self.remaining(tat, now) + 1);
        debt(tat, now).saturating_add(units).saturating_sub(self.tolerance)
    }

    fn price(self, cost: u64) -> u64 {
        self.interval.saturating_mul(cost)
    }
}

/// Nanoseconds until the allowance is full.
pub(crate) fn debt(tat: u64, now: u64) -> u64 {
    tat.saturating_sub(now)
}
