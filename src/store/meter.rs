//! How a limit counts: rolling (GCRA) or in windows of the calendar, with one state and one set of questions for both.

use crate::decision::Reading;
use crate::rate::Rate;
#[cfg(feature = "server")]
use crate::store::fixed_window::{FixedWindow, Used};
use crate::store::gcra::{Fit, Terms, debt};
#[cfg(feature = "server")]
use crate::store::written::{Rest, Since, put};

/// How a limit counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meter {
    /// Units come back evenly.
    Rolling { terms: Terms, burst: u64 },
    /// All units come back at the start of a window.
    #[cfg(feature = "server")]
    Fixed(FixedWindow),
}

/// A moment on both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub monotonic: u64,
    /// Since the Unix epoch; only told where a limit asks for the calendar.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "the library has no windows of the calendar"))]
    pub unix: u64,
}

/// The state of one allowance; its default is a full one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    /// When it is full again, or the index of the window.
    at: u64,
    /// What was used in that window.
    used: u64,
}

impl Level {
    /// The level after `cost` units of a rolling allowance have been given back.
    pub(crate) fn given_back(self, terms: Terms, cost: u64) -> Self {
        Self { at: terms.give_back(self.at, cost), ..self }
    }
}

impl Meter {
    pub(crate) fn rolling(rate: Rate, burst: u64) -> Self {
        Self::Rolling { terms: Terms::with_burst(rate, burst), burst }
    }

    #[cfg(feature = "server")]
    pub(crate) fn fixed(rate: Rate) -> Self {
        Self::Fixed(FixedWindow::new(rate.count(), rate.nanos()))
    }

    /// The units that it permits at once, where that is not its count.
    #[cfg(feature = "server")]
    pub(crate) fn burst(&self) -> Option<u64> {
        match self {
            Self::Rolling { burst, .. } => Some(*burst),
            Self::Fixed(_) => None,
        }
    }

    pub(crate) fn weigh(&self, level: Level, now: Moment, cost: u64) -> Fit {
        match self {
            Self::Rolling { terms, .. } => terms.weigh(level.at, now.monotonic, cost),
            #[cfg(feature = "server")]
            Self::Fixed(window) => window.weigh(level.used(), now.unix, cost),
        }
    }

    pub(crate) fn take(&self, level: Level, now: Moment, cost: u64) -> Level {
        match self {
            Self::Rolling { terms, .. } => Level { at: terms.take(level.at, now.monotonic, cost), used: 0 },
            #[cfg(feature = "server")]
            Self::Fixed(window) => window.take(level.used(), now.unix, cost).into(),
        }
    }

    /// The level, owing no more than a full allowance holds.
    #[cfg(feature = "server")]
    pub(crate) fn clamp(&self, level: Level, now: Moment) -> Level {
        match self {
            Self::Rolling { terms, .. } => {
                Level { at: level.at.min(now.monotonic.saturating_add(terms.tolerance)), ..level }
            }
            Self::Fixed(_) => level,
        }
    }

    /// Appends a level as it is at `now`.
    #[cfg(feature = "server")]
    pub(crate) fn write(&self, level: Level, bytes: &mut Vec<u8>, now: Moment) {
        match self {
            Self::Rolling { .. } => {
                put(bytes, debt(level.at, now.monotonic));
                put(bytes, 0);
            }
            Self::Fixed(_) => {
                put(bytes, level.at);
                put(bytes, level.used);
            }
        }
    }

    /// Reads a level; `None` if the bytes are none.
    #[cfg(feature = "server")]
    pub(crate) fn read_level(&self, rest: &mut Rest<'_>, since: Since) -> Option<Level> {
        let (at, used) = (rest.number()?, rest.number()?);
        Some(match self {
            Self::Rolling { .. } => Level { at: since.until(at), used: 0 },
            Self::Fixed(_) => Level { at, used },
        })
    }

    /// Whether it is worth no more than an allowance that does not exist.
    pub(crate) fn is_full(&self, level: Level, now: Moment) -> bool {
        match self {
            Self::Rolling { .. } => debt(level.at, now.monotonic) == 0,
            #[cfg(feature = "server")]
            Self::Fixed(window) => window.used(level.used(), now.unix).units == 0,
        }
    }

    pub(crate) fn read(&self, level: Level, now: Moment) -> Reading {
        match self {
            Self::Rolling { terms, burst } => {
                let remaining = terms.remaining(level.at, now.monotonic).min(*burst);
                let next = if remaining < *burst { terms.next_unit(level.at, now.monotonic) } else { 0 };
                Reading { remaining, next_unit: next, full_in: debt(level.at, now.monotonic) }
            }
            #[cfg(feature = "server")]
            Self::Fixed(window) => {
                let used = window.used(level.used(), now.unix);
                let next = if used.units > 0 { window.until_next(used, now.unix) } else { 0 };
                Reading { remaining: window.remaining(used, now.unix), next_unit: next, full_in: next }
            }
        }
    }
}

#[cfg(feature = "server")]
impl Level {
    fn used(self) -> Used {
        Used { index: self.at, units: self.used }
    }
}

#[cfg(feature = "server")]
impl From<Used> for Level {
    fn from(used: Used) -> Self {
        Self { at: used.index, used: used.units }
    }
}
